/* type.h - a short notation for the types of bodies and queries.
 *
 *   string  string(1..128)  integer(0..100)  number  boolean  null  datetime  any
 *   'word'  Name  type[]  type | type
 *   {name: type, maybe?: type}  {*: type}  {a: type, ...}
 *
 * An object has exactly the listed members, unless it ends with "...". */
#pragma once

#include "base/buf.h"

/* Appends the type as JSON Schema. */
void type_add_schema(const char *type, struct buf *out);

/* Reads one field of "name?: type, …" at a time; appends its type as JSON Schema. Returns
 * false after the last. */
struct type_field {
    struct slice name;
    bool is_optional;
};
bool type_next_field(const char **text, struct type_field *field, struct buf *type);

/* The same, but returns the type in the short notation. */
bool type_skip_field(const char **text, struct type_field *field, struct slice *type);

/* Returns one type, up to the end or to one of the characters `ends` outside its braces. */
struct slice type_skip(const char **text, const char *ends);
