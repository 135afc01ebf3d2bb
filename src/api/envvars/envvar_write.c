/* envvar_write.c - sets and deletes environment variables.
 *
 *   body ─► inputs ─► one write of the project at a time ─► decide ─► one commit ─► memory
 *                      └─ the others wait in order           all of it, or nothing
 *
 * A decision depends on the variables that are set (override, known names, limits), so a
 * project's writes are done one after another. */
#include "api/envvars/envvar_write.h"

#include "accounts/variables.h"
#include "api/envvars/envvars.h"
#include "base/mem.h"

struct envvars {
    struct loop *loop;
    struct list running, waiting; // envvar_write::link
    struct deferred next;         /* starts waiting writes */
    struct vault *vault;
    struct vault_waiter waiter; /* waits for the end of a key rotation */
};

/* One change of the commit, copied to memory after it. */
struct plan {
    struct account *account;
    struct slice name, value; /* point into the inputs; value absent: delete */
    bool is_secret;
};

struct envvar_write {
    struct api_call *call;
    struct account *account;
    struct environment *env; /* the account's; held */
    enum write_kind kind;
    struct envvar_inputs inputs;
    struct plan *plans;
    struct change *changes;
    size_t count, sealed; /* number of plans; of changes made from them */
    struct deferred deferred;
    struct buf errors;  /* elements of variableErrors */
    struct buf skipped; /* the same for those that an import leaves out */
    /* the error message; NULL: call->why has it, or there is no error */
    const char *refused;
    struct slice wrong_name; /* the first variable that cannot be set; absent: none */
    const char *wrong;       /* why */
    struct document_write write;
    struct account *reading; /* the account whose variables are read again */
    struct store_scan scan;
    bool read_again;
    struct list link; // envvars::running or waiting
};

/* ---- errors ---- */

static void blame(struct buf *list, struct slice name, const char *format, const char *more)
{
    struct buf text = { 0 };
    buf_add_text(list, list->len ? ",{\"key\":" : "{\"key\":");
    buf_add_json(list, name);
    buf_add_text(list, ",\"error\":");
    buf_add_text(&text, format);
    buf_add_text(&text, more);
    buf_add_json(list, buf_slice(&text));
    buf_add_char(list, '}');
    buf_finish(&text);
}

static const char *title_of(const struct account *account)
{
    static const char *const titles[] = {
        [ENVIRONMENT_DEV] = "Development.",
        [ENVIRONMENT_STAGING] = "Staging.",
        [ENVIRONMENT_PROD] = "Production.",
        [ENVIRONMENT_PREVIEW] = "Preview.",
    };
    return titles[account->type];
}

static bool is_blank(const struct envvar_input *input)
{
    return !slice_trim(input->name).len || !slice_trim(input->value).len;
}

/* Returns why no environment may have the variable; NULL if one may. Files written for
 * other systems often contain such variables, so an import leaves them out. */
static const char *why_never(const struct envvar_input *input)
{
    if (variable_name_is_reserved(input->name))
        return "The name is not allowed: the gateway sets it for its tasks.";
    if (!variable_name_is_valid(input->name))
        return "The name must be 1 to 256 letters, digits, underscores, dots or dashes, "
               "and begin with a letter, a digit or an underscore.";
    return is_blank(input) ? "The value is empty." : NULL;
}

static const char *why_not(const struct envvar_input *input)
{
    const char *never = why_never(input);
    if (never)
        return never;
    if (input->value.len > VARIABLE_VALUE_MAX)
        return "The value is longer than 65536 bytes.";
    if (memchr(input->value.ptr, '\0', input->value.len))
        return "The value has a zero byte, which no process can have.";
    return NULL;
}

/* Adds a variable that cannot be set to a list. SDKs show the error alone, so that names
 * the first. */
static void note_wrong(struct envvar_write *op, struct buf *list,
                       const struct envvar_input *input, const char *reason)
{
    blame(list, input->name, reason, "");
    if (op->wrong)
        return;
    op->wrong_name = input->name;
    op->wrong = reason;
}

