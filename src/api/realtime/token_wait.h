/* token_wait.h - messages of a WebSocket that wait because a token may be new.
 *
 *   hello or auth with an unknown token ─► waits ─► memory is confirmed: taken once more
 *   messages after it                  ─► wait, too ─► taken in their order
 *
 * Only a gateway that follows needs this: a key that was just created may not be in its memory
 * yet (core/live/certainty.h). */
#pragma once

#include "base/buf.h"
#include "core/live/certainty.h"

enum {
    TOKEN_WAIT_MS = 5000,
    TOKEN_WAIT_BYTES = 64 * 1024, /* of messages that wait */
};

struct token_waiting {
    struct certainty_waiter confirming;
    int64_t until; /* monotonic ms */
    void *owner;
    struct buf texts; /* each after its length */
    size_t taken;     /* bytes of texts */
};

/* Makes this message wait; calls fn with token_wait::confirming, later. The caller ends
 * it. */
struct token_waiting *token_wait_begin(struct certainty *certainty, struct slice text,
                                       void (*fn)(struct certainty_waiter *confirming),
                                       void *owner);

/* Returns false if too many bytes wait already. */
bool token_wait_add(struct token_waiting *wait, struct slice text);

/* Returns the next message, which the wait still owns; false: none is left. */
bool token_wait_take(struct token_waiting *wait, struct slice *text);

/* Ignores NULL. */
void token_wait_end(struct token_waiting *wait);
