/* wire.h - reads and writes the messages of runs.v1 (runcast/protocol.h).
 *
 * In: JSON text in both subprotocols, read by jansson after a check of its depth. The
 * transport limits its size. Out: appended to a buffer in the view's encoding. The
 * transport wraps it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/rope.h"
#include "core/model/filter.h"
#include "core/wire/view.h"

struct json_t;

enum wire_op { WIRE_HELLO, WIRE_SUB, WIRE_WATCH, WIRE_UNSUB, WIRE_AUTH };

enum { WIRE_FIELDS_MAX = 64, WIRE_IGNORED_MAX = 16, WIRE_IGNORED_BYTES = 1024 };

/* A message from the client. Owns what it refers to until wire_message_finish. */
struct wire_message {
    enum wire_op op;
    int64_t id; /* of sub, watch and unsub: 0 … 2^53-1 */
    bool has_id;
    char *token; /* hello, auth; NULL: none. NUL-terminated */
    bool has_fields;
    uint32_t fields;       /* hello: bit set after applying "-x" or the list */
    int64_t every_ms;      /* hello */
    bool vocabulary_b;     /* hello with api "2025-07-16" */
    struct filter filter;  /* sub; its user takes ownership, and zeroes it here */
    int64_t limit;         /* sub; 0: none. watch: number of rows */
    struct json_t *wanted; /* watch: its filter, unread; NULL: none */
    bool counts;           /* sub, watch */
    bool has_from;         /* sub */
    char from_epoch[24];
    uint64_t from_seq, from_base;
    struct tag_list *ignored; /* names of members that the op does not have; NULL: none */
};

/* Reads a message. now_ms turns since: "24h" into a time. Returns ERR_INVALID with the
 * reason in why, and sets code to the short word of the error message ("bad_message",
 * "unknown_op", …). Then only has_id and id of the message are set, for wire_error. */
enum err wire_read(struct slice text, int64_t now_ms, struct wire_message *message,
                   const char **code, struct failure *why);

/* Accepts a zeroed message. */
void wire_message_finish(struct wire_message *message);

struct wire_limits {
    int64_t subscriptions, tags, message_bytes, messages_per_s, burst, watches, watch_limit;
};

/* ignored, here and below: unknown members of the client's message; NULL: none. expires_at
 * 0: the token does not expire. */
void wire_welcome(const struct view *view, const char *epoch, uint64_t seq,
                  struct slice environment, int64_t expires_at,
                  const struct wire_limits *limits, const struct tag_list *ignored,
                  struct buf *out);

/* count < 0: unknown; since 0: none. */
void wire_ok(enum encoding encoding, int64_t id, bool resumed, int64_t count, int64_t since,
             const struct tag_list *ignored, struct buf *out);

/* rows is what render_* appended, rows_count times: in JSON with commas added by the
 * caller, in msgpack one after the other. id < 0: a patch, otherwise rows of a
 * subscription. Returns the message, which is in out; for a shape, only the rows. */
const struct rope *wire_rows(enum encoding encoding, int64_t id, uint64_t seq, bool more,
                             const struct rope *rows, size_t rows_count, struct rope *out);

/* The same for a live list. begin: the client must forget its rows of the list. */
const struct rope *wire_list(enum encoding encoding, int64_t id, uint64_t seq, bool begin,
                             bool more, const struct rope *rows, size_t rows_count,
                             struct rope *out);

/* counts: by enum run_status, RUN_STATUS_COUNT of them. Written in the words of the view,
 * without zeros. */
void wire_counts(const struct view *view, int64_t id, uint64_t seq, const uint64_t *counts,
                 struct buf *out);

/* code NULL: the response to unsub. */
void wire_end(enum encoding encoding, int64_t id, const char *code,
              const struct tag_list *ignored, struct buf *out);
void wire_floor(enum encoding encoding, int64_t updated_at, struct buf *out);
/* id < 0: the error does not concern a subscription. */
void wire_error(enum encoding encoding, int64_t id, const char *code, const char *text,
                struct buf *out);
void wire_ping(enum encoding encoding, uint64_t seq, struct buf *out);
void wire_expiring(enum encoding encoding, int64_t in_ms, struct buf *out);
void wire_drain(enum encoding encoding, int64_t in_ms, struct buf *out);
