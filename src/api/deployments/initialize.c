/* initialize.c - the call that creates a deployment from an uploaded bundle.
 *
 *   the same call came before? ─► held with its deployment
 *   external id: deployed ─► existing; in progress ─► 409, or with force it is canceled
 *     └─► in memory, and held ─► the bundle: hashed, and kept ─► the row, written
 *
 * The CLI can deploy in several ways, of which one is accepted: an uploaded bundle. The
 * others are refused with a text that says what to do instead. Values of a build's
 * variables are kept as they arrived, as spans of the body.
 *
 * The upload is removed when the row is written: if the gateway is killed in between, the
 * next attempt still finds it. A failure before that is reported to all calls that are
 * held. */
#include "accounts/variables.h"
#include "api/artifacts/artifacts.h"
#include "api/artifacts/kept_files.h"
#include "api/deployments/build_variables.h"
#include "api/deployments/builds.h"
#include "api/deployments/deployment_calls.h"
#include "api/deployments/deployment_due.h"
#include "api/deployments/holding.h"
#include "api/request/request_log.h"
#include "base/json/members.h"
#include "base/json/scan.h"
#include "base/log.h"
#include "base/mem.h"

/* ---- the body ---- */

enum {
    REQUEST_TTL_MS = 3600 * 1000,
    GIT_BYTES_MAX = 16 * 1024,
    GIT_DEPTH_MAX = 8,
    SHORT_TEXT_MAX = 256,
    UNFINISHED_MAX = 10, /* deployments in progress per environment */
    /* All preview branches of a project. So a project has 50: prod and staging have ten
     * each, which branches cannot use up. */
    UNFINISHED_BRANCHES_MAX = 30,
};

struct initialize_body {
    struct deployment_row row; /* as far as the body has it */
    struct bytes *artifact_key;
    struct bytes *variables; /* of its build: a JSON object of strings; NULL: none */
    bool force;
};

static enum err initialize_refuse(struct api_call *call, const char *text)
{
    return explain(&call->why, ERR_INVALID, "%s", text);
}

/* *out stays NULL if it is missing or null. Returns ERR_INVALID if it is not a text, or too
 * long. */
static enum err read_text(struct api_call *call, struct slice body, const char *member,
                          size_t most, struct bytes **out)
{
    struct slice value = scan_member(body, member);
    struct bytes *text = members_text_of(value);
    if (!value.ptr || scan_type(value) == SCAN_NULL)
        return OK;
    if (!text || text->len > most || memchr(text->data, 0, text->len)) {
        bytes_unref(text);
        return explain(&call->why, ERR_INVALID,
                       "Validation error: %s must be a string of at most %zu bytes", member,
                       most);
    }
    *out = text;
    return OK;
}

/* Reads a flag. Missing or null is false: a decision about production is never guessed. */
static enum err read_flag(struct api_call *call, struct slice body, const char *member,
                          bool *out)
{
    struct slice value = scan_member(body, member);
    enum scan_type type = scan_type(value);
    *out = type == SCAN_TRUE;
    if (type == SCAN_NONE || type == SCAN_NULL || type == SCAN_TRUE || type == SCAN_FALSE)
        return OK;
    return explain(&call->why, ERR_INVALID, "Validation error: %s must be true or false",
                   member);
}

/* ---- which way of building ---- */

static enum err check_way(struct api_call *call, struct slice body)
{
    struct bytes *type = members_text(body, "type");
    bool has_type = type, is_managed = type && slice_is(bytes_slice(type), "MANAGED");
    bool is_local, is_native, is_bundle;
    bytes_unref(type);
    if (call->account->type == ENVIRONMENT_DEV)
        return initialize_refuse(
            call, "A development environment has no deployments; use trigger dev");
    if (!has_type)
        return initialize_refuse(call, "This CLI is too old for this gateway; upgrade the "
                                       "CLI to 4.x and deploy again");
    if (!is_managed)
        return initialize_refuse(call, "Validation error: type must be \"MANAGED\"");
    if (read_flag(call, body, "isLocalBuild", &is_local) ||
        read_flag(call, body, "isNativeBuild", &is_native) ||
        read_flag(call, body, "fromBundle", &is_bundle))
        return ERR_INVALID;
    if ((is_local || !is_native) &&
        !builds_are_served(api_deployments(call->api), call->account))
        return initialize_refuse(call,
                                 "This gateway does not execute deployments; start it with "
                                 "--execute or start a supervise role, and deploy again");
    if (is_local || !is_native)
        return initialize_refuse(
            call, "This gateway builds deployments itself and has no image registry; "
                  "deploy without --local-build and --depot-build");
    if (!is_bundle)
        return initialize_refuse(
            call, "this gateway takes bundles: deploy without --native-build, or "
                  "with --native-build --local-bundle");
    return OK;
}

