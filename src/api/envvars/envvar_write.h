/* envvar_write.h - sets and deletes environment variables, a project's one after the other.
 */
#pragma once

#include "api/envvars/envvar_body.h"
#include "api/request/call.h"

enum write_kind {
    WRITE_MANY,   /* all of the wishes, or none */
    WRITE_IMPORT, /* the same, but for those that could never be set: they are left out */
    WRITE_ONE,    /* one that the project knows */
    WRITE_DELETE  /* the value of the one that is named */
};

/* Takes over the wishes, and answers the call later. */
void envvar_write_begin(struct api_call *call, struct account *account,
                        enum write_kind kind, const struct envvar_wishes *wishes);
