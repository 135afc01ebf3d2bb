/* envvar_write.h - sets and deletes environment variables, one write at a time. */
#pragma once

#include "api/envvars/envvar_body.h"
#include "api/request/call.h"

enum write_kind {
    WRITE_MANY,   /* all of the inputs, or none */
    WRITE_IMPORT, /* the same, but skips variables that can never be set */
    WRITE_ONE,    /* one whose name is known in the project */
    WRITE_DELETE  /* deletes the value of the named one */
};

/* Begins a write. Takes ownership of the content of inputs. Replies to the call later. */
void envvar_write_begin(struct api_call *call, struct account *account,
                        enum write_kind kind, const struct envvar_inputs *inputs);