/* ---- members ---- */

static enum err read_hash(struct api_call *call, struct slice body,
                          struct deployment_row *row)
{
    struct bytes *hash = NULL;
    enum err err =
        read_text(call, body, "contentHash", sizeof(row->content_hash) - 1, &hash);
    if (!err && (!hash || !hash->len))
        err = initialize_refuse(call, "Validation error: contentHash is missing");
    if (!err)
        snprintf(row->content_hash, sizeof(row->content_hash), "%s", hash->data);
    bytes_unref(hash);
    return err;
}

static enum err read_external_id(struct api_call *call, struct slice body,
                                 struct initialize_body *read)
{
    struct bytes *given = NULL;
    enum err err = read_text(call, body, "externalId", (size_t)8 * EXTERNAL_ID_MAX, &given);
    struct slice id = slice_trim(bytes_slice(given));
    err = err ? err : read_flag(call, body, "force", &read->force);
    if (!err && text_utf16_length(id) > EXTERNAL_ID_MAX)
        err = explain(&call->why, ERR_INVALID,
                      "Validation error: externalId must be at most %d characters",
                      EXTERNAL_ID_MAX);
    if (!err && id.len)
        read->row.external_id = bytes_create(id);
    if (!err && read->force && !id.len)
        err = initialize_refuse(call, "Validation error: force requires externalId");
    bytes_unref(given);
    return err;
}

static enum err read_git(struct api_call *call, struct slice body,
                         struct deployment_row *row)
{
    struct slice git = scan_member(body, "gitMeta");
    if (!git.ptr || scan_type(git) == SCAN_NULL)
        return OK;
    if (scan_type(git) != SCAN_OBJECT || git.len > GIT_BYTES_MAX ||
        scan_deeper_than(git, GIT_DEPTH_MAX))
        return explain(&call->why, ERR_INVALID,
                       "Validation error: gitMeta must be an object of at most %d bytes",
                       GIT_BYTES_MAX);
    row->git = bytes_create(git);
    return OK;
}

static enum err check_variable(struct api_call *call, struct slice key, struct slice value,
                               size_t *bytes)
{
    struct buf name = { 0 };
    buf_add_char(&name, '"');
    buf_add(&name, key);
    buf_add_char(&name, '"');
    struct bytes *text = members_text_of(buf_slice(&name));
    bool right = text && variable_name_is_valid(bytes_slice(text)) &&
                 scan_type(value) == SCAN_STRING && value.len <= VARIABLE_VALUE_MAX;
    bytes_unref(text);
    buf_finish(&name);
    *bytes += key.len + value.len;
    if (!right)
        return initialize_refuse(
            call, "Validation error: buildEnvVars must map names of variables to "
                  "strings");
    return *bytes <= VARIABLES_BYTES_MAX
               ? OK
               : explain(&call->why, ERR_INVALID,
                         "Validation error: buildEnvVars may have %d bytes together",
                         VARIABLES_BYTES_MAX);
}