static bool may_be_set(struct envvar_write *op, const struct envvar_input *input)
{
    const char *reason = why_not(input);
    if (reason)
        note_wrong(op, &op->errors, input, reason);
    return !reason;
}

/* Leaves out invalid variables, even when the write is decided again. */
static void leave_out(struct envvar_write *op, struct envvar_input *inputs, size_t *count)
{
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++) {
        const char *reason = why_never(&inputs[i]);
        if (reason)
            note_wrong(op, &op->skipped, &inputs[i], reason);
        else
            inputs[kept++] = inputs[i];
    }
    *count = kept;
}

/* Returns true if all variables may be set. Otherwise lists those that may not. */
static bool may_all_be_set(struct envvar_write *op, const struct envvar_input *inputs,
                           size_t count)
{
    bool right = true;
    size_t reserved = 0, useless = 0;
    for (size_t i = 0; i < count; i++) {
        right = may_be_set(op, &inputs[i]) && right;
        reserved += variable_name_is_reserved(inputs[i].name);
        useless += is_blank(&inputs[i]) || variable_name_is_reserved(inputs[i].name);
    }
    if (!right && useless < count)
        op->refused = "Some of the variables cannot be set.";
    else if (!right)
        op->refused = reserved ? "You must set at least one valid variable. All the "
                                 "variables submitted are not allowed."
                               : "You must set at least one valid variable.";
    return right;
}

/* ---- deciding ---- */

static bool secret_from_now_on(const struct envvar_write *op, const struct account *account,
                               struct slice name)
{
    const struct variable *now = variables_find(account, name);
    if (op->inputs.is_secret >= 0)
        return op->inputs.is_secret;
    return now && now->is_secret;
}

static void plan_one(struct envvar_write *op, struct account *account, struct slice name,
                     struct slice value)
{
    bool is_secret = secret_from_now_on(op, account, name);
    op->plans[op->count++] = (struct plan){ account, name, value, is_secret };
}

struct variable_sum {
    size_t count, bytes; /* number of variables; bytes of names and values */
};

static void add_held(struct variable_sum *sum, const struct account *account)
{
    const struct variables *now = account->variables;
    sum->count += now ? now->count : 0;
    sum->bytes += now ? now->bytes : 0;
}

/* Adds the changes of the plans from this one on. */
static void add_planned(struct variable_sum *sum, const struct envvar_write *op,
                        size_t from)
{
    for (size_t i = from; i < op->count; i++) {
        const struct plan *plan = &op->plans[i];
        const struct variable *old = variables_own(plan->account, plan->name);
        sum->count += !old;
        sum->bytes += plan->name.len + plan->value.len;
        sum->bytes -= old ? plan->name.len + old->value.len : 0;
    }
}

/* Returns true if the variables would be within 1/part of the limits of a project, or no
 * more than now. */
static bool is_within(const struct envvar_write *op, struct variable_sum now, size_t part)
{
    struct variable_sum next = now;
    add_planned(&next, op, 0);
    return (next.count <= PROJECT_VARIABLES_MAX / part || next.count <= now.count) &&
           (next.bytes <= PROJECT_VARIABLES_BYTES_MAX / part || next.bytes <= now.bytes);
}

/* Returns true if the project would be within its limits, and its preview branches within
 * their part of these if the variables are for one. */
static bool project_fits(const struct envvar_write *op)
{
    const struct account *own = op->account;
    struct variable_sum all = { 0 }, branches = { 0 };
    for (struct account *a = NULL; (a = accounts_next(api_accounts(op->call->api), a));) {
        if (a->project != own->project || a->archived)
            continue;
        add_held(&all, a);
        if (accounts_are_branches(a, own))
            add_held(&branches, a);
    }
    bool is_branch = own->type == ENVIRONMENT_PREVIEW;
    return is_within(op, all, 1) && (!is_branch || is_within(op, branches, BRANCHES_PART));
}

/* Returns true if the environment and its project would be within their limits. Otherwise
 * sets op->refused. */
