/* seen.c - parses each message once, however many connections receive it. */
#include "seen.h"

#include <string.h>

#include "base/mem.h"
#include "seen_parse.h"

static struct slice key_of_run(const void *value)
{
    const struct tracked_run *run = value;
    return slice_of(run->id);
}

void seen_init(struct seen *seen)
{
    *seen = (struct seen){ .last = 0 };
    table_init(&seen->runs, key_of_run);
}

void seen_finish(struct seen *seen)
{
    for (unsigned i = 0; i < SEEN_MESSAGES; i++) {
        buf_finish(&seen->messages[i].text);
        free(seen->messages[i].rows);
    }
    table_finish(&seen->runs);
}

void seen_track(struct seen *seen, struct tracked_run *run)
{
    table_insert(&seen->runs, run);
}

static const struct {
    const char *name;
    enum seen_op op;
} ops[] = {
    { "patch", SEEN_PATCH }, { "rows", SEEN_ROWS },   { "ok", SEEN_OK },
    { "done", SEEN_DONE },   { "error", SEEN_ERROR }, { "drain", SEEN_DRAIN },
    { "end", SEEN_ERROR },   { "ping", SEEN_PING },   { "welcome", SEEN_WELCOME },
};

enum seen_op seen_op_of(struct slice name)
{
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        if (slice_is(name, ops[i].name))
            return ops[i].op;
    }
    return SEEN_OTHER;
}

uint32_t seen_find_run(const struct seen *seen, struct slice id)
{
    const struct tracked_run *run = id.len ? table_find(&seen->runs, id) : NULL;
    return run ? run->index : RUN_UNKNOWN;
}

void seen_keep_epoch(struct seen_message *message, struct slice epoch)
{
    if (epoch.len >= sizeof(message->epoch))
        return;
    memcpy(message->epoch, epoch.ptr, epoch.len);
    message->epoch[epoch.len] = 0;
}

struct seen_row *seen_add_row(struct seen_message *message)
{
    if (message->row_count == message->row_capacity) {
        message->row_capacity = 2 * message->row_capacity + 4;
        message->rows =
            mem_resize(message->rows, message->row_capacity * sizeof(struct seen_row));
    }
    struct seen_row *row = &message->rows[message->row_count++];
    *row = (struct seen_row){ .run = RUN_UNKNOWN };
    return row;
}

static bool parse_message(struct seen *seen, struct seen_message *message)
{
    struct slice text = buf_slice(&message->text);
    message->op = SEEN_OTHER;
    message->more = message->resumed = false;
    message->count = message->cpu_ns = message->seq = message->in_ms = 0;
    message->epoch[0] = 0;
    message->row_count = 0;
    if (slice_starts(text, "["))
        return seen_parse_shape(seen, text, message);
    if (slice_starts(text, "{"))
        return seen_parse_json(seen, text, message);
    return seen_parse_msgpack(seen, text, message);
}

/* Finds an equal message. Probes first the last hit (the next connection gets the same
 * message), the one after it (the same connection continues), then backward (the next
 * connection of a burst begins again). */
static struct seen_message *find_message(struct seen *seen, struct slice text)
{
    static const unsigned AHEAD = 2;
    for (unsigned i = 0; i < SEEN_MESSAGES; i++) {
        unsigned at = seen->last + (i < AHEAD ? i : SEEN_MESSAGES + AHEAD - 1 - i);
        at %= SEEN_MESSAGES;
        if (slice_equal(buf_slice(&seen->messages[at].text), text)) {
            seen->last = at;
            return &seen->messages[at];
        }
    }
    return NULL;
}

const struct seen_message *seen_parse(struct seen *seen, struct slice text)
{
    struct seen_message *known = find_message(seen, text);
    if (known)
        return known;
    struct seen_message *message = &seen->messages[seen->oldest];
    buf_clear(&message->text);
    buf_add(&message->text, text);
    if (!parse_message(seen, message)) {
        buf_clear(&message->text);
        return NULL;
    }
    seen->last = seen->oldest;
    seen->oldest = (seen->oldest + 1) % SEEN_MESSAGES;
    return message;
}
