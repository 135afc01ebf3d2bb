/* waitpoints.c - the routes of waitpoint tokens and of runs that wait.
 *
 *   create ─► document (+ the claim of its key) ─► url to complete it by
 *   wait ───► the run is blocked ─────────────────────────┐
 *   complete ─► document with the output, fsynced ─► waits_end ─► the run resumes
 *
 * A token whose timeout has passed ends without a write. */
#include "api/waitpoints/waitpoints.h"

#include "api/request/body_fields.h"
#include "api/request/route.h"
#include "api/streams/streams.h"
#include "api/triggers/blocking.h"
#include "api/waitpoints/callback_body.h"
#include "api/waitpoints/waitpoint_make.h"
#include "base/json/members.h"
#include "base/mem.h"
#include "core/engine/run_commands.h"
#include "core/engine/waitpoint_end.h"

enum {
    SMALL_BODY = 64 * 1024,
    OUTPUT_BODY = 1024 * 1024,
    MEMBERS_MAX = 1000, /* members of the body that completes a token */
};

static int64_t now_ms_of(const struct api_call *call)
{
    return loop_wall_ms(engine_loop(api_engine(call->api)));
}

/* ---- showing one ---- */

static void add_timeout_error(const struct waitpoint *waitpoint, struct buf *out)
{
    char at[TIME_TEXT_LEN + 1];
    text_from_time(waitpoint->until, at);
    buf_print(out,
              ",\"output\":\"{\\\"code\\\":\\\"TRIGGER_WAITPOINT_TIMEOUT\\\","
              "\\\"message\\\":\\\"Waitpoint timed out at %s\\\"}\","
              "\"outputType\":\"application/json\",\"outputIsError\":true",
              at);
}

static void add_output(const struct waitpoint *waitpoint, int64_t now_ms, struct buf *out)
{
    const struct bytes *type = waitpoint->output_type;
    if (!waitpoint_is_over(waitpoint, now_ms))
        return;
    if (!waitpoint->completed_at) {
        add_timeout_error(waitpoint, out);
        return;
    }
    if (waitpoint->output) {
        members_add_json(out, "output", bytes_slice(waitpoint->output));
        members_add_text(out, "outputType",
                         type ? bytes_slice(type) : SLICE("application/json"));
    }
    buf_add_text(out, ",\"outputIsError\":false");
}

static void on_shown(struct waitpoint_load *op, enum err status)
{
    struct api_call *call = op->call;
    struct buf out = { 0 };
    if (!status) {
        waitpoint_open_item(call, &op->waitpoint, &out);
        add_output(&op->waitpoint, now_ms_of(call), &out);
        buf_add_char(&out, '}');
        waitpoint_finish(&op->waitpoint);
    }
    free(op);
    if (status)
        api_reply_error(call, status);
    else
        api_reply_json(call, 200, buf_slice(&out));
    buf_finish(&out);
}

static enum err retrieve(struct api_call *call)
{
    if (api_check_scope(call, "read", "waitpoints", call->params[0]))
        return ERR_FORBIDDEN;
    call->busy = true;
    waitpoint_load_begin(mem_new(struct waitpoint_load), call, call->params[0], on_shown);
    return OK;
}

/* ---- completing ---- */

struct token_completion {
    struct api_call *call;
    bool has_data;
    struct waitpoint_end end;
};

static void on_completed(struct waitpoint_end *end, enum err status)
{
    struct token_completion *op = container_of(end, struct token_completion, end);
    struct api_call *call = op->call;
    if (!status && end->was_over && op->has_data)
        ignored_add_parameter(&call->ignored, SLICE("data"));
    free(op);
    if (status == ERR_NOT_FOUND)
        explain(&call->why, ERR_NOT_FOUND, "Waitpoint not found");
    if (status)
        api_reply_error(call, status);
    else
        api_reply_json(call, 200, SLICE("{\"success\":true}"));
}

/* Begins to complete the token. output: a JSON text, stored byte for byte; absent: none. */
static enum err begin_completing(struct api_call *call, struct slice output)
{
    enum err over = waitpoint_end_check(call->env, output, &call->why);
    if (over)
        return over;
    struct token_completion *op = mem_new(struct token_completion);
    op->call = call;
    op->has_data = output.ptr;
    call->busy = true;
    waitpoint_end_begin(api_engine(call->api), call->env, call->params[0], output, &op->end,
                        on_completed);
    return OK;
}

