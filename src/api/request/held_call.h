/* held_call.h - holds a call with ?wait= until the run or batch that it shows has ended.
 *
 *   read ─► it has ended: reply
 *     ▲     it has not, and there is time left: held, with a seat (connection_limit.h)
 *     │                                             │
 *     └── it ends, time is up, a drain ◄────────────┘
 *
 * Nothing of the response is kept while the call is held: the run or batch is read again. A
 * held call is drained, revoked and counted like a held long poll. */
#pragma once

#include "api/request/call.h"
#include "api/request/connection_limit.h"
#include "core/state/ends.h"

/* Embedded by the operation; zero if the call does not wait. */
struct held_call {
    struct api_call *call;
    int64_t until_ms;     /* monotonic; 0: the call does not wait */
    bool ends_with_token; /* the token expires before the requested wait ends */
    bool has_ended;       /* it has ended, maybe before the call was held */
    bool is_held;
    struct seat seat;
    struct timer timer;
    struct end_watch watch;
    void (*over)(struct held_call *held, enum err status);
};

/* Reads ?wait= into a zeroed one. Returns ERR_INVALID if it is malformed; nothing is then
 * left to finish. */
enum err held_call_read(struct held_call *held, struct api_call *call);

/* Returns true if the call may wait longer: there is time left, the client is connected and
 * its credential valid, and the gateway is ready. */
bool held_call_may_wait(const struct held_call *held);

/* Listens for this run to end, or for this batch to be sealed, and for nothing else. Call
 * it before reading that, so that no end is missed. */
void held_call_listen(struct held_call *held, struct slice id);

/* Holds the call, which may wait and listens, until over is called, once and later. Its
 * status OK: read again, and reply if it has ended or the call may not wait.
 * ERR_UNAUTHORIZED: the credential has ended. ERR_CANCELED: the client has left. Pass
 * either to held_call_refuse. Returns ERR_BUSY if there is no free seat. */
enum err held_call_hold(struct held_call *held,
                        void (*over)(struct held_call *held, enum err status));

/* Replies to a call that ends with an error, before or after it was held. */
void held_call_refuse(struct held_call *held, enum err status);

/* Leaves the seat; call it before the reply. */
void held_call_finish(struct held_call *held);
