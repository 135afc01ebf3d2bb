/* openapi.c - writes the routes as an OpenAPI 3.1 document.
 *
 * A route's row (api/request/route.h) has everything about its operation: who may call it,
 * how large a body may be, and the refusals that follow from both. */
#include "api/router/openapi.h"

#include "api/request/route.h"
#include "api/request/type.h"

static const struct {
    const char *tag, *summary;
} tags[] = {
    { "runs", "Trigger, follow and control runs" },
    { "batches", "Trigger many runs at once" },
    { "queues", "Queued runs and their limits" },
    { "concurrencyLimits", "Limits that runs of several queues share" },
    { "environments", "Activity of an environment" },
    { "schedules", "Runs at the times of a cron expression" },
    { "envvars", "Variables that tasks see" },
    { "tokens", "Public tokens, for browsers and programs" },
    { "packets", "Payloads too large to inline" },
    { "projects", "Projects and preview branches" },
    { "deployments", "From a bundle to the version that executes runs" },
    { "realtime", "Changes as they happen" },
    { "streams", "Data streams between tasks and readers" },
    { "waitpoints", "Tokens and timers that runs wait for" },
    { "workers", "Calls from workers" },
    { "gateways", "The gateways on the database" },
    { "admin", "The gateway itself" },
};

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

/* Returns the name in "{name}" or "{name*}". */
static struct slice name_of(struct slice segment)
{
    bool is_rest = segment.ptr[segment.len - 2] == '*';
    return (struct slice){ segment.ptr + 1, segment.len - 2 - is_rest };
}

static void add_parameters(struct buf *out, const struct route *route)
{
    struct slice path = slice_of(route->path), segment;
    struct type_field field;
    struct buf type = { 0 };
    const char *query = route->query ? route->query : "";

    buf_add_text(out, ",\"parameters\":[");
    while (slice_split(&path, '/', &segment))
        if (segment.len && segment.ptr[0] == '{')
            add_parameter(out, "path", name_of(segment), true,
                          SLICE("{\"type\":\"string\"}"));
    while (type_next_field(&query, &field, &type)) {
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
    type_add_schema(type, out);
    buf_add_text(out, "}}");
}

static void add_refusal(struct buf *out, const char *status)
{
    buf_print(out, ",\"%s\":{\"$ref\":\"#/components/responses/%s\"}", status, status);
}

static void add_refusals(struct buf *out, const struct route *route)
{
    struct slice also = slice_of(route->also), status;
    if (route->body || route->query || strchr(route->path, '{'))
        add_refusal(out, "400");
    if (route->auth)
        add_refusal(out, "401");
    if (route->auth & (AUTH_PUBLIC | AUTH_SIGNED | AUTH_FOR_USER))
        add_refusal(out, "403");
    if (strchr(route->path, '{'))
        add_refusal(out, "404");
    if (route->body)
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
                  { AUTH_WORKER, "workerToken" },
                  { AUTH_BUILD, "buildKey" },
                  { AUTH_FOR_USER, "userAccessToken" } };
    buf_add_text(out, ",\"security\":[");
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (auth & kinds[i].auth)
            buf_print(out, "%s{\"%s\":[]}", out->ptr[out->len - 1] == '[' ? "" : ",",
                      kinds[i].name);
    buf_add_char(out, ']');
}

static void add_operation(struct buf *out, const struct route *route,
                          const struct area *area)
{
    unsigned status = route->status ? route->status : 200;
    buf_print(out, "\"%s\":{\"operationId\":\"%s\",\"summary\":\"%s\",\"tags\":[\"%s\"]",
              route->is_head ? "head" : methods[route->method], route->id, route->summary,
              area->tag);
    add_security(out, route->auth);
    add_parameters(out, route);
    if (route->body) {
        buf_print(out, ",\"requestBody\":{\"description\":\"At most %zu bytes.\",",
                  route->body_limit);
        add_content(out, route->takes, route->body);
        buf_add_char(out, '}');
    }
    buf_print(out, ",\"responses\":{\"%u\":{\"description\":\"%s\"", status,
              route->summary);
    buf_add_text(out, ",\"headers\":{\"x-ignored-members\":{\"$ref\":"
                      "\"#/components/headers/x-ignored-members\"}}");
    if (route->reply) {
        buf_add_char(out, ',');
        add_content(out, route->gives, route->reply);
    }
    buf_add_char(out, '}');
    add_refusals(out, route);
    buf_add_text(out, "}}");
}

/* ---- the document ---- */

struct areas {
    const struct area *const *all;
    size_t count;
};

/* Adds every method of the path. Several areas may have the same path. */
static void add_methods(struct buf *out, const struct areas *areas, const char *path)
{
    for (size_t i = 0; i < areas->count; i++)
        for (const struct route *r = areas->all[i]->routes; r->path; r++) {
            if (strcmp(r->path, path) != 0)
                continue;
            if (out->ptr[out->len - 1] != '{')
                buf_add_char(out, ',');
            add_operation(out, r, areas->all[i]);
        }
}

static bool is_first(const struct areas *areas, const struct route *route)
{
    for (size_t i = 0; i < areas->count; i++)
        for (const struct route *r = areas->all[i]->routes; r->path; r++)
            if (!strcmp(r->path, route->path))
                return r == route;
    return false;
}

/* Adds the path as its row has it, without the star of "{name*}". */
static void add_path(struct buf *out, const char *path)
{
    for (; *path; path++)
        if (*path != '*')
            buf_add_char(out, *path);
}

