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

/* ---- making one (waitpoint_make.c) ---- */

struct waitpoint_make {
    struct api_call *call;
    struct waitpoint waitpoint;   /* what is made; the caller may fill in more */
    const struct waitpoint *made; /* out: it, or the one that its key led to */
    bool cached;                  /* out: the latter */
    void (*done)(struct waitpoint_make *make, enum err status);

    struct waitpoint_load old; /* that the key led to */
    struct claim claim;
    struct change change;
    struct document_write write;
};

void waitpoint_make_init(struct waitpoint_make *make, struct api_call *call,
                         void (*done)(struct waitpoint_make *make, enum err status));
void waitpoint_make_finish(struct waitpoint_make *make);

/* The bodies: of a token with timeout and tags, or of a time; both may have a key. */
enum err waitpoint_make_read_token(struct waitpoint_make *make, const json_t *body);
enum err waitpoint_make_read_time(struct waitpoint_make *make, const json_t *body);

/* Keys of one space are apart from those of others. */
void waitpoint_make_begin(struct waitpoint_make *make, struct slice space);

/* ---- routes of other files ---- */

/* waitpoint_list.c */
route_fn waitpoint_list;

/* input_waits.c */
route_fn input_wait_create;
