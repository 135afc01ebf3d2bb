/* waitpoint_end.c - loads the token, escapes the output, writes both, resumes waiting runs.
 *
 * A token whose timeout has passed is not written. The output is stored as a JSON string. A
 * megabyte with a quote every few bytes is escaped in several turns. */
#include "core/engine/waitpoint_end.h"

#include "base/escape.h"
#include "base/log.h"
#include "core/engine/calls.h"
#include "core/engine/waits.h"

enum { ESCAPED_AT_ONCE = 32 * 1024 };

enum err waitpoint_end_check(const struct environment *env, struct slice output,
                             struct failure *why)
{
    return output.len > WAITPOINT_OUTPUT_SMALL ? engine_check_quota(env, output.len, why)
                                               : OK;
}

static void waitpoint_end_finish(struct waitpoint_end *op, enum err status)
{
    environment_release(op->env);
    bytes_clear(&op->load.name);
    bytes_clear(&op->output);
    waitpoint_finish(&op->waitpoint);
    op->done(op, status);
}

static void on_written(struct document_write *write, enum err status)
{
    struct waitpoint_end *op = container_of(write, struct waitpoint_end, write);
    if (!status) {
        log_decision("waitpoint completed", op->env->id, NULL, "a client completed it",
                     "waitpoint", log_slice(bytes_slice(op->load.name)), NULL);
        waits_end(op->engine, op->env, bytes_slice(op->load.name));
    }
    op->was_over = status == ERR_CONFLICT; /* another request has completed it meanwhile */
    waitpoint_end_finish(op, op->was_over ? OK : status);
}

static void complete(struct waitpoint_end *op)
{
    op->waitpoint.completed_at = loop_wall_ms(op->engine->loop);
    op->change = waitpoint_change(&op->waitpoint, op->env->number);
    op->engine->reads--;
    documents_write_begin(op->engine, &op->change, 1, &op->write, on_written);
}

/* ---- the output as a JSON string ---- */

/* Allocates a string for the whole escaped text; its len grows with each addition. */
static struct bytes *begin_string(const struct bytes *text)
{
    struct bytes *string =
        bytes_create_empty(escape_len(bytes_slice(text)) + ESCAPE_ROOM_LEAST + 1);
    string->data[0] = '"';
    string->len = 1;
    return string;
}

static void add_some(struct bytes *string, const struct bytes *text, size_t *taken)
{
    struct slice rest = slice_from(bytes_slice(text), *taken);
    size_t room = 6 * ESCAPED_AT_ONCE + ESCAPE_ROOM_LEAST, more;
    if (rest.len > ESCAPED_AT_ONCE) {
        rest.len = ESCAPED_AT_ONCE;
        while (((unsigned char)rest.ptr[rest.len] & 0xC0) == 0x80)
            rest.len--; /* never within a character */
    }
    string->len += (uint32_t)escape_step(rest, string->data + string->len, room, &more);
    *taken += more;
}

static void escape_some(struct deferred *deferred)
{
    struct waitpoint_end *op = container_of(deferred, struct waitpoint_end, deferred);
    struct timeslice timeslice = loop_timeslice(op->engine->loop);
    struct bytes *string = op->waitpoint.output;
    while (op->taken < op->output->len && timeslice_left(&timeslice))
        add_some(string, op->output, &op->taken);
    if (op->taken < op->output->len) {
        loop_defer(op->engine->loop, &op->deferred);
        return;
    }
    memcpy(string->data + string->len, "\"", 2);
    string->len++;
    complete(op);
}

/* ---- loading ---- */

static enum err read_waitpoint(struct waitpoint_end *op)
{
    enum err err = waitpoint_read(&op->load.document, &op->waitpoint);
    document_finish(&op->load.document);
    return err;
}

static void on_loaded(struct store_read *read, enum store_status status)
{
    struct waitpoint_end *op = container_of(read, struct waitpoint_end, load.read);
    enum err err = status ? err_of_store(status) : read_waitpoint(op);
    bool is_over =
        !err && waitpoint_is_over(&op->waitpoint, loop_wall_ms(op->engine->loop));
    if (err || is_over) {
        op->engine->reads--;
        op->was_over = is_over;
        if (is_over) /* by a write that was reported as failed, so no waits were ended */
            waits_end(op->engine, op->env, bytes_slice(op->load.name));
        waitpoint_end_finish(op, err);
    } else if (op->output) {
        bytes_unref(op->waitpoint.output);
        op->waitpoint.output = begin_string(op->output);
        escape_some(&op->deferred);
    } else {
        complete(op);
    }
}

void waitpoint_end_begin(struct engine *engine, struct environment *env, struct slice id,
                         struct slice output, struct waitpoint_end *op,
                         void (*done)(struct waitpoint_end *op, enum err status))
{
    *op = (struct waitpoint_end){ .engine = engine, .env = env, .done = done };
    op->deferred.fn = escape_some;
    list_init(&op->deferred.link);
    environment_hold(env);
    if (output.ptr)
        op->output = bytes_create(output);
    op->load = (struct store_load){ .read = { READ_LOAD, env->number, on_loaded },
                                    .is_document = true,
                                    .kind = DOC_WAITPOINT,
                                    .name = bytes_create(id) };
    engine->reads++;
    engine->store->ops->read(engine->store, &op->load.read);
}
