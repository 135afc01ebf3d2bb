/* run_end.c - errors with which the gateway ends runs, and checks of worker requests. */
#include "core/model/run_end.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/text.h"
#include "runcast/store.h"

int64_t run_ttl_ms(const struct run *run)
{
    int64_t ms = 0;
    const struct bytes *ttl = run_rare(run)->ttl;
    if (!ttl || text_to_duration_ms(bytes_slice(ttl), &ms))
        return 0; /* an invalid duration never expires */
    return ms;
}

struct bytes *error_text(const char *text)
{
    struct buf json = { 0 };
    buf_add_text(&json, "{\"type\":\"STRING_ERROR\",\"raw\":");
    buf_add_json(&json, slice_of(text));
    buf_add_char(&json, '}');
    struct bytes *error = buf_to_bytes(&json);
    buf_finish(&json);
    return error;
}

struct bytes *error_internal(const char *code, const char *message)
{
    struct buf json = { 0 };
    buf_print(&json, "{\"type\":\"INTERNAL_ERROR\",\"code\":\"%s\",\"message\":", code);
    buf_add_json(&json, slice_of(message));
    buf_add_char(&json, '}');
    struct bytes *error = buf_to_bytes(&json);
    buf_finish(&json);
    return error;
}

void run_end_with(struct run *next, struct bytes *error, unsigned *marks)
{
    bytes_unref(next->error);
    next->error = error;
    next->due_at = 0;
    *marks |= MARK_OUTPUT;
}

/* Workers of runs that began before ids had ten digits know a shorter id. */
bool run_is_newest(const struct run *run, struct slice snapshot)
{
    char newest[64], short_one[64];
    run_snapshot_id(run, newest);
    snprintf(short_one, sizeof(short_one), "snapshot_%s-%u", run->id, run->snapshot);
    return slice_is(snapshot, newest) || slice_is(snapshot, short_one);
}

bool run_was_asked_by(const struct run *run, struct slice request_id)
{
    return request_id.ptr && run->worker_request &&
           slice_equal(bytes_slice(run->worker_request), request_id);
}

void run_remember_request(struct run *run, struct slice request_id)
{
    bytes_unref(run->worker_request);
    run->worker_request = request_id.ptr ? bytes_create(request_id) : NULL;
}
