/* openapi.c - the routes and their operations as an OpenAPI 3.1 document.
 *
 * Walks the tables of routes, so what is not routed is not in it, and a route without an
 * operation is missed by a test. Who may call, how large a body may be and which refusals
 * follow from both comes from the route. */
#include "call/operation.h"

static const struct area areas[] = {
#define AREA(tag, users, text) { #tag, text, users, tag##_operations, tag##_schemas },
#include "call/areas.def"
#undef AREA
};

enum { AREAS = sizeof(areas) / sizeof(areas[0]) };

/* ---- which operation ---- */

static bool fits(const char *path, const char *pattern)
{
    struct slice left = slice_of(path), right = slice_of(pattern), name, segment;
    while (slice_split(&left, '/', &name)) {
        if (!slice_split(&right, '/', &segment))
            return false;
        bool is_param = slice_is(segment, ":") || slice_is(segment, "*");
        if (is_param ? name.ptr[0] != '{' : !slice_equal(name, segment))
            return false;
    }
    return !right.ptr;
}

const struct operation *operation_find(const struct route *route, const struct area **area)
{
    for (*area = areas; *area < areas + AREAS; (*area)++)
        for (const struct operation *op = (*area)->operations; op->id; op++)
            if (op->method == route->method && fits(op->path, route->pattern))
                return op;
    return NULL;
}

const struct operation *operation_of(const struct route *route)
{
    const struct area *area;
    return operation_find(route, &area);
}

const char *openapi_named_type(struct slice name)
{
    for (size_t i = 0; i < AREAS; i++)
        for (const struct schema *schema = areas[i].schemas; schema->name; schema++)
            if (slice_is(name, schema->name))
                return schema->type;
    return NULL;
}

/* ---- one operation ---- */

static const char *const methods[] = { "get", "head", "post", "put", "patch", "delete" };

static void add_parameter(struct buf *out, const char *where, struct slice name,
                          bool is_required, struct slice type)
{
    if (out->ptr[out->len - 1] != '[')
        buf_add_char(out, ',');
    buf_print(out, "{\"name\":\"%.*s\",\"in\":\"%s\",\"required\":%s,\"schema\":%.*s}",
              SLICE_ARG(name), where, is_required ? "true" : "false", SLICE_ARG(type));
}

static void add_parameters(struct buf *out, const struct operation *op)
{
    struct slice path = slice_of(op->path), segment;
    struct openapi_field field;
    struct buf type = { 0 };
    const char *query = op->query ? op->query : "";

    buf_add_text(out, ",\"parameters\":[");
    while (slice_split(&path, '/', &segment))
        if (segment.len && segment.ptr[0] == '{')
            add_parameter(out, "path", (struct slice){ segment.ptr + 1, segment.len - 2 },
                          true, SLICE("{\"type\":\"string\"}"));
    while (openapi_next_field(&query, &field, &type)) {
        add_parameter(out, "query", field.name, !field.is_optional, buf_slice(&type));
        buf_clear(&type);
    }
    buf_add_char(out, ']');
    buf_finish(&type);
}

static void add_content(struct buf *out, const char *content_type, const char *type)
{
    buf_print(out, "\"content\":{\"%s\":{\"schema\":",
              content_type ? content_type : "application/json");
    openapi_add_type(type, out);
    buf_add_text(out, "}}");
}

static void add_refusal(struct buf *out, const char *status)
{
    buf_print(out, ",\"%s\":{\"$ref\":\"#/components/responses/%s\"}", status, status);
}

