/* type.h - types of bodies and queries, written briefly.
 *
 *   string  string(1..128)  integer(0..100)  number  boolean  null  datetime  any
 *   'word'  Name  type[]  type | type
 *   {name: type, maybe?: type}  {*: type}  {a: type, ...}
 *
 * An object has the members that are listed and no others, unless it ends with "...". */
#pragma once

#include "base/buf.h"

/* Appends the type as JSON Schema. */
void type_add_schema(const char *type, struct buf *out);

/* One field of "name?: type, …" at a time; false behind the last. The type is JSON. */
struct type_field {
    struct slice name;
    bool is_optional;
};
bool type_next_field(const char **text, struct type_field *field, struct buf *type);

/* The same, the type in our notation. */
bool type_skim_field(const char **text, struct type_field *field, struct slice *type);

/* One type, up to one of the characters outside of its braces, or the end. */
struct slice type_skim(const char **text, const char *ends);
