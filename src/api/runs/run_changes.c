/* run_changes.c - reschedules a run, adds tags, and resets idempotency keys.
 *
 * Each handler reads a small body, begins one operation of the engine and replies when
 * it is done. The error messages are those of Trigger.dev, which clients know. */
#include "api/runs/run_changes.h"

#include "api/runs/run_reply.h"
#include "api/triggers/trigger_options.h"
#include "base/json/scan.h"
#include "base/mem.h"
#include "core/engine/run_commands.h"

enum { TAGS_SENT_MAX = 1000 };

static const char no_run[] = "Run not found";
static const char invalid_body[] = "Invalid request body";

/* ---- reschedule ---- */

struct put_off {
    struct api_call *call;
    struct reschedule reschedule;
};

static void on_put_off(struct command *command, enum err status)
{
    struct put_off *op = container_of(command, struct put_off, reschedule.command);
    if (status)
        api_reply_refused(op->call, status, &command->why, no_run);
    else
        run_reply_begin(op->call, command->run, command->seq);
    free(op);
}

/* Accepts a date, a duration from now, or a number that JavaScript takes as a date. */
static enum err read_delay(struct slice text, bool is_number, int64_t now_ms,
                           int64_t *until, struct failure *why)
{
    int64_t time = 0;
    double number = 0;
    bool is_date =
        is_number && scan_number(text, &number) && !text_number_to_time(number, &time);
    if (is_number && scan_number(text, &number) && trigger_number_is_no_time(number))
        return explain(why, ERR_INVALID,
                       "Invalid delay: %.*s as a number is a date in milliseconds since "
                       "1970; for a duration send text like 60s",
                       SLICE_ARG(text_clip(text)));
    if (!is_date && text_to_moment(text, now_ms, &time))
        return explain(why, ERR_INVALID,
                       "Invalid delay: '%.*s' is neither a date like "
                       "2030-01-31T09:00:00Z nor a duration like 1h30m",
                       SLICE_ARG(text_clip(text)));
    if (time <= now_ms)
        return explain(why, ERR_INVALID, "Invalid delay: '%.*s' is not in the future",
                       SLICE_ARG(text_clip(text)));
    *until = time;
    return OK;
}

enum err run_put_off(struct api_call *call)
{
    struct slice body;
    struct buf text = { 0 };
    int64_t until = 0;
    enum err refused = api_read_object(call, &body);
    if (refused)
        return refused;
    struct slice delay = scan_member(body, "delay");
    bool is_number = scan_type(delay) == SCAN_NUMBER;
    if (is_number)
        buf_add(&text, delay);
    else if (!scan_string(delay, &text)) {
        api_reply_details(call, invalid_body, "issues", "delay", "Expected string");
        return OK;
    }
    int64_t now = loop_wall_ms(engine_loop(api_engine(call->api)));
    refused = read_delay(slice_trim(buf_slice(&text)), is_number, now, &until, &call->why);
    buf_finish(&text);
    if (refused)
        return refused;

    struct put_off *op = mem_new(struct put_off);
    call->busy = true;
    op->call = call;
    op->reschedule.delayed_until = until;
    run_reschedule(api_engine(call->api), call->env, call->params[0], &op->reschedule,
                   on_put_off);
    return OK;
}

/* ---- tags ---- */

struct tagging {
    struct api_call *call;
    struct add_tags add;
    struct slice *tags;
    struct buf texts; /* the tags point into it, so it never grows */
};

static void finish_tagging(struct tagging *op)
{
    free(op->tags);
    buf_finish(&op->texts);
    free(op);
}

static void on_tagged(struct command *command, enum err status)
{
    struct tagging *op = container_of(command, struct tagging, add.command);
    struct api_call *call = op->call;
    struct buf body = { 0 };
    if (status) {
        api_reply_refused(call, status, &command->why, no_run);
    } else {
        if (op->add.added)
            buf_print(&body, "{\"message\":\"Successfully set %zu new tags.\"}",
                      op->add.added);
        else
            buf_add_text(&body, "{\"message\":\"No new tags to add\"}");
        api_add_seq(call, command->seq);
        api_reply_json(call, 200, buf_slice(&body));
    }
    buf_finish(&body);
    finish_tagging(op);
}

