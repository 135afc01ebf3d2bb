/* waitpoint_make.h - creates a waitpoint, or finds the one with its idempotency key. */
#pragma once

#include "api/waitpoints/waitpoint_load.h"

struct waitpoint_make {
    struct api_call *call;
    struct waitpoint waitpoint;   /* the new one; the caller may set further fields */
    const struct waitpoint *made; /* out: the new one, or the one found by the key */
    bool cached;                  /* out: made was found by the key */
    void (*done)(struct waitpoint_make *make, enum err status);

    struct waitpoint_load old; /* loads the one found by the key or request id */
    struct claim claim;
    struct change change;
    struct document_write write;
};

void waitpoint_make_init(struct waitpoint_make *make, struct api_call *call,
                         void (*done)(struct waitpoint_make *make, enum err status));
void waitpoint_make_finish(struct waitpoint_make *make);

/* Read the body: of a token with timeout and tags, or of a time. Both may have a key.
 * Return ERR_INVALID with the message in call->why. */
enum err waitpoint_make_read_token(struct waitpoint_make *make, const json_t *body);
enum err waitpoint_make_read_time(struct waitpoint_make *make, const json_t *body);

/* Stores the waitpoint and calls done once. space: a namespace for the idempotency key;
 * equal keys in different spaces do not conflict. */
void waitpoint_make_begin(struct waitpoint_make *make, struct slice space);
