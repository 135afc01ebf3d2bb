/* completion_error.h - turns an error that a worker sent into the form that a run stores.
 *
 * A run stores one of four types (BUILT_IN_ERROR, CUSTOM_ERROR, STRING_ERROR,
 * INTERNAL_ERROR), and at most about 1 MiB. An error within these limits keeps its
 * bytes. */
#pragma once

#include "api/request/body_fields.h"
#include "base/buf.h"

enum {
    COMPLETION_TEXT_MAX = 256 * 1024,   /* bytes of one text of an error */
    COMPLETION_ERROR_MAX = 1024 * 1024, /* bytes of all its texts */
    COMPLETION_LOOKED_AT_MAX = 16384,   /* members of an object that are read: 2 ms */
};

/* Appends the error as JSON. Texts that are too long are cut and end in "… (cut, 1.3 MB)".
 * An unknown type, or an error that is not an object, becomes an INTERNAL_ERROR with its
 * text. error is a value in the body's object; absent: the worker sent none. */
void completion_error_add(struct buf *out, struct body_fields *fields, struct slice error);

/* Appends an INTERNAL_ERROR of this code; escapes the message. */
void completion_error_add_internal(struct buf *out, const char *code, struct slice message);
