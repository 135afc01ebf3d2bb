/* wire.h - the messages of runs.v1 (runcast/protocol.h), in and out.
 *
 * In: JSON text in both subprotocols, read by jansson after a check of its depth; its size
 * is the transport's business.
 * Out: appended to a buffer in the view's encoding, to be wrapped by the transport. */
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

/* A message of the client. Owns what it refers to: wire_message_finish. */
struct wire_message {
    enum wire_op op;
    int64_t id; /* of sub, watch and unsub: 0 … 2^53-1 */
    bool has_id;
    char *token; /* hello, auth; NULL: none. Terminated, no zero byte in it */
    bool has_fields;
    uint32_t fields;       /* hello: bit set after applying "-x" or the list */
    int64_t every_ms;      /* hello */
    bool vocabulary_b;     /* hello: api "2025-07-16" */
    struct filter filter;  /* sub; taken over by whoever uses it (then zeroed) */
    int64_t limit;         /* sub; 0: none. watch: how many rows */
    struct json_t *wanted; /* watch: its filter, as it came; NULL: none */
    bool counts;           /* sub, watch */
    bool has_from;         /* sub */
    char from_epoch[24];
    uint64_t from_seq, from_base;
    struct tag_list *ignored; /* names of members that the op does not have; NULL: none */
};

/* now_ms turns since: "24h" into a time. ERR_INVALID with a sentence that says what to do;
 * code is the short word for the error message ("bad_message", "unknown_op", …), and of
 * the message only has_id and id are set, for wire_error. */
enum err wire_read(struct slice text, int64_t now_ms, struct wire_message *message,
                   const char **code, struct failure *why);

/* A zeroed message is fine. */
void wire_message_finish(struct wire_message *message);

struct wire_limits {
    int64_t subscriptions, tags, message_bytes, messages_per_s, burst, watches, watch_limit;
};

/* ignored, here and below: what of the client's message nobody reads; NULL: nothing.
 * expires_at 0: the token does not end. */
void wire_welcome(const struct view *view, const char *epoch, uint64_t seq,
                  struct slice environment, int64_t expires_at,
                  const struct wire_limits *limits, const struct tag_list *ignored,
                  struct buf *out);

/* count < 0: not known; since 0: none. */
void wire_ok(enum encoding encoding, int64_t id, bool resumed, int64_t count, int64_t since,
             const struct tag_list *ignored, struct buf *out);

/* rows is what render_* appended, rows_count times: between JSON rows the caller has put
 * commas, msgpack rows stand one behind the other. id < 0: a patch, else rows of a
 * subscription. Returns the message, which is in out; of a shape just the rows. */
const struct rope *wire_rows(enum encoding encoding, int64_t id, uint64_t seq, bool more,
                             const struct rope *rows, size_t rows_count, struct rope *out);

/* The same of a live list. begin: the client forgets what it had of it. */
const struct rope *wire_list(enum encoding encoding, int64_t id, uint64_t seq, bool begin,
                             bool more, const struct rope *rows, size_t rows_count,
                             struct rope *out);

/* counts: RUN_STATUS_COUNT of them; said by the words of the view, without those that are 0. */
void wire_counts(const struct view *view, int64_t id, uint64_t seq, const uint64_t *counts,
                 struct buf *out);

/* code NULL: the answer to unsub. */
void wire_end(enum encoding encoding, int64_t id, const char *code,
              const struct tag_list *ignored, struct buf *out);
void wire_floor(enum encoding encoding, int64_t updated_at, struct buf *out);
/* id < 0: about no subscription. */
void wire_error(enum encoding encoding, int64_t id, const char *code, const char *text,
                struct buf *out);
void wire_ping(enum encoding encoding, uint64_t seq, struct buf *out);
void wire_expiring(enum encoding encoding, int64_t in_ms, struct buf *out);
void wire_drain(enum encoding encoding, int64_t in_ms, struct buf *out);
