/* trigger_call.h - what every trigger derives from its call: claims, place, parent. */
#pragma once

#include "api/request/call.h"
#include "api/triggers/trigger_options.h"

/* Sets the claims of op that are stored with its runs: the call's request id and its
 * one-time token, if it has them. kind distinguishes requests with the same id: a task's
 * id, or a name for the batch call. */
void trigger_call_claims(struct api_call *call, struct slice kind, struct trigger_op *op);

/* Returns where the call's runs are to execute; see trigger_options.h. */
struct trigger_place trigger_call_place(const struct api_call *call);

/* Replies to a trigger that failed. what: the task or the batch, for the message. */
void trigger_call_refused(struct api_call *call, const struct trigger_op *op,
                          enum err status, struct slice what);

/* The lookup of the parent run that a trigger names. */
struct parent_lookup {
    struct api_call *call;
    struct run_read read;
    /* Called once. ERR_RULE: the parent is unknown or has ended. ERR_FORBIDDEN: the
     * token may not write it. The message is in call->why. */
    void (*done)(struct parent_lookup *lookup, enum err status);
    struct bytes *id, *root; /* out */
    int64_t queue_position;  /* out: the parent's position */
    uint16_t depth;          /* out: the depth of the parent's children */
};

void parent_lookup_begin(struct parent_lookup *lookup, struct api_call *call,
                         struct slice id,
                         void (*done)(struct parent_lookup *lookup, enum err status));
void parent_lookup_finish(struct parent_lookup *lookup);

/* Makes child a child of the parent that was found. resume: the parent waits for it. Does
 * nothing if no lookup was begun. */
void parent_lookup_adopt(const struct parent_lookup *lookup, bool resume,
                         struct run *child);
