/* waitpoint.c - the document of a waitpoint, written and read. */
#include "core/model/waitpoint.h"

#include "base/json/members.h"
#include "base/json/scan.h"

void waitpoint_finish(struct waitpoint *waitpoint)
{
    bytes_unref(waitpoint->key);
    bytes_unref(waitpoint->output);
    bytes_unref(waitpoint->output_type);
    tag_list_unref(waitpoint->tags);
    bytes_unref(waitpoint->run);
    bytes_unref(waitpoint->stream);
    *waitpoint = (struct waitpoint){ 0 };
}

void waitpoint_set_output(struct waitpoint *waitpoint, struct slice text)
{
    struct buf json = { 0 };
    buf_add_json(&json, text);
    bytes_unref(waitpoint->output);
    waitpoint->output = buf_to_bytes(&json);
    buf_finish(&json);
}

/* ---- writing ---- */

static struct bytes *write_body(const struct waitpoint *waitpoint)
{
    const struct tag_list *tags = waitpoint->tags;
    struct buf out = { 0 };
    buf_print(&out,
              "{\"id\":\"%s\",\"isTime\":%s,\"createdAt\":%lld,\"completedAt\":%lld,"
              "\"until\":%lld,\"keyExpiresAt\":%lld",
              waitpoint->id, waitpoint->is_time ? "true" : "false",
              (long long)waitpoint->created_at, (long long)waitpoint->completed_at,
              (long long)waitpoint->until, (long long)waitpoint->key_expires_at);
    members_add_text(&out, "key", bytes_slice(waitpoint->key));
    if (waitpoint->run) {
        members_add_number(&out, "from", waitpoint->from);
        members_add_text(&out, "run", bytes_slice(waitpoint->run));
        members_add_text(&out, "stream", bytes_slice(waitpoint->stream));
    }
    members_add_texts(&out, "tags", tags ? tags->names : NULL, tags ? tags->count : 0);
    members_add_text(&out, "outputType", bytes_slice(waitpoint->output_type));
    if (waitpoint->output)
        members_add_name(&out, "output"); /* must be the last */
    const struct slice parts[] = { buf_slice(&out), bytes_slice(waitpoint->output),
                                   SLICE("}") };
    struct bytes *body = bytes_join(parts, 3);
    buf_finish(&out);
    return body;
}

struct change waitpoint_change(const struct waitpoint *waitpoint, uint32_t env)
{
    int64_t stale_at = waitpoint->created_at;
    if (waitpoint->until || waitpoint->completed_at)
        stale_at = waitpoint->completed_at ? waitpoint->completed_at : waitpoint->until;
    return (struct change){ .kind = CHANGE_DOCUMENT,
                            .env = env,
                            .expected = waitpoint->version,
                            .document = { .kind = DOC_WAITPOINT,
                                          .env = env,
                                          .name = bytes_create(slice_of(waitpoint->id)),
                                          .body = write_body(waitpoint),
                                          .stale_at = stale_at } };
}

/* ---- reading ---- */

static struct tag_list *read_tags(struct slice list)
{
    struct scan_members all = scan_members(list);
    struct slice value, names[RUN_TAGS_MAX];
    struct bytes *texts[RUN_TAGS_MAX];
    size_t count = 0;
    while (count < RUN_TAGS_MAX && scan_next_element(&all, &value)) {
        texts[count] = members_text_of(value);
        names[count] = bytes_slice(texts[count]);
        count++;
    }
    struct tag_list *tags = tag_list_create(names, count);
    while (count)
        bytes_unref(texts[--count]);
    return tags;
}

enum waitpoint_field {
    CREATED_AT,
    COMPLETED_AT,
    UNTIL,
    KEY_EXPIRES_AT,
    IS_TIME,
    KEY,
    OUTPUT_TYPE,
    TAGS,
    RUN,
    STREAM,
    FROM,
    FIELDS
};

static const char *const names[FIELDS] = {
    [CREATED_AT] = "createdAt",
    [COMPLETED_AT] = "completedAt",
    [UNTIL] = "until",
    [KEY_EXPIRES_AT] = "keyExpiresAt",
    [IS_TIME] = "isTime",
    [KEY] = "key",
    [OUTPUT_TYPE] = "outputType",
    [TAGS] = "tags",
    [RUN] = "run",
    [STREAM] = "stream",
    [FROM] = "from",
};

static enum err read_body(const struct document *document, struct slice body,
                          struct waitpoint *waitpoint)
{
    struct slice id = bytes_slice(document->name), fields[FIELDS];
    struct waitpoint read = { .version = document->version };
    if (!scan_is_json(body) || id.len >= sizeof(read.id))
        return ERR_INTERNAL;
    members_find(body, names, FIELDS, fields);
    if (text_to_i64(fields[CREATED_AT], &read.created_at) ||
        text_to_i64(fields[COMPLETED_AT], &read.completed_at) ||
        text_to_i64(fields[UNTIL], &read.until) ||
        text_to_i64(fields[KEY_EXPIRES_AT], &read.key_expires_at) ||
        scan_type(fields[TAGS]) != SCAN_ARRAY)
        return ERR_INTERNAL;
    snprintf(read.id, sizeof(read.id), "%.*s", SLICE_ARG(id));
    read.is_time = scan_type(fields[IS_TIME]) == SCAN_TRUE;
    read.key = members_text_of(fields[KEY]);
    read.output_type = members_text_of(fields[OUTPUT_TYPE]);
    read.tags = read_tags(fields[TAGS]);
    read.run = members_text_of(fields[RUN]);
    read.stream = members_text_of(fields[STREAM]);
    text_to_i64(fields[FROM], &read.from);
    *waitpoint = read;
    return OK;
}

/* Finds the output, which is the last member. The separator before it cannot occur inside a
 * text, where its quotes would be escaped. Returns an absent slice if there is no
 * output. */
static struct slice find_output(struct slice body, struct slice *head)
{
    static const char separator[] = ",\"output\":";
    const char *end = memmem(body.ptr, body.len, separator, sizeof(separator) - 1);
    *head = body;
    if (!end)
        return (struct slice){ 0 };
    head->len = (size_t)(end - body.ptr);
    struct slice output = slice_from(body, head->len + sizeof(separator) - 1);
    output.len -= output.len > 0; /* without the closing brace */
    return output;
}

static enum err read_head(const struct document *document, struct waitpoint *waitpoint,
                          struct slice *output)
{
    struct slice head;
    struct buf text = { 0 };
    *output = find_output(bytes_slice(document->body), &head);
    buf_add(&text, head);
    if (output->ptr)
        buf_add_char(&text, '}');
    enum err err = read_body(document, buf_slice(&text), waitpoint);
    buf_finish(&text);
    return err;
}

enum err waitpoint_read(const struct document *document, struct waitpoint *waitpoint)
{
    struct slice output;
    enum err err = read_head(document, waitpoint, &output);
    if (!err)
        waitpoint->output = bytes_create(output);
    return err;
}

enum err waitpoint_read_head(const struct document *document, struct waitpoint *waitpoint)
{
    struct slice output;
    return read_head(document, waitpoint, &output);
}

bool waitpoint_is_completed(const struct document *document)
{
    struct waitpoint waitpoint;
    if (waitpoint_read_head(document, &waitpoint))
        return true;
    bool completed = waitpoint.completed_at > 0;
    waitpoint_finish(&waitpoint);
    return completed;
}