static enum err may_complete(struct api_call *call)
{
    return api_check_scope(call, "write", "waitpoints", call->params[0]);
}

static enum err take_completion(struct api_call *call, struct slice piece)
{
    return may_complete(call) ? ERR_FORBIDDEN : body_fields_take(call, piece);
}

/* Finds the output in the body. The body was validated while it arrived: this walks over
 * a long output as rarely as possible. */
static enum err read_completion(struct api_call *call, struct slice body,
                                struct slice *output)
{
    struct scan_members members = scan_members(body);
    struct slice key, value;
    *output = (struct slice){ 0 };
    for (size_t met = 0; scan_next_member(&members, &key, &value);) {
        if (++met > MEMBERS_MAX)
            return explain(&call->why, ERR_INVALID,
                           "Validation error: the body has more than %d members",
                           MEMBERS_MAX);
        if (scan_key_is(key, SLICE("data")))
            *output = value;
        else
            ignored_add_member(&call->ignored, "", key);
    }
    if (scan_has_duplicate(body))
        return explain(&call->why, ERR_INVALID,
                       "Validation error: the body names a member twice");
    return OK;
}

static enum err complete(struct api_call *call)
{
    struct body_fields *fields = NULL;
    struct slice body = SLICE("{}"), output;
    if (may_complete(call))
        return ERR_FORBIDDEN;
    if (call->state && body_fields_end(call, &fields, &body))
        return ERR_INVALID;
    enum err refused = read_completion(call, body, &output);
    if (!refused)
        refused = begin_completing(call, output);
    body_fields_free(fields);
    return refused;
}

/* Completes a token by its URL. The body is converted to the output. */
static enum err complete_by_url(struct api_call *call)
{
    struct buf output = { 0 };
    enum err refused = callback_body_read(http_header(call->x, "content-type"),
                                          call->x->body, &output, &call->why);
    if (!refused)
        refused = begin_completing(call, buf_slice(&output));
    buf_finish(&output);
    return refused;
}

/* ---- waiting ---- */

struct token_wait {
    struct api_call *call;
    struct waitpoint_load load;
    struct waitpoint_end end;
    struct wait wait;
    struct block block;
    struct buf stream; /* wait.stream points into it */
    char id[ID_MAX];
};

static void block_run(struct token_wait *op, command_done_fn *done)
{
    op->block.waits = &op->wait;
    op->block.count = 1;
    op->block.asks_quota = true;
    run_block(api_engine(op->call->api), op->call->env, op->call->params[0], &op->block,
              done);
}

static void destroy_waiting(struct token_wait *op)
{
    waitpoint_finish(&op->load.waitpoint);
    buf_finish(&op->stream);
    free(op);
}

static void finish_waiting(struct token_wait *op, enum err status)
{
    if (status)
        api_reply_error(op->call, status);
    else
        api_reply_json(op->call, 200, SLICE("{\"success\":true}"));
    destroy_waiting(op);
}

static void on_record_taken(struct waitpoint_end *end, enum err status)
{
    finish_waiting(container_of(end, struct token_wait, end), status);
}

/* The run is blocked: from now on a new record of the stream ends the wait. One may have
 * arrived earlier. */
static void on_token_waiting(struct command *command, enum err status)
{
    struct token_wait *op = container_of(command, struct token_wait, block.command);
    struct waitpoint *token = &op->load.waitpoint;
    struct api_call *call = op->call;
    struct buf data = { 0 };
    if (status) {
        api_reply_refused(call, status, &command->why, "Run not found");
        destroy_waiting(op);
        return;
    }
    api_add_seq(call, command->seq);
    if (op->wait.stream.ptr &&
        streams_find_input(api_streams(call->api), call->env, call->params[0],
                           bytes_slice(token->stream), token->from, token->created_at,
                           &data))
        waitpoint_end_begin(api_engine(call->api), call->env, slice_of(op->id),
                            buf_slice(&data), &op->end, on_record_taken);
    else
        finish_waiting(op, OK);
    buf_finish(&data);
}

