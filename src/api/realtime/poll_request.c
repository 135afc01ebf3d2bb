/* poll_request.c - reads a long poll's request, and writes the headers of its response. */
#include "api/realtime/poll.h"

#include "base/metrics.h"
#include "core/wire/shape.h"

enum {
    DAY_MS = 24 * 60 * 60 * 1000,
    MINUTE_MS = 60 * 1000,
    TAGS_MAX = 16,
};

/* ---- filters ---- */

static enum err bad_query(struct poll *poll, const char *parameter, const char *reason)
{
    poll->bad_parameter = parameter;
    poll->bad_reason = reason;
    return ERR_INVALID;
}

/* Reads which runs the poll is for: one, those of a batch, or those with all of the tags;
 * without a tag, every run of the environment. */
static enum err read_filter(struct poll *poll)
{
    const struct api_call *call = poll->call;
    struct slice rest = { 0 }, run = { 0 }, tags[TAGS_MAX], tag;
    struct run_filter wanted = { .is_test = -1, .tags = tags, .every_tag = true };
    if (poll->kind == 'r')
        run = call->params[0];
    else if (poll->kind == 'b')
        wanted.batch = call->params[0];
    else
        rest = api_query(call, "tags");
    while (slice_split(&rest, ',', &tag)) {
        if (!tag.len)
            return bad_query(poll, "tags", "a tag is empty");
        if (wanted.tag_count == TAGS_MAX)
            return bad_query(poll, "tags", "more than 16 tags");
        tags[wanted.tag_count++] = tag;
    }
    poll->filter = filter_create(run, &wanted);
    return OK;
}

/* Reads createdAt, how far back runs are requested: at most a day. An invalid value means a
 * day, and is reported as ignored. Rounded to a minute, so that clients that start together
 * have equal filters. */
static int64_t floor_of(struct poll *poll)
{
    int64_t now = loop_wall_ms(engine_loop(api_engine(poll->call->api))), back;
    struct slice text = api_query(poll->call, "createdAt");
    if (text_to_duration_ms(text, &back) || back > DAY_MS || back <= 0) {
        back = DAY_MS;
        if (text.len)
            ignored_add_parameter(&poll->call->ignored, SLICE("createdAt"));
    }
    int64_t floor = now - back;
    return floor - floor % MINUTE_MS;
}

/* ---- the position ---- */

struct handle {
    struct slice epoch;
    int64_t floor;
};

static bool read_handle(const struct poll *poll, struct handle *handle)
{
    struct slice text = api_query(poll->call, "handle"), kind;
    if (!text.len)
        text = api_query(poll->call, "shape_id");
    return text.len && slice_split(&text, '-', &handle->epoch) &&
           slice_split(&text, '-', &kind) && kind.len == 1 && kind.ptr[0] == poll->kind &&
           text_to_i64(text, &handle->floor) == OK && handle->floor >= 0;
}

static bool read_offset(struct slice text, uint64_t *seen, uint64_t *base)
{
    struct slice first;
    return slice_split(&text, '_', &first) && text.ptr && text_to_u64(first, seen) == OK &&
           text_to_u64(text, base) == OK;
}

/* Reads the position. One that was never issued does not count: the client gets everything, and
 * treats it as changes. After one of another history, it starts over: the runs that it has may
 * never have existed in this one. For a single run, everything is only one row. */
static enum err read_position(struct poll *poll)
{
    const struct environment *env = poll->call->env;
    struct slice offset = api_query(poll->call, "offset");
    struct handle handle = { 0 };
    uint64_t seen, base;

    if (poll->kind == 't')
        poll->floor = floor_of(poll);
    bool begun = read_handle(poll, &handle);
    if (begun && poll->kind == 't')
        poll->floor = handle.floor;
    if (!offset.len || slice_is(offset, "-1"))
        return OK;
    if (!read_offset(offset, &seen, &base))
        return bad_query(poll, "offset", "it must be -1 or the value of electric-offset");
    if (!begun || !slice_is(handle.epoch, env->store->epoch)) {
        metric_add(M_RESUME_EPOCH, 1);
        poll->refetches = begun && base && poll->kind != 'r';
        return OK;
    }
    if (seen > env->applied || base > seen)
        return OK;
    if (seen < env->purged && base && poll->kind != 'r') {
        metric_add(M_RESUME_PURGED, 1);
        poll->refetches = true;
        return OK;
    }
    poll->seen = seen;
    poll->base = base;
    return OK;
}

/* ---- columns ---- */

/* Reads the columns to leave out: the token's claim, or else the query. A column of the
 * query that is shown anyway is reported as ignored. */
static void read_columns(struct poll *poll)
{
    struct api_call *call = poll->call;
    const struct identity *who = call->identity;
    struct slice rest = api_query(call, "skipColumns"), name;
    uint32_t asked = 0;
    bool shown = false;
    for (size_t i = 0; i < who->skip_count; i++)
        poll->skipped |= shape_column(slice_of(who->skip_columns[i]), call->vocabulary);
    while (rest.ptr && slice_split(&rest, ',', &name)) {
        uint32_t column = shape_column(slice_trim(name), call->vocabulary);
        shown |= !column && slice_trim(name).len;
        asked |= column;
    }
    if (!who->skip_count)
        poll->skipped = poll->unwanted = asked;
    if (shown || asked & ~poll->skipped)
        ignored_add_parameter(&call->ignored, SLICE("skipColumns"));
}

enum err poll_read(struct poll *poll)
{
    struct api_call *call = poll->call;
    poll->old_names = !http_header(call->x, "x-trigger-electric-version").ptr;
    poll->live = slice_is(api_query(call, "live"), "true");
    enum err refused = read_filter(poll);
    if (!refused)
        refused = read_position(poll);
    poll->filter.created_from = poll->floor;
    read_columns(poll);
    return refused;
}

/* ---- headers of the response ---- */

/* Every response to a poll has these headers, so only numbers are formatted. */
void poll_add_headers(struct poll *poll, uint64_t seen, uint64_t base, bool complete)
{
    struct api_call *call = poll->call;
    struct buf *out = &call->headers;
    const char kind[] = { '-', poll->kind, '-', '\0' };

    buf_add_text(out,
                 poll->old_names ? "electric-chunk-last-offset: " : "electric-offset: ");
    buf_add_number(out, (int64_t)seen);
    buf_add_char(out, '_');
    buf_add_number(out, (int64_t)base);
    buf_add_text(out,
                 poll->old_names ? "\r\nelectric-shape-id: " : "\r\nelectric-handle: ");
    buf_add_text(out, call->env->store->epoch);
    buf_add_text(out, kind);
    buf_add_number(out, poll->floor);
    if (poll->live) {
        buf_add_text(out, "\r\nelectric-cursor: ");
        buf_add_number(out, (int64_t)seen);
    } else {
        buf_add_text(out, "\r\nelectric-schema: ");
        shape_add_schema(poll->skipped, out);
    }
    if (complete)
        buf_add_text(out, "\r\nelectric-up-to-date: ");
    buf_add_text(out, "\r\ncontent-type: application/json\r\n");
}
