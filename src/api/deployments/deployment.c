/* deployment.c - the statuses of a deployment, and its row in memory and in the store. */
#include "api/deployments/deployment.h"

#include <stdio.h>

#include "base/json/members.h"
#include "base/json/scan.h"

static const char *const names[DEPLOYMENT_STATUSES] = {
    "PENDING",  "INSTALLING", "BUILDING", "DEPLOYING",
    "DEPLOYED", "FAILED",     "CANCELED", "TIMED_OUT",
};

#define TO(status) (1u << DEPLOYMENT_##status)

enum { BADLY = TO(FAILED) | TO(CANCELED) | TO(TIMED_OUT) };

/* The statuses that may follow. A build that restarts returns to PENDING. */
static const unsigned follows[DEPLOYMENT_STATUSES] = {
    [DEPLOYMENT_PENDING] = TO(INSTALLING) | BADLY,
    [DEPLOYMENT_INSTALLING] = TO(PENDING) | TO(BUILDING) | TO(DEPLOYING) | BADLY,
    [DEPLOYMENT_BUILDING] = TO(PENDING) | TO(DEPLOYING) | BADLY,
    [DEPLOYMENT_DEPLOYING] = TO(PENDING) | TO(DEPLOYED) | BADLY,
};

const char *deployment_status_name(enum deployment_status status)
{
    return names[status];
}

bool deployment_status_find(struct slice name, enum deployment_status *status)
{
    for (int i = 0; i < DEPLOYMENT_STATUSES; i++)
        if (slice_is(name, names[i])) {
            *status = (enum deployment_status)i;
            return true;
        }
    return false;
}

bool deployment_may_become(enum deployment_status from, enum deployment_status to)
{
    return follows[from] & 1u << to;
}

/* ---- rows ---- */

enum { TEXTS = 8 };

static void list_texts(struct deployment_row *row, struct bytes **texts[TEXTS])
{
    struct bytes **all[TEXTS] = { &row->external_id,     &row->runtime,
                                  &row->runtime_version, &row->git,
                                  &row->triggered_via,   &row->request,
                                  &row->error,           &row->canceled_reason };
    memcpy(texts, all, sizeof(all));
}

void deployment_row_copy(struct deployment_row *copy, const struct deployment_row *row)
{
    struct bytes **texts[TEXTS];
    *copy = *row;
    list_texts(copy, texts);
    for (int i = 0; i < TEXTS; i++)
        bytes_ref(*texts[i]);
}

void deployment_row_finish(struct deployment_row *row)
{
    struct bytes **texts[TEXTS];
    list_texts(row, texts);
    for (int i = 0; i < TEXTS; i++)
        bytes_clear(texts[i]);
}

void deployment_row_name(struct deployment_row *row, int64_t now_ms)
{
    text_make_id("deployment", now_ms, row->id);
    text_random(row->short_code, SHORT_CODE_LEN, "0123456789abcdefghijklmnopqrstuvwxyz");
    row->short_code[SHORT_CODE_LEN] = '\0';
}

void deployment_row_end(struct deployment_row *row, enum deployment_status status,
                        struct bytes *error, struct bytes *reason, int64_t now_ms)
{
    row->status = status;
    row->ended_at = now_ms;
    row->archive_bytes = row->version_bytes = 0;
    row->has_index = false;
    bytes_unref(row->error);
    bytes_unref(row->canceled_reason);
    row->error = error;
    row->canceled_reason = reason;
}

/* ---- errors ---- */

static bool begins_character(char c)
{
    return ((unsigned char)c & 0xc0) != 0x80;
}

/* Returns the whole characters within the first `most` bytes. */
static struct slice beginning(struct slice text, size_t most)
{
    if (text.len <= most)
        return text;
    text.len = most;
    while (text.len && !begins_character(text.ptr[text.len]))
        text.len--;
    return text;
}

static struct slice ending(struct slice text, size_t most)
{
    if (text.len <= most)
        return text;
    text = slice_from(text, text.len - most);
    while (text.len && !begins_character(text.ptr[0]))
        text = slice_from(text, 1);
    return text;
}

struct bytes *deployment_error_write(const struct deployment_error *error)
{
    struct buf out = { 0 };
    struct slice name = error->name.len ? error->name : SLICE("Error");
    struct slice message = error->message.ptr ? error->message : SLICE("");
    buf_add_char(&out, '{');
    members_add_text(&out, "name", beginning(name, ERROR_NAME_MAX));
    members_add_text(&out, "message", beginning(message, ERROR_MESSAGE_MAX));
    members_add_text(&out, "stack", beginning(error->stack, ERROR_STACK_MAX));
    members_add_text(&out, "stderr", ending(error->stderr_text, ERROR_STDERR_MAX));
    buf_add_char(&out, '}');
    struct bytes *bytes = buf_to_bytes(&out);
    buf_finish(&out);
    return bytes;
}

/* ---- its document ---- */

static void add_number(struct buf *out, const char *name, int64_t number)
{
    if (number)
        members_add_number(out, name, number);
}

static void add_flag(struct buf *out, const char *name, bool value)
{
    if (value)
        members_add_bool(out, name, true);
}

static void add_short(struct buf *out, const char *name, const char *text)
{
    if (text[0])
        members_add_text(out, name, slice_of(text));
}

