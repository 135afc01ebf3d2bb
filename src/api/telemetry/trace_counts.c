/* trace_counts.c - writes and reads the document with the counts of a trace. */
#include "api/telemetry/trace_counts.h"

#include <inttypes.h>

#include "base/json/members.h"

static const char *const loss_names[LOSS_KINDS] = {
    [LOSS_LIMIT] = "limit",
    [LOSS_MEMORY] = "memory",
    [LOSS_QUOTA] = "quota",
    [LOSS_SHARE] = "share",
};

struct counted_member {
    const char *name;
    int64_t *value;
};

enum { FIELDS = 7 };

static void list_fields(struct trace_counts *counts, struct counted_member fields[FIELDS])
{
    const struct counted_member all[FIELDS] = {
        { "logs", &counts->logs },
        { "begun", &counts->begun },
        { "ended", &counts->ended },
        { "bytes", &counts->bytes },
        { "pieces", &counts->pieces },
        { "removed", &counts->removed },
        { "removedAt", &counts->removed_at },
    };
    memcpy(fields, all, sizeof(all));
}

struct bytes *trace_counts_write(const struct trace_counts *counts)
{
    struct trace_counts copy = *counts;
    struct counted_member fields[FIELDS];
    struct buf out = { 0 };
    list_fields(&copy, fields);
    buf_add_char(&out, '{');
    for (size_t i = 0; i < FIELDS; i++)
        if (*fields[i].value)
            members_add_number(&out, fields[i].name, *fields[i].value);
    for (size_t i = 0; i < LOSS_KINDS; i++)
        if (counts->lost[i])
            members_add_number(&out, loss_names[i], counts->lost[i]);
    buf_add_char(&out, '}');
    struct bytes *body = buf_to_bytes(&out);
    buf_finish(&out);
    return body;
}

static void read_number(struct slice body, const char *name, int64_t *number)
{
    if (!members_number(body, name, number) || *number < 0)
        *number = 0;
}

void trace_counts_read(struct trace_counts *counts, struct slice body)
{
    struct counted_member fields[FIELDS];
    list_fields(counts, fields);
    for (size_t i = 0; i < FIELDS; i++)
        read_number(body, fields[i].name, fields[i].value);
    for (size_t i = 0; i < LOSS_KINDS; i++)
        read_number(body, loss_names[i], &counts->lost[i]);
}

void trace_counts_show(const struct trace_counts *counts, struct buf *out)
{
    int64_t lost = 0;
    for (size_t i = 0; i < LOSS_KINDS; i++)
        lost += counts->lost[i];
    if (lost) {
        members_add_name(out, "dropped");
        buf_add_char(out, '{');
        members_add_number(out, "count", lost);
        for (size_t i = 0; i < LOSS_KINDS; i++)
            members_add_number(out, loss_names[i], counts->lost[i]);
        buf_add_char(out, '}');
    }
    if (counts->removed_at) {
        members_add_name(out, "removed");
        buf_add_char(out, '{');
        members_add_number(out, "count", counts->removed);
        members_add_time(out, "at", counts->removed_at);
        buf_add_char(out, '}');
    }
}

void trace_piece_name(struct slice run_id, int64_t number, char name[ID_MAX])
{
    if (number)
        snprintf(name, ID_MAX, "%.*s/%06" PRIx64, SLICE_ARG(run_id), (uint64_t)number);
    else
        snprintf(name, ID_MAX, "%.*s/", SLICE_ARG(run_id));
}
