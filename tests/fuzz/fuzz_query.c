/* fuzz_query - any bytes as the query of a list call: names, values and cursors.
 *
 * As in api/request/call.c, they are split at '&' and '=', percent-decoded, then read.
 * Accepted values are within their bounds, and their cursors lead back to the same
 * place. */
#include <assert.h>
#include <stdint.h>

#include "api/runs/run_query.h"
#include "base/mem.h"
#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool decode(struct slice raw, char **at, struct slice *out)
{
    size_t len;
    if (text_percent_decode(raw, true, *at, &len))
        return false;
    *out = (struct slice){ *at, len };
    *at += len;
    return true;
}

static bool split_query(struct slice query, char *room, struct api_call *call)
{
    struct slice pair, name;
    while (call->query_count < API_QUERY_MAX && slice_split(&query, '&', &pair)) {
        struct slice value = pair;
        if (!pair.len)
            continue;
        slice_split(&value, '=', &name);
        if (!value.ptr)
            value = SLICE("");
        if (!decode(name, &room, &call->query[call->query_count].name) ||
            !decode(value, &room, &call->query[call->query_count].value))
            return false;
        call->query_count++;
    }
    return true;
}

static void check_cursor(const char *id)
{
    static struct run_query again;
    struct failure why = { 0 };
    char cursor[CURSOR_MAX];
    if (!id[0])
        return;
    run_cursor(id, cursor);
    struct query_pair pair = { SLICE("page[after]"), slice_of(cursor) };
    struct api_call call = { .query = &pair, .query_count = 1 };
    assert(!run_query_read(&call, false, 0, &again, &why) && !strcmp(again.after, id));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct run_query query;
    static struct query_pair pairs[API_QUERY_MAX];
    struct failure why = { 0 };
    struct api_call call = { .vocabulary = size % 2 ? VOCABULARY_A : VOCABULARY_B,
                             .query = pairs };
    char *room = mem_alloc(size + 1);

    if (split_query((struct slice){ (const char *)data, size }, room, &call)) {
        if (run_query_read(&call, false, INT64_C(1700000000000), &query, &why)) {
            assert(why.code == ERR_INVALID && why.text[0] && query.wrong);
        } else {
            assert(query.limit >= 1 && query.limit <= 100);
            assert(query.filter.tag_count <= QUERY_VALUES_MAX);
            assert(strlen(query.after) < ID_MAX && strlen(query.before) < ID_MAX);
            check_cursor(query.after);
            check_cursor(query.before);
        }
    }
    free(room);
    return 0;
}
