/* deployment_show.c - writes deployments in the forms that the SDK and the CLI read. */
#include "api/deployments/deployment_show.h"

#include "api/deployments/builds.h"
#include "base/json/json_tree.h"
#include "base/json/members.h"
#include "base/json/scan.h"

enum {
    STDERR_LINES = 50,
    CAUSES_MAX = 50, /* files that failed to be imported */
};

static const struct account *account_of(const struct deployment *deployment)
{
    return accounts_by_number(deployment->all->accounts, deployment->env);
}

const struct worker *show_worker_of(const struct deployment *deployment)
{
    const struct environment *env =
        engine_environment(deployment->all->engine, deployment->env);
    return env ? workers_by_deployment(env->fleet->workers, slice_of(deployment->row.id))
               : NULL;
}

/* Returns the platform of the machine that built it, or is likely to build it. */
static const char *platform_of(const struct deployment *deployment)
{
    const char *built = deployment->row.architecture;
    if (!built[0])
        return builds_platform(deployment->all, account_of(deployment));
    return strcmp(built, "arm64") == 0 ? "linux/arm64" : "linux/amd64";
}

static void add_image(const struct deployment *deployment, const char *name,
                      struct buf *out)
{
    struct buf tag = { 0 };
    buf_print(&tag, "runcast/%s:%s", account_of(deployment)->project->ref,
              deployment->row.version);
    members_add_text(out, name, buf_slice(&tag));
    members_add_text(out, "imagePlatform", slice_of(platform_of(deployment)));
    buf_finish(&tag);
}

static void add_head(const struct deployment *deployment, struct buf *out)
{
    const struct deployment_row *row = &deployment->row;
    buf_add_char(out, '{');
    members_add_text(out, "id", slice_of(row->id));
    members_add_text(out, "contentHash", slice_of(row->content_hash));
    members_add_text(out, "shortCode", slice_of(row->short_code));
    members_add_text(out, "version", slice_of(row->version));
}

/* ---- initialize ---- */

static bool is_current(const struct deployment *deployment)
{
    const struct environment *env =
        engine_environment(deployment->all->engine, deployment->env);
    const struct worker *worker = show_worker_of(deployment);
    return worker && workers_current(env->fleet->workers) == worker;
}

void show_initialized(const struct deployment *deployment, bool existing,
                      const json_t *canceled, struct buf *out)
{
    add_head(deployment, out);
    add_image(deployment, "imageTag", out);
    members_add_text(out, "externalId", bytes_slice(deployment->row.external_id));
    members_add_text(out, "outcome", existing ? SLICE("existing") : SLICE("created"));
    if (existing)
        members_add_bool(out, "isPromoted", is_current(deployment));
    if (json_array_size(canceled)) {
        members_add_name(out, "canceledDeployments");
        json_tree_write(canceled, out);
    }
    buf_add_char(out, '}');
}

/* ---- one deployment ---- */

static void add_tasks(const struct worker *worker, struct buf *out)
{
    members_add_name(out, "tasks");
    buf_add_char(out, '[');
    for (size_t i = 0; i < worker->task_count; i++) {
        const struct worker_task *task = &worker->tasks[i];
        struct slice path = bytes_slice(task->file_path);
        buf_add_text(out, i ? ",{" : "{");
        members_add_text(out, "id", bytes_slice(task->id));
        members_add_text(out, "slug", bytes_slice(task->id));
        members_add_text(out, "filePath", path.ptr ? path : SLICE(""));
        members_add_text(out, "exportName", bytes_slice(task->export_name));
        buf_add_char(out, '}');
    }
    buf_add_char(out, ']');
}

static void add_worker(const struct worker *worker, struct buf *out)
{
    members_add_name(out, "worker");
    buf_add_char(out, '{');
    members_add_text(out, "id", slice_of(worker->id));
    members_add_text(out, "version", slice_of(worker->version));
    members_add_json(out, "warnings", bytes_slice(worker->warnings));
    add_tasks(worker, out);
    buf_add_char(out, '}');
}

void show_deployment(const struct deployment *deployment, bool worker, struct buf *out)
{
    const struct deployment_row *row = &deployment->row;
    const struct worker *linked = worker ? show_worker_of(deployment) : NULL;
    struct bytes *commit =
        row->git ? members_text(bytes_slice(row->git), "commitSha") : NULL;
    add_head(deployment, out);
    members_add_text(out, "status", slice_of(deployment_status_name(row->status)));
    add_image(deployment, "imageReference", out);
    members_add_text(out, "commitSHA", bytes_slice(commit));
    members_add_text(out, "externalId", bytes_slice(row->external_id));
    members_add_json(out, "errorData", bytes_slice(row->error));
    members_add_text(out, "canceledReason", bytes_slice(row->canceled_reason));
    if (linked)
        add_worker(linked, out);
    buf_add_char(out, '}');
    bytes_unref(commit);
}

