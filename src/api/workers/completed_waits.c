/* completed_waits.c - writes the complete waits of a run one by one, in time slices. */
#include "api/workers/completed_waits.h"

#include "api/batches/batch.h"
#include "api/packets/packet_name.h"
#include "base/json/members.h"
#include "core/model/waitpoint.h"

static void next_waits(struct deferred *deferred);

void completed_waits_begin(struct completed_waits *waits, struct api_call *call,
                           const struct run *run,
                           void (*done)(struct completed_waits *waits, enum err status))
{
    *waits = (struct completed_waits){ .call = call, .done = done };
    run_copy(&waits->run, run);
    waits->left = wait_list_of(&waits->run);
    waits->deferred.fn = next_waits;
    list_init(&waits->deferred.link);
    buf_add_char(&waits->out, '[');
    loop_defer(engine_loop(api_engine(call->api)), &waits->deferred);
}

void completed_waits_finish(struct completed_waits *waits)
{
    run_finish(&waits->run);
    buf_finish(&waits->out);
}

static void go_on(struct completed_waits *waits)
{
    loop_defer(engine_loop(api_engine(waits->call->api)), &waits->deferred);
}

/* ---- one wait ---- */

/* A run's waitpoint is named after the run. */
static void open_waitpoint(struct buf *out, const struct wait *wait)
{
    static const char *const types[WAIT_TYPES] = { "DATETIME", "RUN", "MANUAL" };
    bool is_run = wait->type == WAIT_RUN;
    struct slice id = is_run ? slice_from(wait->id, sizeof("run_") - 1) : wait->id;
    const char *prefix = is_run ? "waitpoint_" : "";

    buf_print(out,
              "%s{\"id\":\"%s%.*s\",\"friendlyId\":\"%s%.*s\",\"type\":\"%s\","
              "\"completedAt\":",
              out->ptr[out->len - 1] == '[' ? "" : ",", prefix, SLICE_ARG(id), prefix,
              SLICE_ARG(id), types[wait->type]);
    buf_add_json_time(out, wait->completed_at);
    members_add_time(out, "completedAfter", wait->until);
    if (wait->batch.ptr)
        buf_print(out, ",\"index\":%u", wait->index);
}

static void end_waitpoint(struct buf *out, bool is_error)
{
    members_add_bool(out, "outputIsError", is_error);
    buf_add_char(out, '}');
}

static void add_output(struct buf *out, struct slice output, struct slice type,
                       bool is_error)
{
    if (output.ptr) {
        members_add_text(out, "output", output);
        members_add_text(out, "outputType", type);
    }
    end_waitpoint(out, is_error);
}

static struct slice type_or_json(const struct bytes *type)
{
    return type ? bytes_slice(type) : SLICE("application/json");
}

/* Returns false if the output would be too much together with the previous ones. */
static bool has_room(struct completed_waits *waits, struct slice output)
{
    if (output.len > OUTPUTS_MAX - waits->outputs)
        return false;
    waits->outputs += output.len;
    return true;
}

/* Writes the name under which the output of a run or token can be fetched. */
static void add_output_name(struct completed_waits *waits, struct slice id)
{
    struct buf name = { 0 };
    packet_name_output(id, &name);
    add_output(&waits->out, buf_slice(&name), SLICE("application/store"), false);
    buf_finish(&name);
}

/* Adds an error. Workers cannot fetch errors, so those beyond ERRORS_MAX, which no batch of
 * failures exceeds, are left out. */
static void add_error(struct completed_waits *waits, struct slice error)
{
    if (error.len > ERRORS_MAX - waits->errors)
        error = SLICE("{\"type\":\"STRING_ERROR\",\"raw\":\"The error is too large\"}");
    else
        waits->errors += error.len;
    add_output(&waits->out, error, SLICE("application/json"), true);
}

/* run NULL: retention removed it, or it never existed. */
static void add_run(struct completed_waits *waits, const struct run *run)
{
    const struct wait *wait = &waits->wait;
    struct buf *out = &waits->out;
    struct slice gone =
        wait->too_large
            ? SLICE("{\"type\":\"STRING_ERROR\",\"raw\":\"" BATCH_ITEM_TOO_LARGE "\"}")
            : SLICE("{\"type\":\"STRING_ERROR\",\"raw\":\"The run is gone\"}");
    open_waitpoint(out, wait);
    buf_print(out, ",\"completedByTaskRun\":{\"id\":\"%.*s\",\"friendlyId\":\"%.*s\"",
              SLICE_ARG(wait->id), SLICE_ARG(wait->id));
    if (wait->batch.ptr)
        buf_print(out, ",\"batch\":{\"id\":\"%.*s\",\"friendlyId\":\"%.*s\"}",
                  SLICE_ARG(wait->batch), SLICE_ARG(wait->batch));
    buf_add_char(out, '}');
    if (!run || run->status != RUN_COMPLETED)
        add_error(waits, run && run->error ? bytes_slice(run->error) : gone);
    else if (has_room(waits, bytes_slice(run->output)))
        add_output(out, bytes_slice(run->output), type_or_json(run_rare(run)->output_type),
                   false);
    else
        add_output_name(waits, wait->id);
}

