/* run_message.c - reads the message of a dequeued run. */
#include "supervisor/gateway_client/run_message.h"

#include "base/json/members.h"
#include "base/json/scan.h"

bool run_message_next(struct slice answer, size_t *at, struct slice *message)
{
    if (!scan_is_json(answer) || scan_type(answer) != SCAN_ARRAY)
        return false;
    struct scan_members all = scan_members(answer);
    for (size_t i = 0; scan_next_element(&all, message); i++) {
        if (i < *at)
            continue;
        *at = i + 1;
        return scan_type(*message) == SCAN_OBJECT;
    }
    return false;
}

static bool is_id_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '-' || c == '_';
}

bool message_id_is_right(struct slice id)
{
    if (!id.len || id.len >= MESSAGE_ID_MAX)
        return false;
    for (size_t i = 0; i < id.len; i++)
        if (!is_id_character(id.ptr[i]))
            return false;
    return true;
}

/* Returns false if the member is not a string or not a valid id. */
static bool read_id(struct slice object, const char *name, char out[MESSAGE_ID_MAX])
{
    struct bytes *text = members_text(object, name);
    bool right = text && message_id_is_right(bytes_slice(text));
    if (right)
        memcpy(out, text->data, text->len + 1);
    bytes_unref(text);
    return right;
}

/* Reads a version, which is any text without a zero.
 *
 * Deployed versions are like "20260131.2"; plain workers may use others. */
static bool read_version(struct slice worker, char out[MESSAGE_VERSION_MAX])
{
    struct bytes *text = members_text(worker, "version");
    bool right = text && text->len && text->len < MESSAGE_VERSION_MAX &&
                 !memchr(text->data, 0, text->len);
    if (right)
        memcpy(out, text->data, text->len + 1);
    bytes_unref(text);
    return right;
}

/* Prefers the friendly id, which all calls use, to the plain one. */
static bool read_friendly(struct slice object, char out[MESSAGE_ID_MAX])
{
    return read_id(object, "friendlyId", out) || read_id(object, "id", out);
}

static bool read_machine(struct slice machine, struct run_message *message)
{
    return scan_number(scan_member(machine, "cpu"), &message->cores) &&
           scan_number(scan_member(machine, "memory"), &message->gigabytes) &&
           message->cores > 0 && message->cores <= 1024 && message->gigabytes > 0 &&
           message->gigabytes <= 65536;
}

/* Reads the project ref from an image "runcast/<ref>:<version>". */
static void read_ref(struct slice text, struct run_message *message)
{
    struct bytes *image = members_text(text, "image");
    struct slice rest = bytes_slice(image), part;
    if (image && slice_split(&rest, '/', &part) && rest.ptr &&
        slice_split(&rest, ':', &part) && message_id_is_right(part))
        memcpy(message->project_ref, part.ptr, part.len);
    bytes_unref(image);
}

static void read_version_directory(struct slice text, struct run_message *message)
{
    struct slice deployment = scan_member(text, "deployment");
    struct slice worker = scan_member(text, "backgroundWorker");
    message->has_deployment = scan_type(deployment) == SCAN_OBJECT &&
                              read_friendly(deployment, message->deployment);
    if (!message->has_deployment)
        read_friendly(worker, message->deployment);
    struct slice more = scan_member(text, "x-runcast");
    if (scan_type(more) == SCAN_OBJECT)
        read_id(more, "versionHash", message->version_hash);
}

static struct slice object_of(struct slice text, const char *name)
{
    struct slice value = scan_member(text, name);
    return scan_type(value) == SCAN_OBJECT ? value : SLICE("{}");
}

enum err run_message_read(struct slice text, struct run_message *message,
                          struct failure *why)
{
    *message = (struct run_message){ 0 };
    struct slice run = object_of(text, "run");
    bool named = read_friendly(run, message->run) &&
                 read_friendly(object_of(text, "snapshot"), message->snapshot);
    if (!named) {
        message->run[0] = message->snapshot[0] = '\0';
        return explain(why, ERR_INVALID, "run or snapshot missing in the message");
    }
    if (!members_number(run, "attemptNumber", &message->attempt))
        message->attempt = 1;
    if (!read_machine(object_of(run, "machine"), message))
        return explain(why, ERR_INVALID, "machine missing in the message");
    if (!read_id(object_of(text, "environment"), "id", message->environment) ||
        !read_id(object_of(text, "organization"), "id", message->organization) ||
        !read_id(object_of(text, "project"), "id", message->project))
        return explain(why, ERR_INVALID, "environment missing in the message");
    if (!read_version(object_of(text, "backgroundWorker"), message->version))
        return explain(why, ERR_INVALID, "version missing in the message");
    read_version_directory(text, message);
    if (!message->deployment[0])
        return explain(why, ERR_INVALID, "deployment or worker missing in the message");
    read_ref(text, message);
    message->text = bytes_create(text);
    return OK;
}

void run_message_finish(struct run_message *message)
{
    bytes_clear(&message->text);
}