/* ---- a list ---- */

const char *show_item_status(enum deployment_status status)
{
    return deployment_status_name(status == DEPLOYMENT_INSTALLING ? DEPLOYMENT_BUILDING
                                                                  : status);
}

static void add_or_null(struct buf *out, const char *name, struct slice text)
{
    if (text.ptr)
        members_add_text(out, name, text);
    else
        members_add_json(out, name, SLICE("null"));
}

void show_item(const struct deployment *deployment, struct buf *out)
{
    const struct deployment_row *row = &deployment->row;
    buf_add_char(out, '{');
    members_add_text(out, "id", slice_of(row->id));
    members_add_time(out, "createdAt", row->created_at);
    members_add_text(out, "shortCode", slice_of(row->short_code));
    members_add_text(out, "version", slice_of(row->version));
    add_or_null(out, "runtime", bytes_slice(row->runtime));
    add_or_null(out, "runtimeVersion", bytes_slice(row->runtime_version));
    members_add_text(out, "status", slice_of(show_item_status(row->status)));
    members_add_time(out, "deployedAt", row->deployed_at);
    members_add_json(out, "git", bytes_slice(row->git));
    members_add_json(out, "error", bytes_slice(row->error));
    members_add_text(out, "externalId", bytes_slice(row->external_id));
    buf_add_char(out, '}');
}

void show_promoted(const struct deployment *deployment, struct buf *out)
{
    const struct deployment_row *row = &deployment->row;
    buf_add_char(out, '{');
    members_add_text(out, "id", slice_of(row->id));
    members_add_text(out, "version", slice_of(row->version));
    members_add_text(out, "shortCode", slice_of(row->short_code));
    buf_add_char(out, '}');
}

/* ---- failures ---- */

static void add_decoded(struct buf *out, struct slice object, const char *member)
{
    struct bytes *text = members_text(object, member);
    buf_add(out, text ? bytes_slice(text) : SLICE(""));
    bytes_unref(text);
}

/* Adds the files that could not be imported. The error's stack has them, as a JSON list.
 * Returns false if there are none. */
static bool add_causes(struct buf *out, struct slice stack)
{
    struct slice entry;
    size_t count = 0;
    if (!scan_is_json(stack) || scan_type(stack) != SCAN_ARRAY)
        return false;
    struct scan_members entries = scan_members(stack);
    while (count < CAUSES_MAX && scan_next_element(&entries, &entry)) {
        if (scan_type(entry) != SCAN_OBJECT)
            continue;
        buf_add_char(out, '\n');
        add_decoded(out, entry, "file");
        buf_add_text(out, ": ");
        add_decoded(out, entry, "message");
        count++;
    }
    return count;
}

static void add_last_lines(struct buf *out, struct slice text)
{
    size_t at = text.len, lines = 0;
    while (at > 0 && lines < STDERR_LINES)
        lines += text.ptr[--at] == '\n';
    if (lines == STDERR_LINES)
        at++;
    if (text.len > at) {
        buf_add_char(out, '\n');
        buf_add(out, slice_from(text, at));
    }
}

static void add_error(struct buf *out, struct slice error)
{
    struct bytes *name = members_text(error, "name");
    struct bytes *stack = members_text(error, "stack");
    struct bytes *stderr_text = members_text(error, "stderr");
    bool has_causes = slice_is(bytes_slice(name), "TaskIndexingImportError") && stack;
    add_decoded(out, error, "message");
    if (!(has_causes && add_causes(out, bytes_slice(stack))) && stderr_text)
        add_last_lines(out, slice_trim(bytes_slice(stderr_text)));
    bytes_unref(name);
    bytes_unref(stack);
    bytes_unref(stderr_text);
}

void show_failure(const struct deployment_row *row, struct buf *out)
{
    const char *how = row->status == DEPLOYMENT_CANCELED    ? "was canceled"
                      : row->status == DEPLOYMENT_TIMED_OUT ? "timed out"
                                                            : "failed";
    buf_print(out, "Version %s %s", row->version, how);
    if (row->error || row->canceled_reason)
        buf_add_text(out, ": ");
    if (row->error)
        add_error(out, bytes_slice(row->error));
    else
        buf_add(out, bytes_slice(row->canceled_reason));
}
