/* wire.c - writes the gateway's messages (runcast/protocol.h) as small arrays of
 * members. */
#include "core/wire/wire.h"

#include "core/wire/encode.h"

enum { MEMBERS_MAX = 8 };

/* A message that is being written; optional members are added only if present. */
struct message {
    struct member members[MEMBERS_MAX];
    size_t count;
};

static void add(struct message *message, const char *name, struct value value)
{
    message->members[message->count++] = (struct member){ name, value };
}

static void add_text(struct message *message, const char *name, struct slice text)
{
    add(message, name, (struct value){ VALUE_TEXT, .text = text });
}

static void add_number(struct message *message, const char *name, int64_t number)
{
    add(message, name, (struct value){ VALUE_NUMBER, .number = number });
}

static void add_time(struct message *message, const char *name, int64_t unix_ms)
{
    add(message, name, (struct value){ VALUE_TIME, .number = unix_ms });
}

static void add_ignored(struct message *message, const struct tag_list *ignored)
{
    if (ignored)
        add(message, "ignored", (struct value){ VALUE_TAGS, .tags = ignored });
}

static struct message message_of(const char *op)
{
    struct message message;
    message.count = 0;
    add_text(&message, "op", slice_of(op));
    return message;
}

static void wire_finish(enum encoding encoding, const struct message *message,
                        struct buf *out)
{
    encode_map(encoding, message->members, message->count, out);
}

void wire_welcome(const struct view *view, const char *epoch, uint64_t seq,
                  struct slice environment, int64_t expires_at,
                  const struct wire_limits *limits, const struct tag_list *ignored,
                  struct buf *out)
{
    struct message inner = { .count = 0 };
    add_number(&inner, "subscriptions", limits->subscriptions);
    add_number(&inner, "tags", limits->tags);
    add_number(&inner, "messageBytes", limits->message_bytes);
    add_number(&inner, "messagesPerSecond", limits->messages_per_s);
    add_number(&inner, "burst", limits->burst);
    add_number(&inner, "watches", limits->watches);
    add_number(&inner, "watchLimit", limits->watch_limit);

    struct message message = message_of("welcome");
    add_text(&message, "epoch", slice_of(epoch));
    add_number(&message, "seq", (int64_t)seq);
    add_text(&message, "env", environment);
    add(&message, "fields", (struct value){ VALUE_FIELDS, .fields = view->fields });
    if (expires_at)
        add_time(&message, "expires", expires_at);
    add(&message, "limits",
        (struct value){ VALUE_MAP, .map = { inner.members, inner.count } });
    add_ignored(&message, ignored);
    wire_finish(view->encoding, &message, out);
}

void wire_ok(enum encoding encoding, int64_t id, bool resumed, int64_t count, int64_t since,
             const struct tag_list *ignored, struct buf *out)
{
    struct message message = message_of("ok");
    add_number(&message, "id", id);
    add_text(&message, "mode", resumed ? SLICE("resume") : SLICE("snapshot"));
    if (count >= 0)
        add_number(&message, "count", count);
    if (since)
        add_time(&message, "since", since);
    add_ignored(&message, ignored);
    wire_finish(encoding, &message, out);
}

const struct rope *wire_rows(enum encoding encoding, int64_t id, uint64_t seq, bool more,
                             const struct rope *rows, size_t rows_count, struct rope *out)
{
    if (encoding == ENCODING_SHAPE)
        return rows;
    struct message message = message_of(id < 0 ? "patch" : "rows");
    if (id >= 0)
        add_number(&message, "id", id);
    add_number(&message, "seq", (int64_t)seq);
    if (more)
        add(&message, "more", (struct value){ VALUE_BOOL, .truth = true });
    add(&message, "rows", (struct value){ VALUE_ROWS, .rows = { rows, rows_count } });
    wire_finish(encoding, &message, &out->text);
    return out;
}

const struct rope *wire_list(enum encoding encoding, int64_t id, uint64_t seq, bool begin,
                             bool more, const struct rope *rows, size_t rows_count,
                             struct rope *out)
{
    struct message message = message_of("list");
    add_number(&message, "id", id);
    add_number(&message, "seq", (int64_t)seq);
    if (begin)
        add(&message, "begin", (struct value){ VALUE_BOOL, .truth = true });
    if (more)
        add(&message, "more", (struct value){ VALUE_BOOL, .truth = true });
    add(&message, "rows", (struct value){ VALUE_ROWS, .rows = { rows, rows_count } });
    wire_finish(encoding, &message, &out->text);
    return out;
}

void wire_counts(const struct view *view, int64_t id, uint64_t seq, const uint64_t *counts,
                 struct buf *out)
{
    struct run_word_count words[RUN_STATUS_COUNT];
    struct member members[RUN_STATUS_COUNT];
    size_t used = run_count_words(view->vocabulary, counts, words);
    int64_t total = 0;
    for (size_t i = 0; i < used; i++) {
        int64_t count = (int64_t)words[i].count;
        members[i] = (struct member){ words[i].word, { VALUE_NUMBER, .number = count } };
        total += count;
    }
    struct message message = message_of("counts");
    add_number(&message, "id", id);
    add_number(&message, "seq", (int64_t)seq);
    add(&message, "byStatus", (struct value){ VALUE_MAP, .map = { members, used } });
    add_number(&message, "total", total);
    wire_finish(view->encoding, &message, out);
}

void wire_end(enum encoding encoding, int64_t id, const char *code,
              const struct tag_list *ignored, struct buf *out)
{
    struct message message = message_of("end");
    add_number(&message, "id", id);
    if (code)
        add_text(&message, "code", slice_of(code));
    add_ignored(&message, ignored);
    wire_finish(encoding, &message, out);
}

void wire_floor(enum encoding encoding, int64_t updated_at, struct buf *out)
{
    struct message message = message_of("floor");
    add_time(&message, "updatedAt", updated_at);
    wire_finish(encoding, &message, out);
}

void wire_error(enum encoding encoding, int64_t id, const char *code, const char *text,
                struct buf *out)
{
    struct message message = message_of("error");
    if (id >= 0)
        add_number(&message, "id", id);
    add_text(&message, "code", slice_of(code));
    add_text(&message, "message", slice_of(text));
    wire_finish(encoding, &message, out);
}

void wire_ping(enum encoding encoding, uint64_t seq, struct buf *out)
{
    struct message message = message_of("ping");
    add_number(&message, "seq", (int64_t)seq);
    wire_finish(encoding, &message, out);
}

void wire_expiring(enum encoding encoding, int64_t in_ms, struct buf *out)
{
    struct message message = message_of("expiring");
    add_number(&message, "in", in_ms);
    wire_finish(encoding, &message, out);
}

void wire_drain(enum encoding encoding, int64_t in_ms, struct buf *out)
{
    struct message message = message_of("drain");
    add_number(&message, "in", in_ms);
    wire_finish(encoding, &message, out);
}