static void add_paths(struct buf *out, const struct areas *areas)
{
    bool any = false;
    buf_add_text(out, ",\"paths\":{");
    for (size_t i = 0; i < areas->count; i++)
        for (const struct route *r = areas->all[i]->routes; r->path; r++) {
            if (!is_first(areas, r))
                continue;
            buf_add_text(out, any ? ",\"" : "\"");
            add_path(out, r->path);
            buf_add_text(out, "\":{");
            add_methods(out, areas, r->path);
            buf_add_char(out, '}');
            any = true;
        }
    buf_add_char(out, '}');
}

static void add_tags(struct buf *out)
{
    buf_add_text(out, ",\"tags\":[");
    for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++)
        buf_print(out, "%s{\"name\":\"%s\",\"description\":\"%s.\"}", i ? "," : "",
                  tags[i].tag, tags[i].summary);
    buf_add_char(out, ']');
}

static void add_schemas(struct buf *out, const struct areas *areas)
{
    buf_add_text(out, "\"schemas\":{\"Error\":");
    type_add_schema("{error: string, ...}", out);
    for (size_t i = 0; i < areas->count; i++) {
        const struct schema *schema = areas->all[i]->schemas;
        for (; schema && schema->name; schema++) {
            buf_print(out, ",\"%s\":", schema->name);
            type_add_schema(schema->type, out);
        }
    }
    buf_add_char(out, '}');
}

static const struct {
    const char *status, *text;
} refusals[] = {
    { "304", "The client already has this version" },
    { "400", "The request is invalid; the text says where" },
    { "401", "The credential is missing, unknown, or of the wrong kind" },
    { "403", "The token's scopes do not allow it" },
    { "404", "Not found in this environment" },
    { "405", "The path does not support this method" },
    { "408", "The body took too long to arrive" },
    { "409", "The current state does not allow it" },
    { "410", "The requested data is no longer kept" },
    { "413", "The body is too large" },
    { "415", "The content type is not supported" },
    { "421", "The dashboard is not served under this host name" },
    { "422", "A rule of the service does not allow it" },
    { "426", "A WebSocket upgrade is required" },
    { "429", "Too many requests" },
    { "503", "Unavailable because of storage, a start or a stop; try again" },
    { "507", "The project has reached its storage quota; trying again does not help" },
};

static void add_responses(struct buf *out)
{
    buf_add_text(out, ",\"responses\":{");
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        buf_print(out, "%s\"%s\":{\"description\":\"%s.\"", i ? "," : "",
                  refusals[i].status, refusals[i].text);
        if (refusals[i].status[0] != '3')
            buf_add_text(out, ",\"content\":{\"application/json\":{\"schema\":{"
                              "\"$ref\":\"#/components/schemas/Error\"}}}");
        buf_add_char(out, '}');
    }
    buf_add_char(out, '}');
}

static const char headers[] =
    ",\"headers\":{\"x-ignored-members\":{\"description\":\"Members of the body, as paths, "
    "and query parameters that have no effect, at most 16.\",\"schema\":{"
    "\"type\":\"string\",\"maxLength\":1024}}}";

static const char security[] =
    ",\"securitySchemes\":{"
    "\"secretKey\":{\"type\":\"http\",\"scheme\":\"bearer\","
    "\"description\":\"tr_dev_…, tr_stg_…, tr_prod_…: everything in one environment\"},"
    "\"publicAccessToken\":{\"type\":\"http\",\"scheme\":\"bearer\","
    "\"bearerFormat\":\"JWT\",\"description\":\"Whatever its scopes permit; for "
    "browsers\"},"
    "\"personalAccessToken\":{\"type\":\"http\",\"scheme\":\"bearer\","
    "\"description\":\"tr_pat_…: the projects of its user's organizations\"},"
    "\"userAccessToken\":{\"type\":\"http\",\"scheme\":\"bearer\","
    "\"bearerFormat\":\"JWT\",\"description\":\"A public access token that "
    "/api/v1/projects/{projectRef}/{env}/jwt has signed for a user, with the scope "
    "read:TAG "
    "or write:TAG of the operation's tag, or admin\"},"
    "\"workerToken\":{\"type\":\"http\",\"scheme\":\"bearer\","
    "\"description\":\"tr_wgt_…: runs of a project, for its workers\"},"
    "\"buildKey\":{\"type\":\"http\",\"scheme\":\"bearer\","
    "\"description\":\"Valid for one build, while it lasts: reports on its version\"}}";

struct bytes *openapi_write(const struct area *const *all, size_t count)
{
    const struct areas areas = { all, count };
    struct buf out = { 0 };
    buf_add_text(
        &out,
        "{\"openapi\":\"3.1.0\",\"info\":{\"title\":\"runcast\",\"version\":"
        "\"2024-04\",\"summary\":\"Runs background tasks, and reports every change of "
        "a run\",\"license\":{\"name\":\"Apache-2.0\",\"identifier\":"
        "\"Apache-2.0\"}},\"servers\":[{\"url\":\"/\"}]");
    add_tags(&out);
    add_paths(&out, &areas);
    buf_add_text(&out, ",\"components\":{");
    add_schemas(&out, &areas);
    add_responses(&out);
    buf_add_text(&out, headers);
    buf_add_text(&out, security);
    buf_add_text(&out, "}}");
    struct bytes *document = buf_to_bytes(&out);
    buf_finish(&out);
    return document;
}