static void add_timeout(struct buf *out, const struct wait *wait)
{
    char at[TIME_TEXT_LEN + 1], text[128];
    text_from_time(wait->until, at);
    snprintf(text, sizeof(text),
             "{\"code\":\"TRIGGER_WAITPOINT_TIMEOUT\",\"message\":\"Waitpoint timed out at "
             "%s\"}",
             at);
    add_output(out, slice_of(text), SLICE("application/json"), true);
}

/* token NULL: it no longer exists. */
static void add_token(struct completed_waits *waits, const struct waitpoint *token)
{
    const struct wait *wait = &waits->wait;
    struct buf *out = &waits->out;
    open_waitpoint(out, wait);
    if (!token || !token->completed_at) {
        add_timeout(out, wait);
    } else if (!has_room(waits, bytes_slice(token->output))) {
        add_output_name(waits, wait->id);
    } else {
        if (token->output) {
            members_add_json(out, "output", bytes_slice(token->output));
            members_add_text(out, "outputType", type_or_json(token->output_type));
        }
        end_waitpoint(out, false);
    }
}

/* ---- all waits ---- */

static void on_run(struct run_read *read, enum err status)
{
    struct completed_waits *waits = container_of(read, struct completed_waits, read);
    if (status && status != ERR_NOT_FOUND) {
        waits->done(waits, status);
        return;
    }
    add_run(waits, read->run);
    go_on(waits);
}

static void on_token(struct store_read *read, enum store_status status)
{
    struct completed_waits *waits = container_of(read, struct completed_waits, load.read);
    struct waitpoint token;
    bool is_there = status == STORE_OK && !waitpoint_read(&waits->load.document, &token);
    bytes_clear(&waits->load.name);
    if (status == STORE_OK)
        document_finish(&waits->load.document);
    if (status != STORE_OK && status != STORE_MISSING) {
        waits->done(waits, err_of_store(status));
        return;
    }
    add_token(waits, is_there ? &token : NULL);
    if (is_there)
        waitpoint_finish(&token);
    go_on(waits);
}

static void read_token(struct completed_waits *waits)
{
    struct store *store = engine_store(api_engine(waits->call->api));
    waits->load =
        (struct store_load){ .read = { READ_LOAD, waits->call->env->number, on_token },
                             .is_document = true,
                             .kind = DOC_WAITPOINT,
                             .name = bytes_create(waits->wait.id) };
    store->ops->read(store, &waits->load.read);
}

/* Returns true if the wait is written. Otherwise a read of the run or token that it waited
 * for is in progress. */
static bool write_wait(struct completed_waits *waits)
{
    const struct wait *wait = &waits->wait;
    struct environment *env = waits->call->env;
    const struct tracked *run;
    switch (wait->type) {
    case WAIT_TIME:
        open_waitpoint(&waits->out, wait);
        end_waitpoint(&waits->out, false);
        return true;
    case WAIT_RUN:
        run = environment_find(env, wait->id);
        if (run || wait->too_large)
            add_run(waits, run ? &run->run : NULL);
        else
            run_read_begin(env, wait->id, &waits->read, on_run);
        return run || wait->too_large;
    default: read_token(waits); return false;
    }
}

static void next_waits(struct deferred *deferred)
{
    struct completed_waits *waits =
        container_of(deferred, struct completed_waits, deferred);
    struct loop *loop = engine_loop(api_engine(waits->call->api));
    struct timeslice timeslice = loop_timeslice(loop);
    bool more = true;
    while (more && timeslice_left(&timeslice)) {
        more = wait_list_next(&waits->left, &waits->wait);
        if (more && waits->wait.completed_at && !write_wait(waits))
            return;
    }
    if (more) {
        go_on(waits);
        return;
    }
    buf_add_char(&waits->out, ']');
    waits->done(waits, OK);
}