static void on_token(struct waitpoint_load *load, enum err status)
{
    struct token_wait *op = container_of(load, struct token_wait, load);
    const struct waitpoint *token = &load->waitpoint;
    if (status) {
        finish_waiting(op, status);
        return;
    }
    memcpy(op->id, token->id, sizeof(op->id));
    op->wait =
        (struct wait){ .type = WAIT_TOKEN, .id = slice_of(op->id), .until = token->until };
    if (token->run && slice_equal(bytes_slice(token->run), op->call->params[0])) {
        buf_add_json(&op->stream, bytes_slice(token->stream));
        op->wait.stream = buf_slice(&op->stream);
        op->wait.from = token->from;
    }
    block_run(op, on_token_waiting);
}

static enum err wait_for_token(struct api_call *call)
{
    struct token_wait *op = mem_new(struct token_wait);
    op->call = call;
    call->busy = true;
    waitpoint_load_begin(&op->load, call, call->params[1], on_token);
    return OK;
}

static void on_time_waiting(struct command *command, enum err status)
{
    struct token_wait *op = container_of(command, struct token_wait, block.command);
    struct api_call *call = op->call;
    struct buf out = { 0 };
    if (status) {
        api_reply_refused(call, status, &command->why, "Run not found");
    } else {
        buf_add_text(&out, "{\"waitUntil\":");
        buf_add_json_time(&out, op->wait.until);
        buf_print(&out, ",\"waitpoint\":{\"id\":\"%s\"}}", op->id);
        api_add_seq(call, command->seq);
        api_reply_json(call, 200, buf_slice(&out));
    }
    buf_finish(&out);
    free(op);
}

static void begin_time(struct api_call *call, const char *id, int64_t until)
{
    struct token_wait *op = mem_new(struct token_wait);
    op->call = call;
    snprintf(op->id, sizeof(op->id), "%s", id);
    op->wait = (struct wait){ .type = WAIT_TIME, .id = slice_of(op->id), .until = until };
    block_run(op, on_time_waiting);
}

/* ---- making one ---- */

static void reply_token(struct api_call *call, const struct waitpoint *token, bool cached)
{
    char write[ID_MAX + 24];
    const char *scopes[] = { write };
    struct buf out = { 0 };
    snprintf(write, sizeof(write), "write:waitpoints:%s", token->id);
    buf_print(&out, "{\"id\":\"%s\",\"isCached\":%s,\"url\":", token->id,
              cached ? "true" : "false");
    waitpoint_add_url(call, token->id, &out);
    buf_add_char(&out, '}');
    api_add_token(call, scopes, 1);
    api_reply_json(call, 200, buf_slice(&out));
    buf_finish(&out);
}

static void destroy_make(struct waitpoint_make *make)
{
    waitpoint_make_finish(make);
    free(make);
}

static void on_made(struct waitpoint_make *make, enum err status)
{
    const struct waitpoint *made = make->made;
    if (status)
        api_reply_error(make->call, status);
    else if (made->is_time)
        begin_time(make->call, made->id, made->until);
    else
        reply_token(make->call, made, make->cached);
    destroy_make(make);
}

static enum err begin_making(struct api_call *call, bool is_time)
{
    json_t *body;
    if (api_read_json(call, &body))
        return ERR_INVALID;
    struct waitpoint_make *make = mem_new(struct waitpoint_make);
    waitpoint_make_init(make, call, on_made);
    enum err err = is_time ? waitpoint_make_read_time(make, body)
                           : waitpoint_make_read_token(make, body);
    json_decref(body);
    bool stored = !is_time || make->waitpoint.key; /* it must be found again */
    if (!err && stored)
        err = engine_check_quota(call->env, call->x->body.len, &call->why);
    if (err) {
        destroy_make(make);
        return err;
    }
    call->busy = true;
    if (stored)
        waitpoint_make_begin(make, is_time ? SLICE("time") : SLICE("token"));
    else
        on_made(make, OK);
    return OK;
}

static enum err create_token(struct api_call *call)
{
    return begin_making(call, false);
}

static enum err wait_for_time(struct api_call *call)
{
    return begin_making(call, true);
}

#define TOKENS "/api/v1/waitpoints/tokens"
#define RUN "/engine/v1/runs/{runId}"

enum { KEY_OR_TOKEN = AUTH_KEY | AUTH_PUBLIC };

