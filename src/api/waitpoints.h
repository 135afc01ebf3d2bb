/* waitpoints.h - what the files of waitpoints share: reading one, and how it is shown. */
#pragma once

#include "api/blocking.h"
#include "api/workers.h"
#include "auth/signed_url.h"
#include "engine/steer.h"
#include "engine/waitpoint.h"

/* One of the call's environment. */
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

/* waitpoint_list.c */
route_fn waitpoint_list;
