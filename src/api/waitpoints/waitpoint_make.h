/* waitpoint_make.h - a new waitpoint, or the one that its idempotency key led to. */
#pragma once

#include "api/waitpoints/waitpoint_load.h"

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

/* space: what the idempotency key is one of; keys of different spaces are kept apart. */
void waitpoint_make_begin(struct waitpoint_make *make, struct slice space);
