/* envvar_body.h - reads which environment variables a call sets. */
#pragma once

#include "api/request/call.h"

struct wish {
    struct slice name, value; /* decoded */
};

struct envvar_wishes {
    struct wish *own;     /* for the environment of the call */
    struct wish *parents; /* for the parent of the environment, if it is a branch */
    size_t own_count, parent_count;
    bool override;
    int is_secret;   /* -1: unchanged */
    struct buf text; /* names and values point into it */
};

/* Why a body of valid JSON is malformed: where, and what is expected there. */
struct complaint {
    const char *path, *message;
};

/* Reads a body that api_read_object has accepted. Returns false with *wrong if it is
 * malformed. name: from the path, for bodies without one. Call wishes_finish in either
 * case. */
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