static bool fits(struct envvar_write *op, const struct account *account, size_t from)
{
    struct variable_sum next = { 0 };
    add_held(&next, account);
    add_planned(&next, op, from);
    if (next.count > VARIABLES_MAX || next.bytes > VARIABLES_BYTES_MAX)
        op->refused = "An environment holds at most 1000 variables, and 256 KiB of names "
                      "and values.";
    else if (!project_fits(op))
        op->refused =
            "The environments of a project hold together at most 20000 variables, "
            "and 5 MiB of names and values, its preview branches half of that: delete "
            "some, or archive preview branches that are no longer used.";
    else
        return true;
    return false;
}

static bool are_new(struct envvar_write *op, const struct account *account,
                    const struct envvar_input *inputs, size_t count)
{
    bool are_new = true;
    for (size_t i = 0; i < count; i++) {
        if (!variables_own(account, inputs[i].name))
            continue;
        blame(&op->errors, inputs[i].name, "Variable already set in ", title_of(account));
        are_new = false;
    }
    if (!are_new)
        op->refused = "Some of the variables are already set for these environments. Set "
                      "override to true to override them.";
    return are_new;
}

/* Plans to set all variables of the inputs. Returns false with op->refused if none is
 * set. */
static bool plan_many(struct envvar_write *op, struct account *account,
                      const struct envvar_input *inputs, size_t count)
{
    size_t from = op->count;
    if (!count) {
        op->refused = "You must set at least one valid variable.";
        return false;
    }
    if (!op->inputs.override && !are_new(op, account, inputs, count))
        return false;
    for (size_t i = 0; i < count; i++)
        plan_one(op, account, inputs[i].name, inputs[i].value);
    if (fits(op, account, from))
        return true;
    op->count = from;
    return false;
}

static enum err decide_many(struct envvar_write *op)
{
    struct envvar_inputs *inputs = &op->inputs;
    struct account *parent = op->account->parent;
    if (op->kind == WRITE_IMPORT) {
        leave_out(op, inputs->own, &inputs->own_count);
        leave_out(op, inputs->parents, &inputs->parent_count);
    }
    if (!may_all_be_set(op, inputs->own, inputs->own_count) ||
        (parent && !may_all_be_set(op, inputs->parents, inputs->parent_count)))
        return ERR_INVALID;
    if (!parent && inputs->parent_count) /* only a branch has a parent */
        ignored_add_parameter(&op->call->ignored, SLICE("parentVariables"));
    bool planned = plan_many(op, op->account, inputs->own, inputs->own_count);
    if (parent && inputs->parent_count)
        planned |= plan_many(op, parent, inputs->parents, inputs->parent_count);
    return planned ? OK : ERR_INVALID;
}

/* Plans to set one variable. Its name is known in the project. */
static enum err decide_one(struct envvar_write *op)
{
    const struct envvar_input *input = op->inputs.own;
    if (!may_be_set(op, input)) {
        op->refused = "Some of the variables cannot be set.";
        return ERR_INVALID;
    }
    plan_one(op, op->account, input->name, input->value);
    return fits(op, op->account, 0) ? OK : ERR_INVALID;
}

static enum err decide_delete(struct envvar_write *op)
{
    struct slice name = op->inputs.own->name;
    if (!variables_own(op->account, name)) {
        op->refused = "Environment variable value not found";
        return ERR_INVALID;
    }
    plan_one(op, op->account, name, (struct slice){ 0 });
    return OK;
}

static enum err decide(struct envvar_write *op)
{
    struct accounts *accounts = api_accounts(op->call->api);
    if (op->kind == WRITE_MANY || op->kind == WRITE_IMPORT)
        return decide_many(op);
    if (!variables_known(accounts, op->account->project, op->inputs.own->name))
        return explain(&op->call->why, ERR_NOT_FOUND, "Environment variable not found");
    return op->kind == WRITE_ONE ? decide_one(op) : decide_delete(op);
}

/* ---- the write ---- */

static void write_free(struct envvar_write *op)
{
    environment_release(op->env);
    envvar_inputs_finish(&op->inputs);
    buf_finish(&op->errors);
    buf_finish(&op->skipped);
    free(op->plans);
    free(op->changes);
    free(op);
}

