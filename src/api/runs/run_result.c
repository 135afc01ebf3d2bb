/* run_result.c - the route that returns the output or error of a finished run.
 *
 *   ?format=json ─► the output as a value
 *   without      ─► the output as a text in a string, which SDKs parse by its type
 *
 * A run that has not finished, even after ?wait=, gets the same response as an unknown
 * one. */
#include "api/runs/run_result.h"

#include "api/request/quotas.h"
#include "api/runs/run_await.h"
#include "api/runs/run_body.h"
#include "api/runs/run_reply.h"
#include "base/mem.h"

struct result {
    struct api_call *call;
    bool as_value;
    struct run_await await;
};

static void write_body(const struct result *result, const struct run *run, struct buf *out)
{
    struct buf url = { 0 };
    if (result->as_value)
        run_body_result_value(
            run, run_reply_url(result->call, run->output, run_rare(run)->output_type, &url),
            out);
    else
        run_body_result(run, out);
    buf_finish(&url);
}

static void on_read(struct run_await *await, enum err status)
{
    struct result *result = container_of(await, struct result, await);
    const struct run *run = await->read.run;
    struct rope body = { 0 };
    rope_clear(&body);
    if (!status && !run_is_final(run))
        status = ERR_NOT_FOUND;
    if (!status)
        status = quotas_release_response(result->call);
    if (status == ERR_NOT_FOUND)
        explain(&result->call->why, status, "Run either doesn't exist or is not finished");
    if (status) {
        held_call_refuse(&await->held, status);
    } else {
        write_body(result, run, &body.text);
        api_reply_json_rope(result->call, 200, &body);
    }
    rope_finish(&body);
    free(result);
}

static enum err read_format(struct api_call *call, bool *as_value)
{
    struct slice format = api_query(call, "format");
    *as_value = slice_is(format, "json");
    if (format.ptr && !*as_value)
        return explain(
            &call->why, ERR_INVALID,
            "format must be json or omitted; without it, the output is a string");
    return OK;
}

enum err run_result(struct api_call *call)
{
    bool as_value;
    enum err refused = read_format(call, &as_value);
    if (refused)
        return refused;
    struct result *result = mem_new(struct result);
    result->call = call;
    result->as_value = as_value;
    refused = run_await_begin(call, &result->await, on_read);
    if (refused)
        free(result);
    return refused;
}