static enum err read_variables(struct api_call *call, struct slice body,
                               struct initialize_body *read)
{
    struct slice variables = scan_member(body, "buildEnvVars"), key, value;
    size_t bytes = 0;
    enum err err = OK;
    if (!variables.ptr || scan_type(variables) == SCAN_NULL)
        return OK;
    if (scan_type(variables) != SCAN_OBJECT ||
        !scan_has_at_most(variables, VARIABLES_MAX) || scan_has_duplicate(variables))
        return explain(&call->why, ERR_INVALID,
                       "Validation error: buildEnvVars must be an object of at most %d "
                       "variables",
                       VARIABLES_MAX);
    struct scan_members members = scan_members(variables);
    while (!err && scan_next_member(&members, &key, &value))
        err = check_variable(call, key, value, &bytes);
    if (!err && bytes)
        read->variables = bytes_create(variables);
    return err;
}

static enum err read_key(struct api_call *call, struct slice body,
                         struct initialize_body *read)
{
    enum err err =
        read_text(call, body, "artifactKey", SHORT_TEXT_MAX, &read->artifact_key);
    if (!err && !read->artifact_key)
        err = initialize_refuse(call, "Validation error: artifactKey is missing; upload "
                                      "the bundle first (POST /api/v1/artifacts)");
    return err;
}

static enum err read_members(struct api_call *call, struct slice body,
                             struct initialize_body *read)
{
    struct deployment_row *row = &read->row;
    enum err err = check_way(call, body);
    err = err ? err : read_hash(call, body, row);
    err = err ? err : read_key(call, body, read);
    err = err ? err : read_external_id(call, body, read);
    err = err ? err : read_text(call, body, "runtime", SHORT_TEXT_MAX, &row->runtime);
    err = err ? err
              : read_text(call, body, "triggeredVia", SHORT_TEXT_MAX, &row->triggered_via);
    err = err ? err : read_git(call, body, row);
    err = err ? err : read_variables(call, body, read);
    return err ? err : read_flag(call, body, "skipPromotion", &row->skip_promotion);
}

static void finish_body(struct initialize_body *body)
{
    deployment_row_finish(&body->row);
    bytes_unref(body->artifact_key);
    build_variables_forget(&body->variables);
    *body = (struct initialize_body){ 0 };
}

static enum err read_body(struct api_call *call, struct initialize_body *body)
{
    struct slice text;
    unsigned char hash[HASH_LEN];
    *body = (struct initialize_body){ 0 };
    enum err err = api_read_object(call, &text);
    if (err)
        return err;
    err = read_members(call, text, body);
    if (err) {
        finish_body(body);
        return err;
    }
    vault_hash(text, hash);
    text_to_hex(hash, sizeof(hash), body->row.request_hash);
    body->row.request = bytes_create(api_request_id(call));
    return OK;
}

/* A deployment that has no row in the store yet. */
struct deployment_making {
    struct deployment *deployment;
    struct artifacts *artifacts;
    struct artifact *artifact;
    struct kept_taking taking;
    struct deployment_command command;
};

static struct deployments *all_of(const struct api_call *call)
{
    return api_deployments(call->api);
}

static struct deployment_set *set_of(const struct api_call *call)
{
    return deployments_of(all_of(call), call->account->number);
}

/* ---- making it ---- */

static void making_free(struct deployment_making *op)
{
    free(op->taking.from);
    free(op);
}

static enum err decide_make(struct deployment_command *command,
                            const struct deployment *deployment,
                            struct deployment_row *next)
{
    (void)command;
    if (deployment_is_final(deployment->row.status)) /* it was canceled meanwhile */
        next->archive_bytes = 0;
    return OK;
}

static void on_made(struct deployment_command *command, struct deployment *deployment,
                    enum err status)
{
    struct deployment_making *op = container_of(command, struct deployment_making, command);
    op->artifact->state = ARTIFACT_WHOLE;
    if (status || !deployment->row.archive_bytes)
        kept_files_remove(deployment->all->files, op->taking.name);
    if (!status)
        artifact_remove(op->artifacts, op->artifact);
    making_free(op);
}

/* Fails the deployment, because its bundle could not be taken. Removes an upload that is
 * not a bundle. */
static void refuse_bundle(struct deployment_making *op)
{
    const struct failure *why = &op->taking.why;
    op->artifact->state = ARTIFACT_WHOLE;
    if (why->code == ERR_RULE)
        artifact_remove(op->artifacts, op->artifact);
    bool is_canceled = op->deployment->document || !list_empty(&op->deployment->commands);
    if (!is_canceled)
        deployment_lose(op->deployment, why);
    making_free(op);
}