/* Adds a tag, but drops blank ones. Returns NULL, or why the tag is invalid. */
static const char *take_tag(struct tagging *op, struct slice value)
{
    size_t at = op->texts.len;
    if (!scan_string(value, &op->texts))
        return "Expected string";
    struct slice tag = { op->texts.ptr + at, op->texts.len - at };
    if (text_utf16_length(tag) > RUN_TAG_CHARS_MAX)
        return "Tags must be at most 128 characters";
    if (op->add.count == TAGS_SENT_MAX)
        return "Too many tags at once";
    if (slice_trim(tag).len)
        op->tags[op->add.count++] = tag;
    return NULL;
}

static const char *take_tags(struct tagging *op, struct slice value)
{
    struct scan_members members;
    struct slice element;
    const char *wrong = NULL;
    if (scan_type(value) != SCAN_ARRAY)
        return take_tag(op, value);
    members = scan_members(value);
    while (!wrong && scan_next_element(&members, &element))
        wrong = take_tag(op, element);
    return wrong;
}

enum err run_tag(struct api_call *call)
{
    struct slice body;
    enum err refused = api_read_object(call, &body);
    if (!refused)
        refused = engine_check_quota(call->env, body.len, &call->why);
    if (refused)
        return refused;

    struct tagging *op = mem_new(struct tagging);
    op->call = call;
    op->tags = mem_new_array(struct slice, TAGS_SENT_MAX);
    buf_reserve(&op->texts, body.len);
    const char *wrong = take_tags(op, scan_member(body, "tags"));
    if (wrong) {
        api_reply_details(call, invalid_body, "issues", "tags", wrong);
        finish_tagging(op);
        return OK;
    }
    call->busy = true;
    op->add.tags = op->tags;
    run_add_tags(api_engine(call->api), call->env, call->params[0], &op->add, on_tagged);
    return OK;
}

/* ---- idempotency keys ---- */

struct key_reset {
    struct api_call *call;
    struct reset_key reset;
    struct buf task;
};

static void finish_reset(struct key_reset *op)
{
    buf_finish(&op->task);
    free(op);
}

static void on_reset(struct reset_key *reset, enum err status)
{
    struct key_reset *op = container_of(reset, struct key_reset, reset);
    struct api_call *call = op->call;
    struct slice key = call->params[0];
    struct buf body = { 0 };
    if (status) {
        explain(&call->why, status,
                "No runs found with idempotency key: %.*s and task: %.*s",
                SLICE_ARG(text_clip(key)), SLICE_ARG(text_clip(buf_slice(&op->task))));
        if (status != ERR_NOT_FOUND)
            call->why.code = OK;
        api_reply_error(call, status);
    } else {
        buf_add_text(&body, "{\"id\":");
        buf_add_json(&body, key);
        buf_add_char(&body, '}');
        api_add_seq(call, 0);
        api_reply_json(call, 200, buf_slice(&body));
    }
    buf_finish(&body);
    finish_reset(op);
}

enum err run_free_key(struct api_call *call)
{
    struct slice body;
    enum err refused = api_check_scope(call, "write", "runs", (struct slice){ 0 });
    if (!refused)
        refused = api_read_object(call, &body);
    if (refused)
        return refused;

    struct key_reset *op = mem_new(struct key_reset);
    op->call = call;
    if (!scan_string(scan_member(body, "taskIdentifier"), &op->task) || !op->task.len) {
        finish_reset(op);
        api_reply_details(call, invalid_body, "issues", "taskIdentifier",
                          "Expected the id of a task");
        return OK;
    }
    call->busy = true;
    run_reset_key(api_engine(call->api), call->env, buf_slice(&op->task), call->params[0],
                  &op->reset, on_reset);
    return OK;
}