static void add_list(struct buf *out, const char *member, const struct buf *elements)
{
    if (!elements->len)
        return;
    buf_print(out, ",\"%s\":[", member);
    buf_add(out, buf_slice(elements));
    buf_add_char(out, ']');
}

static void reply_set(struct envvar_write *op)
{
    struct buf out = { 0 };
    buf_add_text(&out, "{\"success\":true");
    add_list(&out, "skipped", &op->skipped);
    buf_add_char(&out, '}');
    api_reply_json(op->call, 200, buf_slice(&out));
    buf_finish(&out);
}

static void reply_refused(struct envvar_write *op)
{
    struct buf out = { 0 }, error = { 0 };
    buf_add_text(&error, op->refused);
    if (op->wrong)
        buf_print(&error, " %.*s: %s", SLICE_ARG(text_clip(op->wrong_name)), op->wrong);
    buf_add_text(&out, "{\"error\":");
    buf_add_json(&out, buf_slice(&error));
    buf_finish(&error);
    add_list(&out, "variableErrors", op->errors.len ? &op->errors : &op->skipped);
    buf_add_char(&out, '}');
    api_reply_json(op->call, errors[ERR_INVALID].http_status, buf_slice(&out));
    buf_finish(&out);
}

/* Replies, and lets the project's next write begin. */
static void envvar_write_finish(struct envvar_write *op, enum err status)
{
    struct envvars *envvars = api_envvars(op->call->api);
    if (status && op->refused)
        reply_refused(op);
    else if (status)
        api_reply_error(op->call, status);
    else
        reply_set(op);
    list_remove(&op->link);
    write_free(op);
    vault_release(envvars->vault);
    loop_defer(envvars->loop, &envvars->next);
}

static void remember(const struct plan *plan, const struct change *change)
{
    if (plan->value.ptr)
        variables_put(plan->account, plan->name, plan->value, plan->is_secret,
                      change->expected + 1);
    else
        variables_remove(plan->account, plan->name);
}

static void read_again(struct envvar_write *op, struct account *account);

static void on_written(struct document_write *write, enum err status)
{
    struct envvar_write *op = container_of(write, struct envvar_write, write);
    op->refused = NULL;
    if (status == ERR_CONFLICT && !op->read_again) {
        op->read_again = true;
        read_again(op, op->account);
        return;
    }
    for (size_t i = 0; !status && i < op->count; i++)
        remember(&op->plans[i], &op->changes[i]);
    envvar_write_finish(op, status);
}

/* Seals the changes in time slices, because sealing is slow. The project's other writes
 * wait. */
static void seal_some(struct deferred *deferred)
{
    struct envvar_write *op = container_of(deferred, struct envvar_write, deferred);
    struct envvars *envvars = api_envvars(op->call->api);
    struct timeslice timeslice = loop_timeslice(envvars->loop);
    while (op->sealed < op->count && timeslice_left(&timeslice)) {
        const struct plan *plan = &op->plans[op->sealed];
        op->changes[op->sealed++] = variable_change(
            envvars->vault, plan->account, plan->name, plan->value, plan->is_secret);
    }
    if (op->sealed < op->count) {
        loop_defer(envvars->loop, deferred);
        return;
    }
    documents_write_begin(api_engine(op->call->api), op->changes, op->count, &op->write,
                          on_written);
}

static void proceed(struct envvar_write *op)
{
    op->count = op->sealed = 0;
    buf_clear(&op->errors);
    enum err refused = decide(op);
    if (refused || !op->count)
        envvar_write_finish(op, refused);
    else
        seal_some(&op->deferred);
}

static void start(struct envvars *envvars, struct envvar_write *op)
{
    size_t room = op->inputs.own_count + op->inputs.parent_count;
    op->plans = mem_new_array(struct plan, room);
    op->changes = mem_new_array(struct change, room);
    list_append(&envvars->running, &op->link);
    proceed(op);
}

/* ---- reading again, after a commit of unknown outcome ---- */