static void on_taken(struct kept_taking *taking)
{
    struct deployment_making *op = container_of(taking, struct deployment_making, taking);
    struct deployment *deployment = op->deployment;
    deployment->all->busy--;
    deployment->taking = NULL;
    if (taking->why.code) {
        refuse_bundle(op);
        return;
    }
    deployment->row.archive_bytes = op->artifact->length;
    memcpy(deployment->row.archive_hash, taking->hash, sizeof(taking->hash));
    op->command.decide = decide_make;
    op->command.done = on_made;
    deployment_command_begin(deployment, &op->command);
}

static void take_bundle(struct deployment *deployment, struct artifacts *artifacts,
                        struct artifact *artifact)
{
    struct deployment_making *op = mem_new(struct deployment_making);
    op->deployment = deployment;
    op->artifacts = artifacts;
    op->artifact = artifact;
    op->taking.name = kept_file_name(deployment->env, deployment->row.id, ".tar.gz");
    op->taking.from = artifact_path(artifacts, artifact, false);
    op->taking.size = artifact->length;
    op->taking.done = on_taken;
    artifact->state = ARTIFACT_TAKING;
    deployment->all->busy++;
    deployment->taking = &op->taking;
    kept_taking_begin(deployment->all->files, &op->taking);
}

/* ---- a repeated call ---- */

static struct deployment *same_call(const struct api_call *call,
                                    const struct initialize_body *body)
{
    int64_t since = loop_wall_ms(all_of(call)->loop) - REQUEST_TTL_MS;
    if (!body->row.request)
        return NULL;
    list_each (link, &set_of(call)->all) {
        struct deployment *deployment = container_of(link, struct deployment, link);
        if (deployment->row.created_at > since &&
            slice_equal(bytes_slice(deployment->row.request),
                        bytes_slice(body->row.request)) &&
            !strcmp(deployment->row.request_hash, body->row.request_hash))
            return deployment;
    }
    return NULL;
}

/* ---- external ids ---- */

static bool has_id(const struct deployment *deployment, const struct bytes *id)
{
    return slice_equal(bytes_slice(deployment->row.external_id), bytes_slice(id));
}

static struct deployment *in_progress(const struct api_call *call, const struct bytes *id)
{
    list_each (link, &set_of(call)->all) {
        struct deployment *deployment = container_of(link, struct deployment, link);
        if (!deployment_is_final(deployment->row.status) && has_id(deployment, id))
            return deployment;
    }
    return NULL;
}

/* Returns the newest that is kept: its version is the highest. */
static struct deployment *deployed(const struct api_call *call, const struct bytes *id)
{
    list_each (link, &set_of(call)->all) {
        struct deployment *deployment = container_of(link, struct deployment, link);
        if (deployment->row.status == DEPLOYMENT_DEPLOYED &&
            deployment->row.archive_bytes && has_id(deployment, id))
            return deployment;
    }
    return NULL;
}

/* Cancels deployments in progress with this id. Returns their list; NULL: none. */
static json_t *cancel_others(const struct api_call *call, const struct bytes *id)
{
    json_t *canceled = NULL;
    list_each (link, &set_of(call)->all) {
        struct deployment *deployment = container_of(link, struct deployment, link);
        if (deployment_is_final(deployment->row.status) || !has_id(deployment, id))
            continue;
        canceled = canceled ? canceled : json_array();
        json_array_append_new(canceled,
                              json_pack("{s:s, s:s}", "version", deployment->row.version,
                                        "shortCode", deployment->row.short_code));
        deployment_end(deployment, DEPLOYMENT_CANCELED, NULL,
                       bytes_create(SLICE("another deployment with its external id was "
                                          "forced")));
    }
    return canceled;
}

/* ---- the call ---- */