static void add_refusals(struct buf *out, const struct route *route,
                         const struct operation *op)
{
    struct slice also = slice_of(op->also), status;
    if (op->body || op->query || strchr(op->path, '{'))
        add_refusal(out, "400");
    if (route->auth)
        add_refusal(out, "401");
    if (route->auth & (AUTH_PUBLIC | AUTH_SIGNED))
        add_refusal(out, "403");
    if (strchr(op->path, '{'))
        add_refusal(out, "404");
    if (op->body)
        add_refusal(out, "413");
    if (route->auth)
        add_refusal(out, "429");
    add_refusal(out, "503");
    while (slice_split(&also, ' ', &status)) {
        char text[4];
        snprintf(text, sizeof(text), "%.*s", SLICE_ARG(status));
        add_refusal(out, text);
    }
}

static void add_security(struct buf *out, unsigned auth)
{
    static const struct {
        unsigned auth;
        const char *name;
    } kinds[] = { { AUTH_KEY, "secretKey" },
                  { AUTH_PUBLIC, "publicAccessToken" },
                  { AUTH_PERSONAL, "personalAccessToken" },
                  { AUTH_WORKER, "workerToken" } };
    buf_add_text(out, ",\"security\":[");
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (auth & kinds[i].auth)
            buf_print(out, "%s{\"%s\":[]}", out->ptr[out->len - 1] == '[' ? "" : ",",
                      kinds[i].name);
    buf_add_char(out, ']');
}

static void add_operation(struct buf *out, const struct route *route,
                          const struct operation *op, const struct area *area)
{
    unsigned status = op->status ? op->status : 200;
    buf_print(out, "\"%s\":{\"operationId\":\"%s\",\"summary\":\"%s\",\"tags\":[\"%s\"]",
              op->is_head ? "head" : methods[op->method], op->id, op->summary, area->tag);
    add_security(out, route->auth);
    add_parameters(out, op);
    if (op->body) {
        buf_print(out, ",\"requestBody\":{\"description\":\"At most %zu bytes.\",",
                  route->body_limit);
        add_content(out, op->takes, op->body);
        buf_add_char(out, '}');
    }
    buf_print(out, ",\"responses\":{\"%u\":{\"description\":\"%s\"", status, op->summary);
    buf_add_text(out, ",\"headers\":{\"x-ignored-members\":{\"$ref\":"
                      "\"#/components/headers/x-ignored-members\"}}");
    if (op->reply) {
        buf_add_char(out, ',');
        add_content(out, op->gives, op->reply);
    }
    buf_add_char(out, '}');
    add_refusals(out, route, op);
    buf_add_text(out, "}}");
}

/* ---- the document ---- */

/* The same path may be in several tables: all of its methods come with the first. */
struct seen {
    const struct route *const *tables;
    size_t count;
};

static void add_methods(struct buf *out, const struct seen *all, const char *pattern)
{
    const struct area *area;
    const struct operation *op;
    for (size_t t = 0; t < all->count; t++)
        for (const struct route *r = all->tables[t]; r->pattern; r++) {
            if (strcmp(r->pattern, pattern) != 0 || !(op = operation_find(r, &area)))
                continue;
            if (out->ptr[out->len - 1] != '{')
                buf_add_char(out, ',');
            add_operation(out, r, op, area);
        }
}

static bool is_first(const struct seen *all, const struct route *route)
{
    for (size_t t = 0; t < all->count; t++)
        for (const struct route *r = all->tables[t]; r->pattern; r++)
            if (!strcmp(r->pattern, route->pattern) && operation_of(r))
                return r == route;
    return false;
}

static void add_paths(struct buf *out, const struct seen *all)
{
    bool any = false;
    buf_add_text(out, ",\"paths\":{");
    for (size_t t = 0; t < all->count; t++)
        for (const struct route *r = all->tables[t]; r->pattern; r++) {
            if (!is_first(all, r))
                continue;
            buf_print(out, "%s\"%s\":{", any ? "," : "", operation_of(r)->path);
            add_methods(out, all, r->pattern);
            buf_add_char(out, '}');
            any = true;
        }
    buf_add_char(out, '}');
}

