/* envvar_body.h - what a call on environment variables wants set (management-api §11). */
#pragma once

#include "call/call.h"

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

/* Each gives back false with a complaint when the body has another form. The bodies are
 * what api_read_object has accepted; {name, value, isSecret?}, {value} and {variables,
 * override?, parentVariables?, isSecret?, source?}. */
bool wishes_read_one(struct slice body, struct envvar_wishes *wishes,
                     struct complaint *wrong);
bool wishes_read_value(struct slice body, struct slice name, struct envvar_wishes *wishes,
                       struct complaint *wrong);
bool wishes_read_many(struct slice body, struct envvar_wishes *wishes,
                      struct complaint *wrong);

/* Wipes the values. */
void wishes_finish(struct envvar_wishes *wishes);
