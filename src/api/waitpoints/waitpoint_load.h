/* waitpoint_load.h - one waitpoint: read, and shown. */
#pragma once

#include "api/request/call.h"
#include "core/model/waitpoint.h"

/* Loads a waitpoint of the call's environment. */
struct waitpoint_load {
    struct api_call *call;
    struct store_load load;
    struct waitpoint waitpoint; /* out; the caller's to finish */
    /* ERR_NOT_FOUND: call->why says so. */
    void (*done)(struct waitpoint_load *load, enum err status);
};
void waitpoint_load_begin(struct waitpoint_load *load, struct api_call *call,
                          struct slice id,
                          void (*done)(struct waitpoint_load *load, enum err status));

/* WAITING, COMPLETED or TIMED_OUT. */
const char *waitpoint_status(const struct waitpoint *waitpoint, int64_t now_ms);

/* As an element of a list. */
void waitpoint_add_item(struct api_call *call, const struct waitpoint *waitpoint,
                        struct buf *out);
/* The same without the brace at the end: more members follow. */
void waitpoint_open_item(struct api_call *call, const struct waitpoint *waitpoint,
                         struct buf *out);

/* Appends the URL that completes the token, as a JSON string. Who has it can complete it, so
 * a caller that may not sees "". (The official SDKs want the member.) */
void waitpoint_add_url(struct api_call *call, const char *id, struct buf *out);
