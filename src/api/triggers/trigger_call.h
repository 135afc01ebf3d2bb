/* trigger_call.h - what triggers of all kinds take from their call: the request key, the
 * one-time token, the parent; and how their refusals read. */
#pragma once

#include "api/request/call.h"
#include "api/triggers/trigger_options.h"

/* Gives op the claim of the call's request id and that of a one-time token, which are made
 * with its runs. kind keeps apart what may be repeated: a task's id, or which batch call. */
void trigger_call_claims(struct api_call *call, struct slice kind, struct trigger_op *op);

/* Where the call's runs are to run: trigger_options.h. */
struct trigger_place trigger_call_place(const struct api_call *call);

/* Replies to an operation that did not come about. what: the task, or the batch. */
void trigger_call_refused(struct api_call *call, const struct trigger_op *op,
                          enum err status, struct slice what);

/* Finds the parent of the runs that a call makes: the run that asks. */
struct parent_lookup {
    struct api_call *call;
    struct run_read read;
    /* ERR_RULE: unknown, or it has ended; ERR_FORBIDDEN: the token may not write it. The
     * text is in call->why. */
    void (*done)(struct parent_lookup *lookup, enum err status);
    struct bytes *id, *root; /* out */
    int64_t queue_position;  /* out: its own */
    uint16_t depth;          /* out: of its children */
};

void parent_lookup_begin(struct parent_lookup *lookup, struct api_call *call,
                         struct slice id,
                         void (*done)(struct parent_lookup *lookup, enum err status));
void parent_lookup_finish(struct parent_lookup *lookup);

/* Makes the run a child of the parent found. */
void parent_lookup_adopt(const struct parent_lookup *lookup, bool resume,
                         struct run *child);