struct bytes *deployment_write(const struct deployment_row *row)
{
    struct buf out = { 0 };
    buf_add_char(&out, '{');
    members_add_text(&out, "id", slice_of(row->id));
    members_add_text(&out, "status", slice_of(deployment_status_name(row->status)));
    members_add_text(&out, "shortCode", slice_of(row->short_code));
    members_add_text(&out, "version", slice_of(row->version));
    members_add_text(&out, "contentHash", slice_of(row->content_hash));
    members_add_text(&out, "externalId", bytes_slice(row->external_id));
    members_add_text(&out, "runtime", bytes_slice(row->runtime));
    members_add_text(&out, "runtimeVersion", bytes_slice(row->runtime_version));
    members_add_json(&out, "git", bytes_slice(row->git));
    members_add_text(&out, "triggeredVia", bytes_slice(row->triggered_via));
    add_flag(&out, "skipPromotion", row->skip_promotion);
    members_add_text(&out, "request", bytes_slice(row->request));
    add_short(&out, "requestHash", row->request_hash);
    add_number(&out, "createdAt", row->created_at);
    add_number(&out, "startedAt", row->started_at);
    add_number(&out, "deployedAt", row->deployed_at);
    add_number(&out, "endedAt", row->ended_at);
    add_number(&out, "builds", row->builds);
    members_add_json(&out, "error", bytes_slice(row->error));
    members_add_text(&out, "canceledReason", bytes_slice(row->canceled_reason));
    add_number(&out, "archiveBytes", row->archive_bytes);
    add_number(&out, "versionBytes", row->version_bytes);
    add_short(&out, "archiveHash", row->archive_hash);
    add_short(&out, "architecture", row->architecture);
    add_short(&out, "libc", row->libc);
    add_flag(&out, "hasIndex", row->has_index);
    add_flag(&out, "promotes", row->promotes);
    buf_add_char(&out, '}');
    struct bytes *body = buf_to_bytes(&out);
    buf_finish(&out);
    return body;
}

/* Returns false if the text is present and does not fit. */
static bool read_short(struct slice body, const char *member, char *text, size_t size)
{
    struct bytes *value = members_text(body, member);
    bool fits = !value || (value->len < size && !memchr(value->data, 0, value->len));
    if (value && fits)
        snprintf(text, size, "%s", value->data);
    bytes_unref(value);
    return fits;
}

/* Returns 0 if it is absent. */
static int64_t read_number(struct slice body, const char *member)
{
    int64_t number;
    return members_number(body, member, &number) && number > 0 ? number : 0;
}

static struct bytes *read_object(struct slice body, const char *member)
{
    struct slice value = scan_member(body, member);
    return scan_type(value) == SCAN_OBJECT ? bytes_create(value) : NULL;
}

static bool read_status(struct slice body, enum deployment_status *status)
{
    struct bytes *name = members_text(body, "status");
    bool known = deployment_status_find(bytes_slice(name), status);
    bytes_unref(name);
    return known;
}

static void read_rest(struct slice body, struct deployment_row *row)
{
    row->external_id = members_text(body, "externalId");
    row->runtime = members_text(body, "runtime");
    row->runtime_version = members_text(body, "runtimeVersion");
    row->git = read_object(body, "git");
    row->triggered_via = members_text(body, "triggeredVia");
    row->skip_promotion = members_is_true(body, "skipPromotion");
    row->request = members_text(body, "request");
    row->created_at = read_number(body, "createdAt");
    row->started_at = read_number(body, "startedAt");
    row->deployed_at = read_number(body, "deployedAt");
    row->ended_at = read_number(body, "endedAt");
    row->builds = (unsigned)read_number(body, "builds");
    row->error = read_object(body, "error");
    row->canceled_reason = members_text(body, "canceledReason");
    row->archive_bytes = read_number(body, "archiveBytes");
    row->version_bytes = read_number(body, "versionBytes");
    row->has_index = members_is_true(body, "hasIndex");
    row->promotes = members_is_true(body, "promotes");
}

enum err deployment_read(struct slice body, struct deployment_row *row, struct failure *why)
{
    struct deployment_row read = { 0 };
    if (!scan_is_json(body) || scan_type(body) != SCAN_OBJECT)
        return explain(why, ERR_INVALID, "A deployment's document is damaged");
    read_rest(body, &read);
    bool is_whole =
        read_status(body, &read.status) && read_short(body, "id", read.id, ID_MAX) &&
        read_short(body, "shortCode", read.short_code, sizeof(read.short_code)) &&
        read_short(body, "version", read.version, sizeof(read.version)) &&
        read_short(body, "contentHash", read.content_hash, sizeof(read.content_hash)) &&
        read_short(body, "requestHash", read.request_hash, sizeof(read.request_hash)) &&
        read_short(body, "archiveHash", read.archive_hash, sizeof(read.archive_hash)) &&
        read_short(body, "architecture", read.architecture, MACHINE_TEXT) &&
        read_short(body, "libc", read.libc, MACHINE_TEXT) && read.id[0] && read.version[0];
    if (!is_whole) {
        deployment_row_finish(&read);
        return explain(why, ERR_INVALID, "A deployment's document is damaged");
    }
    *row = read;
    return OK;
}
