/* batch_results.c - the route that returns the results of a batch's finished runs.
 *
 * The runs are read by id in the order of the items: some may belong to older batches,
 * some are in memory and some only in the store. Reading one at a time keeps every turn
 * short and only one run in memory. */
#include "api/batches/batch.h"
#include "api/batches/batches.h"
#include "api/request/quotas.h"
#include "api/runs/run_body.h"
#include "base/mem.h"

enum { RESULTS_BYTES_MAX = 64 << 20 };

struct results {
    struct api_call *call;
    struct batch_load load;
    struct run_read read;
    size_t next;
    struct rope out;
};

static void results_destroy(struct results *results)
{
    batch_finish(&results->load.batch);
    rope_finish(&results->out);
    free(results);
}

static void batch_results_refuse(struct results *results, enum err err)
{
    api_reply_error(results->call, err);
    results_destroy(results);
}

static void read_next(struct results *results);

/* Omits runs that retention has removed. */
static void on_run(struct run_read *read, enum err status)
{
    struct results *results = container_of(read, struct results, read);
    struct buf *out = &results->out.text;
    if (!status)
        status = quotas_check_answer(results->call);
    if (status && status != ERR_NOT_FOUND) {
        batch_results_refuse(results, status);
        return;
    }
    if (!status && run_is_final(read->run)) {
        if (out->ptr[out->len - 1] != '[')
            buf_add_char(out, ',');
        size_t before = rope_len(&results->out);
        run_body_result(read->run, out);
        quotas_hold(results->call, rope_len(&results->out) - before);
    }
    if (rope_len(&results->out) > RESULTS_BYTES_MAX) {
        explain(&results->call->why, ERR_RULE,
                "The results together are too large (max %d bytes); read them run by run",
                RESULTS_BYTES_MAX);
        batch_results_refuse(results, ERR_RULE);
        return;
    }
    read_next(results);
}

static void read_next(struct results *results)
{
    const struct batch *batch = &results->load.batch;
    struct api_call *call = results->call;
    if (results->next < batch->count && !call->x->gone) {
        run_read_begin(call->env, slice_of(batch->runs[results->next++].id), &results->read,
                       on_run);
        return;
    }
    enum err full = quotas_release_response(call);
    if (full) {
        batch_results_refuse(results, full);
        return;
    }
    buf_add_text(&results->out.text, "]}");
    api_reply_json_rope(call, 200, &results->out);
    results_destroy(results);
}

static void on_loaded(struct batch_load *load, enum err status)
{
    struct results *results = container_of(load, struct results, load);
    if (status) {
        explain(&results->call->why, ERR_NOT_FOUND, "Batch not found");
        batch_results_refuse(results, status);
        return;
    }
    buf_print(&results->out.text, "{\"id\":\"%s\",\"items\":[", load->batch.id);
    read_next(results);
}

enum err batch_results(struct api_call *call)
{
    struct results *results = mem_new(struct results);
    results->call = call;
    rope_clear(&results->out);
    call->busy = true;
    batch_load_begin(call, call->params[0], &results->load, on_loaded);
    return OK;
}
