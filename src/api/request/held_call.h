/* held_call.h - holds a call with ?wait= until what it shows has ended.
 *
 *   read ─► it has ended: answered
 *     ▲     it has not, and there is time left: held, with a seat (connection_limit.h)
 *     │                                             │
 *     └── it ends, time is up, a drain ◄────────────┘
 *
 * Nothing of the response is kept while the call is held: what it shows is read again. A
 * held call is drained, revoked and counted like a held long poll. */
#pragma once

#include "api/request/call.h"
#include "api/request/connection_limit.h"
#include "core/engine/ends.h"

/* Embedded by the operation; zero for a call that does not wait. */
struct held_call {
    struct api_call *call;
    int64_t until_ms;     /* monotonic; 0: the call does not wait */
    bool ends_with_token; /* the token ends before the requested wait */
    bool has_ended;       /* the awaited end came, maybe before the call was held */
    bool is_held;
    struct seat seat;
    struct timer timer;
    struct end_watch watch;
    void (*over)(struct held_call *held, enum err status);
};

/* Reads ?wait= into a zeroed one. Returns ERR_INVALID if it is wrong; nothing is left to
 * finish. */
enum err held_call_read(struct held_call *held, struct api_call *call);

/* Returns true if the call may wait longer: there is time left, the client is connected and
 * its credential valid, and the gateway is ready. */
bool held_call_may_wait(const struct held_call *held);

/* Listens for the end of this run, or for this batch to be sealed, and for nothing else.
 * Call it before that is read, so that no end is missed. */
void held_call_listen(struct held_call *held, struct slice id);

/* Holds the call, which may wait and listens, until over is called, later and once. Its
 * status OK: read again, and answer if that has ended or the call may not wait.
 * ERR_UNAUTHORIZED: the credential has ended. ERR_CANCELED: the client has left.
 * held_call_refuse answers both. Returns ERR_BUSY if there is no seat. */
enum err held_call_hold(struct held_call *held,
                        void (*over)(struct held_call *held, enum err status));

/* Answers a call that ends with an error, before or after it was held. */
void held_call_refuse(struct held_call *held, enum err status);

/* Leaves the seat; call it before the answer. */
void held_call_finish(struct held_call *held);
