/* run_counts.c - counts the runs of a filter by status, in one read of the store.
 *
 * The counts are exact at the seq in the response's x-runs-seq and include every write
 * acknowledged before, also at a gateway that follows. */
#include "api/runs/run_counts.h"

#include <inttypes.h>

#include "api/runs/run_list.h"
#include "api/runs/run_query.h"
#include "base/mem.h"

struct counting {
    struct api_call *call;
    struct run_query query;
    struct store_count count;
};

void run_counts_add(enum vocabulary vocabulary, const uint64_t *counts, struct buf *out)
{
    struct run_word_count words[RUN_STATUS_COUNT];
    size_t used = run_count_words(vocabulary, counts, words);
    uint64_t total = 0;
    buf_add_text(out, "{\"byStatus\":{");
    for (size_t i = 0; i < used; i++) {
        buf_print(out, "%s\"%s\":%" PRIu64, i ? "," : "", words[i].word, words[i].count);
        total += words[i].count;
    }
    buf_print(out, "},\"total\":%" PRIu64 "}", total);
}

static void on_gone(struct api_call *call)
{
    struct counting *counting = call->state;
    store_read_abandon(&counting->count.read);
}

static void on_counted(struct store_read *read, enum store_status status)
{
    struct counting *counting = container_of(read, struct counting, count.read);
    struct api_call *call = counting->call;
    call->state = NULL;
    call->on_gone = NULL;
    struct buf body = { 0 };
    if (status) {
        run_list_refuse(call, status);
    } else {
        run_counts_add(call->vocabulary, counting->count.counts, &body);
        api_add_seq(call, counting->count.seq);
        api_reply_json(call, 200, buf_slice(&body));
    }
    buf_finish(&body);
    free(counting);
}

enum err run_counts(struct api_call *call)
{
    struct counting *counting = mem_new(struct counting);
    struct store *store = engine_store(api_engine(call->api));
    struct failure why = { 0 };
    int64_t now = loop_wall_ms(engine_loop(api_engine(call->api)));
    if (run_query_read(call, false, now, &counting->query, &why)) {
        api_reply_details(call, "Query Error", "details", counting->query.wrong, why.text);
        free(counting);
        return OK;
    }
    if (!api_identity_may_list(call->identity, &counting->query.filter)) {
        free(counting);
        return ERR_FORBIDDEN;
    }
    run_list_report_times(call);
    counting->call = call;
    counting->count =
        (struct store_count){ .read = { READ_COUNT, call->account->number, on_counted },
                              .filter = counting->query.filter };
    call->busy = true;
    call->state = counting;
    call->on_gone = on_gone;
    store->ops->read(store, &counting->count.read);
    return OK;
}
