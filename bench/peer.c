/* peer.c - other servers that fanout can measure: the WebSocket protocol of each. */
#include "peer.h"

#include <inttypes.h>
#include <string.h>

#include "base/cursor.h"
#include "base/text.h"
#include "poller.h"

static bool is_message(struct slice text)
{
    return slice_starts(text, "{");
}

/* A frame is a message; Nchan also sends lines of text to the publisher. */
static size_t take_plain(struct slice in, struct peer_word *word)
{
    if (is_message(in))
        word->message = in;
    return in.len;
}

static void publish_plain(struct slice message, struct buf *out)
{
    buf_add(out, message);
}

/* Engine.IO 4 around Socket.IO 5: 0{…} opens, 40 joins, 2 and 3 are ping and pong, and
 * 42["m",{…}] is an event. */
static size_t take_socket_io(struct slice in, struct peer_word *word)
{
    static const char EVENT[] = "42[\"m\",";
    size_t around = sizeof(EVENT) - 1;
    if (slice_starts(in, EVENT) && in.len > around)
        word->message = (struct slice){ in.ptr + around, in.len - around - 1 };
    else if (slice_starts(in, "40"))
        word->subscribed = true;
    else if (slice_starts(in, "0"))
        word->reply = SLICE("40");
    else if (slice_is(in, "2"))
        word->reply = SLICE("3");
    else
        fatal("Socket.IO says what the bench does not know: %.*s", SLICE_ARG(in));
    return in.len;
}

static void publish_socket_io(struct slice message, struct buf *out)
{
    buf_add_text(out, "42[\"m\",");
    buf_add(out, message);
    buf_add_char(out, ']');
}

/* Takes MSG m 1 512\r\n…\r\n: the length is the last word of the line. */
static size_t take_nats_message(struct slice in, struct slice line, struct peer_word *word)
{
    const char *space = memrchr(line.ptr, ' ', line.len);
    struct slice digits =
        slice_from(line, space ? (size_t)(space - line.ptr) + 1 : line.len);
    int64_t len = 0;
    if (text_to_i64(digits, &len) != OK || len < 0)
        fatal("NATS says what the bench does not know: %.*s", SLICE_ARG(line));
    size_t begin = line.len + 2;
    size_t end = begin + (size_t)len;
    if (in.len < end + 2)
        return 0;
    word->message = (struct slice){ in.ptr + begin, (size_t)len };
    return end + 2;
}

/* Takes a line, as over TCP. The PONG is the response to the PING in our hello, after
 * SUB. */
static size_t take_nats(struct slice in, struct peer_word *word)
{
    const char *end = memmem(in.ptr, in.len, "\r\n", 2);
    if (!end)
        return 0;
    struct slice line = { in.ptr, (size_t)(end - in.ptr) };
    if (slice_starts(line, "MSG "))
        return take_nats_message(in, line, word);
    if (slice_is(line, "PING"))
        word->reply = SLICE("PONG\r\n");
    else if (slice_is(line, "PONG"))
        word->subscribed = true;
    else if (!slice_starts(line, "INFO "))
        fatal("NATS refuses: %.*s", SLICE_ARG(line));
    return line.len + 2;
}

static void publish_nats(struct slice message, struct buf *out)
{
    buf_print(out, "PUB m %zu\r\n", message.len);
    buf_add(out, message);
    buf_add_text(out, "\r\n");
}

enum { MQTT_CONNACK = 2, MQTT_PUBLISH = 3, MQTT_SUBACK = 9 };

/* Seven bits per byte, the lowest first (MQTT 3.1.1 §2.2.3). */
static uint64_t mqtt_length(struct cursor *cursor)
{
    uint64_t length = 0, byte = 128;
    for (unsigned shift = 0; byte & 128 && shift <= 21; shift += 7) {
        byte = cursor_number(cursor, 1);
        length |= (byte & 127) << shift;
    }
    return length;
}

static size_t take_mqtt(struct slice in, struct peer_word *word)
{
    struct cursor cursor = cursor_over(in);
    unsigned kind = (unsigned)cursor_number(&cursor, 1) >> 4;
    struct slice body = cursor_bytes(&cursor, mqtt_length(&cursor));
    if (cursor.failed)
        return 0;
    size_t used = in.len - cursor_left(&cursor);
    struct cursor inside = cursor_over(body);
    switch (kind) {
    case MQTT_CONNACK:
        if (cursor_number(&inside, 2) & 255)
            fatal("the MQTT server refuses a connection");
        return used;
    case MQTT_SUBACK:
        if (cursor_number(&inside, 3) & 128)
            fatal("the MQTT server refuses a subscription");
        word->subscribed = true;
        return used;
    case MQTT_PUBLISH:
        cursor_bytes(&inside, cursor_number(&inside, 2));
        word->message = cursor_bytes(&inside, cursor_left(&inside));
        return used;
    default: fatal("the MQTT server sends a packet of kind %u", kind);
    }
}

static void publish_mqtt(struct slice message, struct buf *out)
{
    static const char TOPIC[] = "\0\1m";
    size_t length = message.len + 3;
    buf_add_char(out, MQTT_PUBLISH << 4);
    for (; length > 127; length >>= 7)
        buf_add_char(out, (char)(128 | (length & 127)));
    buf_add_char(out, (char)length);
    buf_add(out, (struct slice){ TOPIC, 3 });
    buf_add(out, message);
}

#define BYTES(text)                                                                        \
    {                                                                                      \
        text, sizeof(text) - 1                                                             \
    }

/* NATS accepts everything at once, and so does MQTT (3.1.1 §3.1.4). */
static const char NATS_HELLO[] =
    "CONNECT {\"verbose\":false,\"pedantic\":false,\"lang\":\"c\",\"protocol\":1}\r\n"
    "SUB m 1\r\nPING\r\n";

/* CONNECT: level 4, clean session, no keep-alive, no name. SUBSCRIBE: "m" with QoS 0. */
static const char MQTT_HELLO[] = "\x10\x0c\0\4MQTT\4\2\0\0\0\0"
                                 "\x82\6\0\1\0\1m\0";

static const struct peer peers[] = {
    { .name = "nchan",
      .path = "/m",
      .subprotocol = "",
      .subscribes_itself = true,
      .take = take_plain,
      .publish = publish_plain },
    { .name = "nats",
      .path = "/",
      .subprotocol = "",
      .binary = true,
      .hello = BYTES(NATS_HELLO),
      .take = take_nats,
      .publish = publish_nats },
    { .name = "mosquitto",
      .path = "/mqtt",
      .subprotocol = "mqtt",
      .binary = true,
      .hello = BYTES(MQTT_HELLO),
      .take = take_mqtt,
      .publish = publish_mqtt },
    { .name = "socket.io",
      .path = "/socket.io/?EIO=4&transport=websocket",
      .subprotocol = "",
      .take = take_socket_io,
      .publish = publish_socket_io },
    { .name = "ws",
      .path = "/",
      .subprotocol = "",
      .subscribes_itself = true,
      .take = take_plain,
      .publish = publish_plain },
};

const struct peer *peer_find(const char *name)
{
    for (size_t i = 0; i < sizeof(peers) / sizeof(peers[0]); i++) {
        if (strcmp(peers[i].name, name) == 0)
            return &peers[i];
    }
    fatal("--peer: '%s' is none of nchan, nats, mosquitto, socket.io, ws", name);
}
