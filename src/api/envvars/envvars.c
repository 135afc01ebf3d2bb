/* envvars.c - the routes of environment variables, and the handlers that read them.
 *
 *   /api/v1/projects/{ref}/envvars/{env}             GET list     POST create
 *                                       /import                   POST upload
 *                                       /{name}      GET retrieve PUT, POST update  DELETE
 */
#include "accounts/variables.h"
#include "api/envvars/envvar_write.h"
#include "api/request/project.h"
#include "api/request/route.h"
#include "base/mem.h"

enum { NO_BODY = 4096, BODY_MAX = 512 * 1024 };

static enum err find(struct api_call *call, struct account **account)
{
    return project_find_environment(call, call->params[0], call->params[1], account);
}

/* ---- reading ---- */

static void add_variable(struct buf *out, const struct variable *variable)
{
    bool secret = variable->is_secret;
    buf_add_text(out, "{\"name\":");
    buf_add_json(out, slice_of(variable->name));
    buf_add_text(out, ",\"value\":");
    buf_add_json(out, secret ? SLICE("<redacted>") : variable->value);
    buf_print(out, ",\"isSecret\":%s}", secret ? "true" : "false");
}

static enum err list(struct api_call *call)
{
    struct account *account;
    struct variable_walk walk = { 0 };
    struct buf out = { 0 };
    enum err err = find(call, &account);
    if (err)
        return err;
    buf_add_char(&out, '[');
    for (const struct variable *v; (v = variables_next(account, &walk));) {
        if (out.len > 1)
            buf_add_char(&out, ',');
        add_variable(&out, v);
    }
    buf_add_char(&out, ']');
    api_reply_json(call, 200, buf_slice(&out));
    buf_finish(&out);
    return OK;
}

static enum err retrieve(struct api_call *call)
{
    struct account *account;
    struct buf out = { 0 };
    enum err err = find(call, &account);
    if (err)
        return err;
    const struct variable *variable = variables_find(account, call->params[2]);
    if (!variable)
        return explain(&call->why, ERR_NOT_FOUND, "Environment variable not found");
    add_variable(&out, variable);
    api_reply_json(call, 200, buf_slice(&out));
    buf_finish(&out);
    return OK;
}

/* ---- writing ---- */

static enum err begin_or_refuse(struct api_call *call, struct account *account,
                                enum write_kind kind, struct envvar_inputs *inputs,
                                bool read, const struct body_error *wrong,
                                const char *title)
{
    struct environment *env = engine_environment(api_engine(call->api), account->number);
    enum err over = read ? engine_check_quota(env, call->x->body.len, &call->why) : OK;
    if (read && !over) {
        envvar_write_begin(call, account, kind, inputs);
        return OK;
    }
    envvar_inputs_finish(inputs);
    if (over)
        return over;
    api_reply_details(call, title, "issues", wrong->path, wrong->message);
    return OK;
}

/* Finds the environment, reads the inputs from the body, and begins the write. */
static enum err write_inputs(struct api_call *call, envvar_inputs_read_fn *read_inputs,
                             enum write_kind kind, const char *title)
{
    struct account *account;
    struct slice body;
    struct envvar_inputs inputs;
    struct body_error wrong;
    enum err err = find(call, &account);
    if (err || (err = api_read_object(call, &body)))
        return err;
    bool read = read_inputs(body, call->params[2], &inputs, &wrong);
    return begin_or_refuse(call, account, kind, &inputs, read, &wrong, title);
}

static enum err create(struct api_call *call)
{
    return write_inputs(call, envvar_inputs_read_one, WRITE_MANY, "Invalid request body");
}

static enum err upload(struct api_call *call)
{
    return write_inputs(call, envvar_inputs_read_many, WRITE_IMPORT, "Invalid body");
}

static enum err update(struct api_call *call)
{
    return write_inputs(call, envvar_inputs_read_value, WRITE_ONE, "Invalid request body");
}

static enum err remove_one(struct api_call *call)
{
    struct account *account;
    enum err err = find(call, &account);
    if (err)
        return err;
    struct envvar_inputs inputs = { .own = mem_new(struct envvar_input), .own_count = 1 };
    buf_add(&inputs.text, call->params[2]);
    inputs.own->name = buf_slice(&inputs.text);
    envvar_write_begin(call, account, WRITE_DELETE, &inputs);
    return OK;
}

enum { BOTH = AUTH_KEY | AUTH_PERSONAL | AUTH_FOR_USER };

#define VARIABLES "/api/v1/projects/{projectRef}/envvars/{env}"

/* clang-format off */
static const struct route routes[] = {
    { .method = HTTP_GET_, .path = VARIABLES,
      .auth = BOTH, .body_limit = NO_BODY, .handle = list,
      .id = "list_project_envvars_v1", .summary = "List variables",
      .reply = "EnvironmentVariable[]" },
    { .method = HTTP_POST_, .path = VARIABLES,
      .auth = BOTH, .body_limit = BODY_MAX, .handle = create,
      .id = "create_project_envvar_v1", .summary = "Create a variable",
      .body = "{name: string, value: string, isSecret?: boolean, ...}",
      .reply = "{success: boolean}",
      .also = "409 422 507" },
    { .method = HTTP_POST_, .path = VARIABLES "/import",
      .auth = BOTH, .body_limit = BODY_MAX, .handle = upload,
      .id = "upload_project_envvars_v1", .summary = "Upload variables",
      .body = "{variables: {*: string}, parentVariables?: {*: string}, override?: boolean, "
          "isSecret?: boolean, source?: {type: 'user'|'integration', userId?: string, "
          "integration?: string, ...}, ...}",
      .reply = "{success: boolean, skipped?: SkippedVariable[]}",
      .also = "422 507" },
    { .method = HTTP_GET_, .path = VARIABLES "/{name}",
      .auth = BOTH, .body_limit = NO_BODY, .handle = retrieve,
      .id = "get_project_envvar_v1", .summary = "Retrieve a variable",
      .reply = "EnvironmentVariable" },
    { .method = HTTP_PUT_, .path = VARIABLES "/{name}",
      .auth = BOTH, .body_limit = BODY_MAX, .handle = update,
      .id = "update_project_envvar_v1", .summary = "Update a variable",
      .body = "{value: string, ...}",
      .reply = "{success: boolean}",
      .also = "422 507" },
    { .method = HTTP_POST_, .path = VARIABLES "/{name}",
      .auth = BOTH, .body_limit = BODY_MAX, .handle = update,
      .id = "post_project_envvar_v1", .summary = "Update a variable, as older clients do",
      .body = "{value: string, ...}",
      .reply = "{success: boolean}",
      .also = "422 507" },
    { .method = HTTP_DELETE_, .path = VARIABLES "/{name}",
      .auth = BOTH, .body_limit = NO_BODY, .handle = remove_one,
      .id = "delete_project_envvar_v1", .summary = "Delete a variable",
      .reply = "{success: boolean}" },
    { 0 },
};
/* clang-format on */

static const struct schema schemas[] = {
    { "EnvironmentVariable", "{name: string, value: string, isSecret: boolean}" },
    { "SkippedVariable", "{key: string, error: string}" },
    { 0 },
};

const struct area envvars_area = {
    .tag = "envvars", .is_for_users = true, .routes = routes, .schemas = schemas
};