static enum err find_artifact(struct api_call *call, const struct initialize_body *body,
                              struct artifact **artifact)
{
    *artifact = artifacts_find(api_artifacts(call->api), call->account->number,
                               bytes_slice(body->artifact_key));
    if (*artifact && (*artifact)->state == ARTIFACT_WHOLE)
        return engine_check_quota(call->env, (size_t)(*artifact)->length, &call->why);
    return explain(
        &call->why, ERR_INVALID,
        "artifactKey: bundle not found: it was not uploaded, was used, or has expired");
}

/* Returns true if the deployment counts for the limits. Those that the call's external id
 * cancels now do not. */
static bool counts(const struct api_call *call, const struct initialize_body *body,
                   const struct deployment *deployment)
{
    return !body->force || deployment->env != call->account->number ||
           !has_id(deployment, body->row.external_id);
}

/* Limits deployments in progress: each has a bundle on the disk, and may wait for a builder
 * for 15 minutes. */
static enum err check_unfinished(struct api_call *call, const struct initialize_body *body)
{
    unsigned of_environment = 0, of_branches = 0;
    list_each (link, &all_of(call)->active) {
        const struct deployment *deployment = container_of(link, struct deployment, active);
        if (!counts(call, body, deployment))
            continue;
        const struct account *account =
            accounts_by_number(all_of(call)->accounts, deployment->env);
        of_environment += account == call->account;
        of_branches += accounts_are_branches(account, call->account);
    }
    if (of_environment >= UNFINISHED_MAX)
        return explain(&call->why, ERR_BUSY,
                       "The environment has %u deployments in progress (max %d); wait "
                       "until one has ended, or cancel one",
                       of_environment, UNFINISHED_MAX);
    if (of_branches >= UNFINISHED_BRANCHES_MAX)
        return explain(
            &call->why, ERR_BUSY,
            "The preview branches of the project have %u deployments in progress "
            "(max %d); wait until one has ended, or cancel one",
            of_branches, UNFINISHED_BRANCHES_MAX);
    return OK;
}

static void log_audit_entry(const struct api_call *call,
                            const struct deployment *deployment)
{
    char actor[ACTOR_TEXT];
    request_log_actor(call, actor);
    log_audit("deploy", "by", actor, "environment", call->account->id, "deployment",
              deployment->row.id, "version", deployment->row.version, NULL);
}

static void make(struct api_call *call, struct initialize_body *body,
                 struct artifact *artifact)
{
    struct deployments *all = all_of(call);
    struct holding_extras extras = { 0 };
    int64_t now = loop_wall_ms(all->loop);
    if (body->force)
        extras.canceled = cancel_others(call, body->row.external_id);
    deployment_row_name(&body->row, now);
    workers_take_version(call->env->fleet->workers, now, body->row.version);
    body->row.created_at = now;
    struct deployment *deployment =
        deployments_add(all, call->account->number, &body->row, body->variables);
    body->variables = NULL;
    log_audit_entry(call, deployment);
    take_bundle(deployment, api_artifacts(call->api), artifact);
    holding_begin(call, deployment, extras);
}

static enum err initialize_begin(struct api_call *call, struct initialize_body *body)
{
    const struct bytes *id = body->row.external_id;
    struct deployment *known = same_call(call, body);
    struct artifact *artifact;
    if (known) {
        holding_begin(call, known, (struct holding_extras){ 0 });
        return OK;
    }
    if (id && !body->force && (known = in_progress(call, id)))
        return explain(&call->why, ERR_CONFLICT,
                       "Version %s is being deployed with this external id; wait for it, "
                       "or deploy with --force",
                       known->row.version);
    if (id && !body->force && (known = deployed(call, id))) {
        holding_reply_existing(call, known);
        return OK;
    }
    enum err refused = check_unfinished(call, body);
    refused = refused ? refused : find_artifact(call, body, &artifact);
    if (!refused)
        make(call, body, artifact);
    return refused;
}

enum err deployment_initialize(struct api_call *call)
{
    struct initialize_body body;
    enum err refused = read_body(call, &body);
    if (refused)
        return refused;
    refused = initialize_begin(call, &body);
    finish_body(&body);
    return refused;
}