static void add_tags(struct buf *out)
{
    buf_add_text(out, ",\"tags\":[");
    for (size_t i = 0; i < AREAS; i++)
        buf_print(out, "%s{\"name\":\"%s\",\"description\":\"%s.\"}", i ? "," : "",
                  areas[i].tag, areas[i].summary);
    buf_add_char(out, ']');
}

static void add_schemas(struct buf *out)
{
    buf_add_text(out, "\"schemas\":{\"Error\":");
    openapi_add_type("{error: string, ...}", out);
    for (size_t i = 0; i < AREAS; i++)
        for (const struct schema *schema = areas[i].schemas; schema->name; schema++) {
            buf_print(out, ",\"%s\":", schema->name);
            openapi_add_type(schema->type, out);
        }
    buf_add_char(out, '}');
}

static const struct {
    const char *status, *text;
} refusals[] = {
    { "400", "The request is wrong; the text says where" },
    { "401", "The credential is missing, unknown, or of another kind" },
    { "403", "The token's scopes do not allow it" },
    { "404", "There is no such thing in this environment" },
    { "405", "The path is there, but not for this method" },
    { "408", "The body took too long to arrive" },
    { "409", "The state does not allow it" },
    { "413", "The body is too large" },
    { "415", "The content type is not one of those taken" },
    { "422", "A rule of the service does not allow it" },
    { "426", "An upgrade is needed" },
    { "429", "Too many requests" },
    { "503", "Not now: storage, start or stop; try again" },
    { "507", "The project stores as much as it may; trying again does not help" },
};

static void add_responses(struct buf *out)
{
    buf_add_text(out, ",\"responses\":{");
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
        buf_print(out,
                  "%s\"%s\":{\"description\":\"%s.\",\"content\":{\"application/json\":{"
                  "\"schema\":{\"$ref\":\"#/components/schemas/Error\"}}}}",
                  i ? "," : "", refusals[i].status, refusals[i].text);
    buf_add_char(out, '}');
}

static const char headers[] =
    ",\"headers\":{\"x-ignored-members\":{\"description\":\"Members of the body, as paths, "
    "and parameters of the query that nobody reads, at most 16 of them.\",\"schema\":{"
    "\"type\":\"string\",\"maxLength\":1024}}}";

static const char security[] =
    ",\"securitySchemes\":{"
    "\"secretKey\":{\"type\":\"http\",\"scheme\":\"bearer\","
    "\"description\":\"tr_dev_…, tr_stg_…, tr_prod_…: everything in one environment\"},"
    "\"publicAccessToken\":{\"type\":\"http\",\"scheme\":\"bearer\","
    "\"bearerFormat\":\"JWT\",\"description\":\"What its scopes say, for browsers\"},"
    "\"personalAccessToken\":{\"type\":\"http\",\"scheme\":\"bearer\","
    "\"description\":\"tr_pat_…: the projects of its user\"},"
    "\"workerToken\":{\"type\":\"http\",\"scheme\":\"bearer\","
    "\"description\":\"tr_wgt_…: runs of a project, for its workers\"}}";

struct bytes *openapi_write(const struct route *const *tables, size_t count)
{
    const struct seen all = { tables, count };
    struct buf out = { 0 };
    buf_add_text(&out,
                 "{\"openapi\":\"3.1.0\",\"info\":{\"title\":\"runcast\",\"version\":"
                 "\"2024-04\",\"summary\":\"Runs of background tasks, and every change of "
                 "them\",\"license\":{\"name\":\"Apache-2.0\",\"identifier\":"
                 "\"Apache-2.0\"}},\"servers\":[{\"url\":\"/\"}]");
    add_tags(&out);
    add_paths(&out, &all);
    buf_add_text(&out, ",\"components\":{");
    add_schemas(&out);
    add_responses(&out);
    buf_add_text(&out, headers);
    buf_add_text(&out, security);
    buf_add_text(&out, "}}");
    struct bytes *document = buf_to_bytes(&out);
    buf_finish(&out);
    return document;
}
