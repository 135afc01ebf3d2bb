/* held_call.h - a call with ?wait=, which is answered when what it shows has ended.
 *
 *   read ─► it has ended: answered
 *     ▲     it has not, and the time is not over: held, with a seat (connection_limit.h)
 *     │                                             │
 *     └── it ends, the time is over, a drain ◄──────┘
 *
 * Nothing of the answer is kept while the call is held: what it shows is read again. A held
 * call is what a held long poll is: drained, revoked and counted the same way. */
#pragma once

#include "api/request/call.h"
#include "api/request/connection_limit.h"
#include "core/engine/ends.h"

/* Embedded by the operation; zero for a call that does not wait. */
struct held_call {
    struct api_call *call;
    int64_t until_ms;     /* monotonic; 0: it does not wait */
    bool ends_with_token; /* the token ends sooner than the wait that was asked for */
    bool is_told;         /* what is listened for came, maybe before the call was held */
    bool is_held;
    struct seat seat;
    struct timer timer;
    struct end_watch watch;
    void (*over)(struct held_call *held, enum err status);
};

/* Reads ?wait= into a zeroed one. ERR_INVALID: nothing is left to finish. */
enum err held_call_read(struct held_call *held, struct api_call *call);

/* Whether the call waits and may go on with it: there is time left, and somebody to answer. */
bool held_call_may_wait(const struct held_call *held);

/* Listens for the end of this run, or for this batch to be sealed, instead of what it listened
 * for: before that is read, so that no end is missed. */
void held_call_listen(struct held_call *held, struct slice id);

/* Holds the call, which may wait and listens, until over is called, later and once. OK: read
 * again, and answer when that has ended or the call may not wait. ERR_UNAUTHORIZED: its
 * credential has ended, ERR_CANCELED: the client has left; held_call_refuse answers both.
 * Returns ERR_BUSY: there is no seat. */
enum err held_call_hold(struct held_call *held,
                        void (*over)(struct held_call *held, enum err status));

/* Answers a call that ends with an error; before or after it was held. */
void held_call_refuse(struct held_call *held, enum err status);

/* Before the answer: the seat is free again. */
void held_call_finish(struct held_call *held);
