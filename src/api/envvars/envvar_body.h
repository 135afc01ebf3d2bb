/* envvar_body.h - what a call on environment variables wants set. */
#pragma once

#include "api/request/call.h"

struct wish {
    struct slice name, value; /* decoded */
};

struct envvar_wishes {
    struct wish *own;     /* for the environment of the call */
    struct wish *parents; /* for its parent, when it is a branch */
    size_t own_count, parent_count;
    bool override;
    int is_secret;   /* -1: as it was */
    struct buf text; /* what names and values point into */
};

/* What is wrong with a body that is JSON: where, and what is expected there. */
struct complaint {
    const char *path, *message;
};

/* Gives back false with a complaint when the body, which api_read_object has accepted, has
 * another form. The name is that of the path, for forms without one. */
typedef bool wishes_read_fn(struct slice body, struct slice name,
                            struct envvar_wishes *wishes, struct complaint *wrong);

/* {name, value, isSecret?} */
wishes_read_fn wishes_read_one;
/* {value} */
wishes_read_fn wishes_read_value;
/* {variables, override?, parentVariables?, isSecret?, source?} */
wishes_read_fn wishes_read_many;

/* Wipes the values. */
void wishes_finish(struct envvar_wishes *wishes);
