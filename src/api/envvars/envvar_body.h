/* envvar_body.h - reads which environment variables a call sets. */
#pragma once

#include "api/request/call.h"

struct envvar_input {
    struct slice name, value; /* decoded */
};

struct envvar_inputs {
    struct envvar_input *own;     /* for the environment of the call */
    struct envvar_input *parents; /* for the environment's parent, if it is a branch */
    size_t own_count, parent_count;
    bool override;
    int is_secret;   /* -1: unchanged */
    struct buf text; /* names and values point into it */
};

/* Why a body of valid JSON is malformed: where, and what is expected there. */
struct body_error {
    const char *path, *message;
};

/* Reads a body that api_read_object has accepted. Returns false with *wrong if it is
 * malformed. name: from the path, for bodies without one. Call envvar_inputs_finish in
 * either case. */
typedef bool envvar_inputs_read_fn(struct slice body, struct slice name,
                                   struct envvar_inputs *inputs, struct body_error *wrong);

/* {name, value, isSecret?} */
envvar_inputs_read_fn envvar_inputs_read_one;
/* {value} */
envvar_inputs_read_fn envvar_inputs_read_value;
/* {variables, override?, parentVariables?, isSecret?, source?} */
envvar_inputs_read_fn envvar_inputs_read_many;

/* Wipes the values. */
void envvar_inputs_finish(struct envvar_inputs *inputs);
