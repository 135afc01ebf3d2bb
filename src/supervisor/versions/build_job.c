/* build_job.c - parses a build job. */
#include "supervisor/versions/build_job.h"

#include "base/json/members.h"
#include "base/json/scan.h"

enum { DEADLINE_MAX_MS = 24 * 3600 * 1000 };

static bool is_id_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '-' || c == '_';
}

bool build_id_is_right(struct slice id)
{
    if (!id.len || id.len >= BUILD_ID_MAX)
        return false;
    for (size_t i = 0; i < id.len; i++)
        if (!is_id_character(id.ptr[i]))
            return false;
    return true;
}

static struct slice object_of(struct slice text, const char *name)
{
    struct slice value = scan_member(text, name);
    return scan_type(value) == SCAN_OBJECT ? value : SLICE("{}");
}

static bool read_id(struct slice object, const char *name, char out[BUILD_ID_MAX])
{
    struct bytes *text = members_text(object, name);
    bool right = text && build_id_is_right(bytes_slice(text));
    if (right)
        memcpy(out, text->data, text->len + 1);
    bytes_unref(text);
    return right;
}

/* Reads a version like "20260131.2". */
static bool read_version(struct slice object, char out[BUILD_VERSION_MAX])
{
    struct bytes *text = members_text(object, "version");
    bool right = text && text->len && text->len < BUILD_VERSION_MAX &&
                 strspn(text->data, "0123456789.") == text->len;
    if (right)
        memcpy(out, text->data, text->len + 1);
    bytes_unref(text);
    return right;
}

static bool read_hash(struct slice object, char out[BUILD_HASH_MAX])
{
    struct bytes *text = members_text(object, "sha256");
    bool right = text && text->len == BUILD_HASH_MAX - 1 &&
                 strspn(text->data, "0123456789abcdef") == text->len;
    if (right)
        memcpy(out, text->data, text->len + 1);
    bytes_unref(text);
    return right;
}

/* Reads a string that becomes a variable of a child, so it must not contain a zero. Returns
 * NULL if there is no such string. */
static struct bytes *read_text(struct slice object, const char *name)
{
    struct bytes *text = members_text(object, name);
    if (text && text->len && !memchr(text->data, 0, text->len))
        return text;
    bytes_unref(text);
    return NULL;
}

static enum err read_variables(struct slice text, struct build_job *job,
                               struct failure *why)
{
    struct slice all = scan_member(text, "buildEnvVars"), name, value;
    if (scan_type(all) == SCAN_NONE || scan_type(all) == SCAN_NULL)
        return OK;
    if (scan_type(all) != SCAN_OBJECT)
        return explain(why, ERR_INVALID, "buildEnvVars of the job is not an object");
    struct scan_members members = scan_members(all);
    while (scan_next_member(&members, &name, &value))
        if (scan_type(value) != SCAN_STRING)
            return explain(why, ERR_INVALID,
                           "a value in buildEnvVars of the job is not a string");
    job->variables = bytes_create(all);
    return OK;
}

static bool read_secrets(struct slice text, struct build_job *job)
{
    job->key = read_text(text, "key");
    job->api_url = read_text(text, "apiUrl");
    return job->key && job->api_url &&
           members_number(text, "deadlineMs", &job->deadline_ms) && job->deadline_ms > 0 &&
           job->deadline_ms <= DEADLINE_MAX_MS;
}

enum err build_job_read(struct slice text, struct build_job *job, struct failure *why)
{
    *job = (struct build_job){ .attempt = 1 };
    struct slice deployment = object_of(text, "deployment");
    struct slice environment = object_of(text, "environment");
    struct slice project = object_of(text, "project");
    struct slice archive = object_of(text, "archive");
    if (!read_id(deployment, "id", job->deployment))
        return explain(why, ERR_INVALID, "deployment missing in the job");
    members_number(text, "attempt", &job->attempt);
    if (!read_version(deployment, job->version))
        return explain(why, ERR_INVALID, "version missing in the job");
    job->content_hash = read_text(deployment, "contentHash");
    if (!job->content_hash)
        return explain(why, ERR_INVALID, "contentHash missing in the job");
    if (!read_id(environment, "id", job->environment) ||
        !read_id(project, "id", job->project) || !read_id(project, "ref", job->project_ref))
        return explain(why, ERR_INVALID, "environment or project missing in the job");
    read_id(object_of(text, "organization"), "id", job->organization);
    job->branch = read_text(environment, "branch");
    if (!read_hash(archive, job->archive_hash) ||
        !members_number(archive, "bytes", &job->archive_bytes) || job->archive_bytes <= 0)
        return explain(why, ERR_INVALID, "archive missing in the job");
    if (!read_secrets(text, job))
        return explain(why, ERR_INVALID, "key, apiUrl or deadlineMs missing in the job");
    return read_variables(text, job, why);
}

static void wipe(struct bytes **secret)
{
    if (*secret && (*secret)->refs == 1)
        explicit_bzero((*secret)->data, (*secret)->len);
    bytes_clear(secret);
}

void build_job_finish(struct build_job *job)
{
    bytes_clear(&job->content_hash);
    bytes_clear(&job->branch);
    bytes_clear(&job->api_url);
    wipe(&job->key);
    wipe(&job->variables);
}