static enum err take_again(struct envvar_write *op)
{
    struct accounts *accounts = api_accounts(op->call->api);
    enum err err = OK;
    variables_clear(op->reading);
    for (size_t i = 0; i < op->scan.count && !err; i++)
        err = variables_restore(accounts, &op->scan.documents[i], &op->call->why);
    store_read_finish(&op->scan.read);
    return err ? ERR_INTERNAL : OK;
}

static void on_scanned(struct store_read *read, enum store_status status)
{
    struct envvar_write *op = container_of(read, struct envvar_write, scan.read);
    struct account *parent = op->reading->parent;
    enum err err = status ? err_of_store(status) : take_again(op);
    if (err)
        envvar_write_finish(op, err);
    else if (parent)
        read_again(op, parent);
    else
        proceed(op);
}

static void read_again(struct envvar_write *op, struct account *account)
{
    struct store *store = engine_store(api_engine(op->call->api));
    op->reading = account;
    op->scan = (struct store_scan){ .read = { READ_SCAN, account->number, on_scanned },
                                    .kind = DOC_VARIABLE };
    store->ops->read(store, &op->scan.read);
}

/* ---- turns ---- */

static bool is_running(const struct envvars *envvars, const struct project *project)
{
    list_each (link, &envvars->running)
        if (container_of(link, struct envvar_write, link)->account->project == project)
            return true;
    return false;
}

static void refuse_all(struct envvars *envvars)
{
    while (!list_empty(&envvars->waiting)) {
        struct list *link = list_take(&envvars->waiting);
        struct envvar_write *op = container_of(link, struct envvar_write, link);
        api_reply_error(op->call, ERR_STORE);
        write_free(op);
    }
}

static bool may_seal(struct envvars *envvars)
{
    switch (vault_hold(envvars->vault)) {
    case VAULT_HELD: return true;
    case VAULT_WAIT: vault_wait(envvars->vault, &envvars->waiter); break;
    case VAULT_SHUT: refuse_all(envvars); break;
    }
    return false;
}

static void start_waiting(struct deferred *deferred)
{
    struct envvars *envvars = container_of(deferred, struct envvars, next);
    struct timeslice timeslice = loop_timeslice(envvars->loop);
    list_each (link, &envvars->waiting) {
        struct envvar_write *op = container_of(link, struct envvar_write, link);
        if (is_running(envvars, op->account->project))
            continue;
        if (!timeslice_left(&timeslice)) {
            loop_defer(envvars->loop, deferred);
            return;
        }
        if (!may_seal(envvars))
            return;
        list_remove(link);
        start(envvars, op);
    }
}

static void on_rotated(struct vault_waiter *waiter)
{
    struct envvars *envvars = container_of(waiter, struct envvars, waiter);
    loop_defer(envvars->loop, &envvars->next);
}

struct envvars *envvars_create(struct loop *loop, struct vault *vault)
{
    struct envvars *envvars = mem_new(struct envvars);
    envvars->loop = loop;
    envvars->vault = vault;
    envvars->next.fn = start_waiting;
    envvars->waiter.fn = on_rotated;
    list_init(&envvars->waiter.link);
    list_init(&envvars->next.link);
    list_init(&envvars->running);
    list_init(&envvars->waiting);
    return envvars;
}

void envvars_destroy(struct envvars *envvars)
{
    loop_cancel_deferred(&envvars->next);
    vault_wait_no_more(&envvars->waiter);
    free(envvars);
}

void envvar_write_begin(struct api_call *call, struct account *account,
                        enum write_kind kind, const struct envvar_inputs *inputs)
{
    struct envvars *envvars = api_envvars(call->api);
    struct envvar_write *op = mem_new(struct envvar_write);
    op->call = call;
    op->account = account;
    op->env = engine_environment(api_engine(call->api), account->number);
    environment_hold(op->env);
    op->kind = kind;
    op->inputs = *inputs;
    op->deferred.fn = seal_some;
    list_init(&op->deferred.link);
    call->busy = true;
    list_append(&envvars->waiting, &op->link);
    loop_defer(envvars->loop, &envvars->next);
}
