/* waitpoint.c - the document of a waitpoint, written and read. */
#include "engine/waitpoint.h"

#include "base/members.h"
#include "base/scan.h"

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

/* ---- writing ---- */

struct bytes *waitpoint_write(const struct waitpoint *waitpoint)
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
    members_add_text(&out, "output", bytes_slice(waitpoint->output));
    buf_add_char(&out, '}');
    struct bytes *body = buf_to_bytes(&out);
    buf_finish(&out);
    return body;
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

enum err waitpoint_read(const struct document *document, struct waitpoint *waitpoint)
{
    struct slice body = bytes_slice(document->body);
    struct slice name = bytes_slice(document->name);
    struct waitpoint read = { .version = document->version };
    bool fine = scan_is_json(body) && name.len < sizeof(read.id) &&
                members_number(body, "createdAt", &read.created_at) &&
                members_number(body, "completedAt", &read.completed_at) &&
                members_number(body, "until", &read.until) &&
                members_number(body, "keyExpiresAt", &read.key_expires_at) &&
                scan_type(scan_member(body, "tags")) == SCAN_ARRAY;
    if (!fine)
        return ERR_INTERNAL;
    snprintf(read.id, sizeof(read.id), "%.*s", SLICE_ARG(name));
    read.is_time = members_is_true(body, "isTime");
    read.key = members_text(body, "key");
    read.output = members_text(body, "output");
    read.output_type = members_text(body, "outputType");
    read.tags = read_tags(scan_member(body, "tags"));
    read.run = members_text(body, "run");
    read.stream = members_text(body, "stream");
    members_number(body, "from", &read.from);
    *waitpoint = read;
    return OK;
}

bool waitpoint_is_completed(const struct document *document)
{
    struct waitpoint waitpoint;
    if (waitpoint_read(document, &waitpoint))
        return true;
    bool completed = waitpoint.completed_at > 0;
    waitpoint_finish(&waitpoint);
    return completed;
}
