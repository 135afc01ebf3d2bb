/* wait_list.c - writes waits as JSON, and reads them; texts are spans of that JSON. */
#include "core/model/wait_list.h"

#include "base/json/members.h"
#include "base/text.h"

static const char *const type_names[WAIT_TYPES] = {
    [WAIT_TIME] = "DATETIME",
    [WAIT_RUN] = "RUN",
    [WAIT_TOKEN] = "MANUAL",
};

struct scan_members wait_list_of(const struct run *run)
{
    struct slice list = bytes_slice(run_rare(run)->waits);
    return scan_members(list.ptr ? list : SLICE("[]"));
}

enum wait_member {
    TYPE,
    ID,
    BATCH,
    INDEX,
    TOO_LARGE,
    STREAM,
    FROM,
    UNTIL,
    COMPLETED_AT,
    MEMBERS
};

static const char *const member_names[MEMBERS] = {
    [TYPE] = "type",
    [ID] = "id",
    [BATCH] = "batch",
    [INDEX] = "index",
    [TOO_LARGE] = "tooLarge",
    [STREAM] = "stream",
    [FROM] = "from",
    [UNTIL] = "until",
    [COMPLETED_AT] = "completedAt",
};

static int64_t number_of(struct slice text)
{
    int64_t number = 0;
    return text.ptr && !text_to_i64(text, &number) ? number : 0;
}

/* Our words and ids have no escapes. */
bool wait_list_next(struct scan_members *all, struct wait *wait)
{
    struct slice element, members[MEMBERS];
    unsigned type = 0;
    if (!scan_next_element(all, &element))
        return false;
    members_find(element, member_names, MEMBERS, members);
    while (type < WAIT_TYPES - 1 &&
           !slice_is(scan_unquoted(members[TYPE]), type_names[type]))
        type++;
    *wait = (struct wait){
        .type = (enum wait_type)type,
        .id = scan_unquoted(members[ID]),
        .batch = scan_unquoted(members[BATCH]),
        .index = (uint32_t)number_of(members[INDEX]),
        .too_large = scan_type(members[TOO_LARGE]) == SCAN_TRUE,
        .stream = members[STREAM],
        .from = number_of(members[FROM]),
        .until = number_of(members[UNTIL]),
        .completed_at = number_of(members[COMPLETED_AT]),
    };
    return true;
}

void wait_list_add(struct buf *out, const struct wait *wait)
{
    buf_print(out, "%s{\"type\":\"%s\",\"id\":\"%.*s\"",
              out->ptr[out->len - 1] == '[' ? "" : ",", type_names[wait->type],
              SLICE_ARG(wait->id));
    if (wait->batch.ptr)
        buf_print(out, ",\"batch\":\"%.*s\",\"index\":%u", SLICE_ARG(wait->batch),
                  wait->index);
    if (wait->stream.ptr)
        buf_print(out, ",\"stream\":%.*s,\"from\":%lld", SLICE_ARG(wait->stream),
                  (long long)wait->from);
    if (wait->too_large)
        buf_add_text(out, ",\"tooLarge\":true");
    if (wait->until)
        buf_print(out, ",\"until\":%lld", (long long)wait->until);
    if (wait->completed_at)
        buf_print(out, ",\"completedAt\":%lld", (long long)wait->completed_at);
    buf_add_char(out, '}');
}

bool wait_list_has_ended(const struct run *run)
{
    struct scan_members all = wait_list_of(run);
    struct wait wait;
    if (run->execution != EXECUTION_WITH_WAITPOINTS)
        return false;
    while (wait_list_next(&all, &wait))
        if (!wait.completed_at)
            return false;
    return true;
}

bool wait_list_has_input(const struct run *run, struct slice key, struct wait *wait)
{
    struct scan_members all = wait_list_of(run);
    struct buf name = { 0 };
    bool found = false;
    buf_add_json(&name, key);
    while (run->execution == EXECUTION_WITH_WAITPOINTS && !found &&
           wait_list_next(&all, wait))
        found = !wait->completed_at && wait->stream.ptr &&
                slice_equal(wait->stream, buf_slice(&name));
    buf_finish(&name);
    return found;
}
