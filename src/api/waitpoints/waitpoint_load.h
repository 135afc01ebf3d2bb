/* waitpoint_load.h - loads one waitpoint and writes it as JSON. */
#pragma once

#include "api/request/call.h"
#include "core/model/waitpoint.h"

/* Loads a waitpoint of the call's environment. */
struct waitpoint_load {
    struct api_call *call;
    struct store_load load;
    struct waitpoint waitpoint; /* out; the caller's to finish */
    /* ERR_NOT_FOUND: with a message in call->why */
    void (*done)(struct waitpoint_load *load, enum err status);
};
void waitpoint_load_begin(struct waitpoint_load *load, struct api_call *call,
                          struct slice id,
                          void (*done)(struct waitpoint_load *load, enum err status));

/* Returns WAITING, COMPLETED or TIMED_OUT. */
const char *waitpoint_status(const struct waitpoint *waitpoint, int64_t now_ms);

/* Appends the waitpoint as an element of a list. */
void waitpoint_add_item(struct api_call *call, const struct waitpoint *waitpoint,
                        struct buf *out);
/* The same without the closing brace, so that members can follow. */
void waitpoint_open_item(struct api_call *call, const struct waitpoint *waitpoint,
                         struct buf *out);

/* Appends the URL that completes the token, as a JSON string. Any client that has the URL
 * can complete the token, so a caller that may not complete it gets "". (The official SDKs
 * require the member.) */
void waitpoint_add_url(struct api_call *call, const char *id, struct buf *out);
