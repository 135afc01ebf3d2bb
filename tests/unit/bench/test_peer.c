/* Responses of the other servers of the bench, cut at each byte where a frame may end. */
#include "tests/support/world/unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench/peer.h"
#include "bench/poller.h"

/* The bench has this function; there it ends the process. */
void fatal(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    abort();
}

#define MESSAGE "{\"op\":\"patch\",\"pad\":\"a\\r\\nb\"}"

/* Appends a word as text: R for a reply, S for subscribed, M for the message. */
static void hear(const struct peer_word *word, struct buf *told)
{
    if (word->reply.len)
        buf_print(told, "R:%.*s ", SLICE_ARG(word->reply));
    if (word->subscribed)
        buf_add_text(told, "S ");
    if (!word->message.ptr)
        return;
    assert_true(slice_is(word->message, MESSAGE));
    buf_add_text(told, "M ");
}

static void take_all(const struct peer *peer, struct buf *kept, struct buf *told)
{
    size_t used = 1;
    while (kept->len && used) {
        struct peer_word word = { 0 };
        used = peer->take(buf_slice(kept), &word);
        hear(&word, told);
        buf_drop(kept, used);
    }
}

/* Reads both parts, one after the other. */
static void check_cut(const struct peer *peer, struct slice said, size_t cut,
                      const char *expected)
{
    struct buf kept = { 0 }, told = { 0 };
    buf_add(&kept, (struct slice){ said.ptr, cut });
    take_all(peer, &kept, &told);
    buf_add(&kept, slice_from(said, cut));
    take_all(peer, &kept, &told);
    buf_add_char(&told, 0);
    assert_string_equal(told.ptr, expected);
    assert_int_equal(kept.len, 0);
    buf_finish(&kept);
    buf_finish(&told);
}

static void check_stream(const char *name, struct slice said, const char *expected)
{
    const struct peer *peer = peer_find(name);
    assert_true(peer->binary);
    for (size_t cut = 0; cut <= said.len; cut++)
        check_cut(peer, said, cut, expected);
}

static void nats_frames_are_lines(void **state)
{
    (void)state;
    struct buf said = { 0 };
    size_t len = strlen(MESSAGE);
    buf_print(&said,
              "INFO {\"server_id\":\"x\"}\r\nPONG\r\nMSG m 1 %zu\r\n" MESSAGE
              "\r\nPING\r\nMSG m 1 reply %zu\r\n" MESSAGE "\r\n",
              len, len);
    check_stream("nats", buf_slice(&said), "S M R:PONG\r\n M ");
    buf_finish(&said);
}

static void mqtt_frames_are_packets(void **state)
{
    (void)state;
    const struct peer *peer = peer_find("mosquitto");
    struct buf said = { 0 };
    buf_add(&said, SLICE("\x20\2\0\0\x90\3\0\1\0"));
    peer->publish(SLICE(MESSAGE), &said);
    peer->publish(SLICE(MESSAGE), &said);
    check_stream("mosquitto", buf_slice(&said), "S M M ");
    buf_finish(&said);
}

/* From 128 bytes on, the length takes two bytes. */
static void mqtt_length_takes_two_bytes_from_128_on(void **state)
{
    (void)state;
    const struct peer *peer = peer_find("mosquitto");
    static const size_t sizes[] = { 0, 124, 125, 16380, 16381 };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct buf payload = { 0 }, said = { 0 };
        memset(buf_reserve(&payload, sizes[i] + 1), 'x', sizes[i]);
        payload.len = sizes[i];
        peer->publish(buf_slice(&payload), &said);
        struct peer_word word = { 0 };
        assert_int_equal(peer->take(buf_slice(&said), &word), said.len);
        assert_true(slice_equal(word.message, buf_slice(&payload)));
        buf_finish(&payload);
        buf_finish(&said);
    }
}

static void check_frame(const char *name, const char *frame, const char *expected)
{
    const struct peer *peer = peer_find(name);
    assert_false(peer->binary);
    check_cut(peer, slice_of(frame), strlen(frame), expected);
}

static void each_text_message_is_one_frame(void **state)
{
    (void)state;
    check_frame("ws", MESSAGE, "M ");
    check_frame("nchan", MESSAGE, "M ");
    check_frame("nchan", "queued messages: 1\r\nactive subscribers: 2", "");
    check_frame("socket.io", "0{\"sid\":\"x\",\"upgrades\":[]}", "R:40 ");
    check_frame("socket.io", "40{\"sid\":\"y\"}", "S ");
    check_frame("socket.io", "2", "R:3 ");
    check_frame("socket.io", "42[\"m\"," MESSAGE "]", "M ");
}

static void published_message_is_received(void **state)
{
    (void)state;
    static const char *const names[] = { "nchan", "mosquitto", "socket.io", "ws" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct buf said = { 0 };
        peer_find(names[i])->publish(SLICE(MESSAGE), &said);
        check_cut(peer_find(names[i]), buf_slice(&said), said.len, "M ");
        buf_finish(&said);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nats_frames_are_lines),
        cmocka_unit_test(mqtt_frames_are_packets),
        cmocka_unit_test(mqtt_length_takes_two_bytes_from_128_on),
        cmocka_unit_test(each_text_message_is_one_frame),
        cmocka_unit_test(published_message_is_received),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
