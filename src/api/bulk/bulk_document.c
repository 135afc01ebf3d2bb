/* bulk_document.c - writes and reads bulk actions: the stored document, the API's JSON. */
#include "api/bulk/bulk.h"
#include "base/json/json_tree.h"
#include "base/json/members.h"
#include "base/mem.h"

static const char *const types[] = { "CANCEL", "REPLAY" };
static const char *const statuses[] = { "PENDING", "COMPLETED", "ABORTED" };

struct bulk_action *bulk_action_create(void)
{
    struct bulk_action *action = mem_new(struct bulk_action);
    list_init(&action->aborts);
    list_init(&action->pending);
    return action;
}

void bulk_action_destroy(struct bulk_action *action)
{
    if (!action)
        return;
    list_remove(&action->pending);
    bytes_unref(action->name);
    bytes_unref(action->region);
    bytes_unref(action->selection);
    free(action);
}

static void add_counts(struct buf *out, const struct bulk_progress *progress)
{
    buf_print(out, "{\"total\":%llu,\"success\":%llu,\"failure\":%llu}",
              (unsigned long long)progress->total, (unsigned long long)progress->success,
              (unsigned long long)progress->failure);
}

void bulk_show(const struct bulk_action *action, struct buf *out)
{
    const struct bulk_progress *progress = &action->progress;
    buf_print(out, "{\"id\":\"%s\"", action->id);
    members_add_text(out, "name", bytes_slice(action->name));
    buf_print(out, ",\"type\":\"%s\",\"status\":\"%s\",\"counts\":", types[action->type],
              statuses[progress->status]);
    add_counts(out, progress);
    members_add_time(out, "createdAt", action->created_at);
    members_add_time(out, "completedAt", progress->completed_at);
    buf_add_char(out, '}');
}

struct bytes *bulk_write(const struct bulk_action *action,
                         const struct bulk_progress *progress)
{
    struct buf out = { 0 };
    buf_print(&out, "{\"id\":\"%s\",\"type\":%d,\"status\":%d,\"counted\":%s", action->id,
              (int)action->type, (int)progress->status,
              progress->counted ? "true" : "false");
    members_add_text(&out, "name", bytes_slice(action->name));
    members_add_text(&out, "region", bytes_slice(action->region));
    buf_add_text(&out, ",\"counts\":");
    add_counts(&out, progress);
    buf_print(&out, ",\"createdAt\":%lld,\"completedAt\":%lld,\"from\":%lld,\"until\":%lld",
              (long long)action->created_at, (long long)progress->completed_at,
              (long long)action->from, (long long)action->until);
    buf_print(&out, ",\"to\":%lld,\"after\":\"%s\"", (long long)progress->to,
              progress->after);
    if (progress->status == BULK_PENDING)
        members_add_json(&out, "selection", bytes_slice(action->selection));
    buf_add_char(&out, '}');
    struct bytes *body = buf_to_bytes(&out);
    buf_finish(&out);
    return body;
}

/* ---- reading ---- */

static uint64_t number(const json_t *object, const char *member)
{
    return (uint64_t)json_integer_value(json_object_get(object, member));
}

static struct bytes *text(const json_t *object, const char *member)
{
    const json_t *value = json_object_get(object, member);
    return bytes_create(
        (struct slice){ json_string_value(value), json_string_length(value) });
}

static bool read_id(const json_t *object, const char *member, char id[ID_MAX])
{
    const char *value = json_string_value(json_object_get(object, member));
    if (!value || strlen(value) >= ID_MAX)
        return false;
    snprintf(id, ID_MAX, "%s", value);
    return true;
}

static void read_numbers(const json_t *body, struct bulk_action *action)
{
    struct bulk_progress *progress = &action->progress;
    const json_t *counts = json_object_get(body, "counts");
    action->type = (enum bulk_type)number(body, "type");
    action->created_at = (int64_t)number(body, "createdAt");
    action->from = (int64_t)number(body, "from");
    action->until = (int64_t)number(body, "until");
    progress->status = (enum bulk_status)number(body, "status");
    progress->counted = json_is_true(json_object_get(body, "counted"));
    progress->total = number(counts, "total");
    progress->success = number(counts, "success");
    progress->failure = number(counts, "failure");
    progress->to = (int64_t)number(body, "to");
    progress->completed_at = (int64_t)number(body, "completedAt");
}

enum err bulk_read(struct slice body, struct bulk_action *action, struct failure *why)
{
    json_t *json = json_tree_read(body, 0, NULL);
    struct buf selection = { 0 };
    json_tree_write(json_object_get(json, "selection"), &selection);

    read_numbers(json, action);
    action->name = text(json, "name");
    action->region = text(json, "region");
    action->selection = selection.len ? buf_to_bytes(&selection) : NULL;
    bool is_whole =
        read_id(json, "id", action->id) && read_id(json, "after", action->progress.after) &&
        action->type <= BULK_REPLAY && action->progress.status <= BULK_ABORTED &&
        (action->selection || action->progress.status != BULK_PENDING);
    buf_finish(&selection);
    json_decref(json);
    return is_whole ? OK : explain(why, ERR_INVALID, "A bulk action's document is damaged");
}
