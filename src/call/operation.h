/* operation.h - what a route is for: its name, parameters and schemas, for /openapi.json.
 *
 * Each area has a table of operations beside its routes (openapi_<area>.c). The route's own
 * table says who may call it and how large a body is; the operation says the rest. Types
 * are written briefly (openapi_schema.c):
 *
 *   string  string(1..128)  integer(0..100)  number  boolean  null  datetime  any
 *   'word'  Name  type[]  type | type
 *   {name: type, maybe?: type}  {*: type}  {a: type, ...}
 *
 * An object has the members that are listed and no others, unless it ends with "...". */
#pragma once

#include "call/call.h"

struct operation {
    enum http_method method;
    const char *path;    /* with {names} where the route has ":" or "*" */
    const char *id;      /* "retrieve_queue_v1" */
    const char *summary; /* a few words */
    const char *query;   /* "page?: integer, filter[tag]?: string"; NULL: none */
    const char *body;    /* a type; NULL: none */
    const char *takes;   /* content type of the body; NULL: application/json */
    unsigned status;     /* of success; 0: 200 */
    const char *reply;   /* a type; NULL: no body */
    const char *gives;   /* content type of the reply; NULL: application/json */
    bool is_head;        /* only HEAD of the route's GET is an operation */
    const char *also;    /* statuses that its kind of route does not have: "409 422" */
};

struct schema {
    const char *name; /* NULL ends a table */
    const char *type;
};

/* The tag of its operations. */
struct area {
    const char *tag, *summary;
    bool is_for_users; /* of SDKs: members of a body that nobody reads are told */
    const struct operation *operations; /* id NULL ends it */
    const struct schema *schemas;
};

#define AREA(tag, users, text)                                                             \
    extern const struct operation tag##_operations[];                                      \
    extern const struct schema tag##_schemas[];
#include "call/areas.def"
#undef AREA

/* NULL: nobody has said what the route is for. */
const struct operation *operation_of(const struct route *route);

const struct operation *operation_find(const struct route *route, const struct area **area);

/* The document, generated from the tables of routes; the caller's reference. */
struct bytes *openapi_write(const struct route *const *tables, size_t count);

/* ---- notation ---- */

void openapi_add_type(const char *type, struct buf *out);

/* Of a schema; NULL: there is none of that name. */
const char *openapi_named_type(struct slice name);

/* One field of "name?: type, …" at a time; false behind the last. The type is JSON. */
struct openapi_field {
    struct slice name;
    bool is_optional;
};
bool openapi_next_field(const char **text, struct openapi_field *field, struct buf *type);

/* The same, the type in our notation. */
bool openapi_skim_field(const char **text, struct openapi_field *field, struct slice *type);

/* One type, up to one of the characters outside of its braces, or the end. */
struct slice openapi_skim(const char **text, const char *ends);