/* clang-format off */
static const struct route routes[] = {
    { .method = HTTP_POST_, .path = TOKENS,
      .auth = AUTH_KEY | AUTH_FOR_USER, .body_limit = SMALL_BODY, .handle = create_token,
      .claims = true, .own_key = OWN_KEY_IN_BODY, .id = "create_waitpoint_token_v1", .summary = "Create a token",
      .body = "{timeout?: string|number|null, idempotencyKey?: string|null, idempotencyKeyTTL?: "
          "string|null, tags?: string|string[]|null, ...}",
      .reply = "{id: string, isCached: boolean, url: string, publicAccessToken?: string}",
      .also = "422 507" },
    { .method = HTTP_GET_, .path = TOKENS,
      .auth = AUTH_KEY | AUTH_FOR_USER, .handle = waitpoint_list,
      .id = "list_waitpoint_tokens_v1", .summary = "List tokens",
      .query = "page[size]?: integer, page[after]?: string, page[before]?: string, "
          "filter[status]?: string, filter[idempotencyKey]?: string, filter[tags]?: string, "
          "filter[createdAt][from]?: string, filter[createdAt][to]?: string, "
          "filter[createdAt][period]?: string",
      .reply = "{data: WaitpointToken[], pagination: CursorPage}" },
    { .method = HTTP_GET_, .path = TOKENS "/{waitpointId}",
      .auth = KEY_OR_TOKEN, .handle = retrieve,
      .id = "retrieve_waitpoint_token_v1",
      .summary = "Retrieve a token; its url is empty for callers that may not complete it",
      .reply = "WaitpointToken" },
    { .method = HTTP_POST_, .path = TOKENS "/{waitpointId}/complete",
      .auth = KEY_OR_TOKEN, .body_limit = OUTPUT_BODY, .handle = complete,
      .on_body = take_completion,
      .id = "complete_waitpoint_token_v1", .summary = "Complete a token",
      .body = "{data?: any, ...}",
      .reply = "{success: boolean}",
      .also = "422 507" },
    { .method = HTTP_POST_,
      .path = TOKENS "/{waitpointId}/callback/{environment}/{signature}",
      .auth = AUTH_SIGNED, .signed_form = SIGNED_CALLBACK, .body_limit = OUTPUT_BODY, .handle = complete_by_url,
      .id = "complete_waitpoint_token_by_url_v1", .summary = "Complete a token by its url",
      .body = "any",
      .reply = "{success: boolean}",
      .also = "422 507" },
    { .method = HTTP_POST_, .path = "/api/v1/runs/{runId}/input-streams/wait",
      .auth = AUTH_KEY, .body_limit = SMALL_BODY, .handle = input_wait_create,
      .claims = true, .own_key = OWN_KEY_IN_BODY, .id = "create_input_stream_waitpoint_v1",
      .summary = "Create a token that the next record of an input stream completes",
      .body = "{streamId: string, timeout?: string|null, idempotencyKey?: string|null, "
          "idempotencyKeyTTL?: string|null, tags?: string|string[]|null, "
          "lastSeqNum?: integer|null, ...}",
      .reply = "{waitpointId: string, isCached: boolean}",
      .also = "422 507" },
    { .method = HTTP_POST_, .path = RUN "/wait/duration",
      .auth = AUTH_KEY, .body_limit = SMALL_BODY, .handle = wait_for_time,
      .id = "worker_wait_v1", .summary = "Wait for a time",
      .body = "{date: string, ...}",
      .reply = "{...}",
      .also = "409 422 507" },
    { .method = HTTP_POST_, .path = RUN "/waitpoints/tokens/{waitpointId}/wait",
      .auth = AUTH_KEY, .body_limit = SMALL_BODY, .handle = wait_for_token,
      .id = "wait_for_token_v1", .summary = "Block a run until a token is completed",
      .body = "{...}",
      .reply = "{success: boolean, ...}",
      .also = "409 422" },
    { 0 },
};
/* clang-format on */

static const struct schema schemas[] = {
    { "WaitpointToken",
      "{id: string, url: string, status: 'WAITING'|'COMPLETED'|'TIMED_OUT',"
      " idempotencyKey?: string, idempotencyKeyExpiresAt?: datetime,"
      " timeoutAt?: datetime, completedAt?: datetime, output?: string,"
      " outputType?: string, outputIsError?: boolean, tags: string[],"
      " createdAt: datetime, waitingRun?: WaitingRun}" },
    { "WaitingRun", "{id: string, taskIdentifier: string, since: datetime}" },
    { 0 },
};

const struct area waitpoints_area = {
    .tag = "waitpoints", .is_for_users = true, .routes = routes, .schemas = schemas
};
