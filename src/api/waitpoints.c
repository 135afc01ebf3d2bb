/* waitpoints.c - tokens that somebody completes, and runs that wait for them or for a time
 * (worker-protocol §1.6).
 *
 *   create ─► document (+ the claim of its key) ─► url to complete it by
 *   wait ───► the run is blocked ─────────────────────────┐
 *   complete ─► document with the output, fsynced ─► waits_end ─► the run goes on
 *
 * A token whose timeout has passed is over: nothing is written for that. */
#include "api/waitpoints.h"

#include "api/routes.h"
#include "api/trigger_options.h"
#include "base/mem.h"
#include "base/members.h"

enum {
    SMALL_BODY = 64 * 1024,
    OUTPUT_BODY = 1024 * 1024,
    KEY_LEN_MAX = 2048,
};

/* Of the signature in a token's url: it is good while the token is. */
static const int64_t never_s = 253402300799;

static int64_t now_ms_of(const struct api_call *call)
{
    return loop_wall_ms(engine_loop(api_engine(call->api)));
}

/* ---- reading one ---- */

static void on_loaded(struct store_load *load, enum store_status status)
{
    struct waitpoint_load *op = container_of(load, struct waitpoint_load, load);
    enum err err = err_of_store(status);
    bytes_clear(&load->name);
    if (!err) {
        err = waitpoint_read(&load->document, &op->waitpoint);
        document_finish(&load->document);
    }
    if (err == ERR_NOT_FOUND)
        explain(&op->call->why, ERR_NOT_FOUND, "Waitpoint not found");
    op->done(op, err);
}

void waitpoint_load_begin(struct waitpoint_load *op, struct api_call *call, struct slice id,
                          void (*done)(struct waitpoint_load *op, enum err status))
{
    struct store *store = engine_store(api_engine(call->api));
    *op = (struct waitpoint_load){ .call = call, .done = done };
    op->load = (struct store_load){ .env = call->env->number,
                                    .is_document = true,
                                    .kind = DOC_WAITPOINT,
                                    .name = bytes_create(id),
                                    .done = on_loaded };
    store->ops->load(store, &op->load);
}

/* ---- showing one ---- */

static void add_url(struct api_call *call, const char *id, struct buf *out)
{
    char signature[URL_SIGNATURE_LEN + 1];
    url_sign(call->account, "POST", slice_of(id), never_s, signature);
    api_base_url(call, out);
    buf_print(out, "/api/v1/waitpoints/tokens/%s/callback/%s/%s", id, call->account->id,
              signature);
}

static void add_json_url(struct api_call *call, const char *id, struct buf *out)
{
    struct buf url = { 0 };
    add_url(call, id, &url);
    buf_add_json(out, buf_slice(&url));
    buf_finish(&url);
}

const char *waitpoint_status(const struct waitpoint *waitpoint, int64_t now_ms)
{
    if (waitpoint->completed_at)
        return "COMPLETED";
    return waitpoint_is_over(waitpoint, now_ms) ? "TIMED_OUT" : "WAITING";
}

/* An open object. */
static void open_item(struct api_call *call, const struct waitpoint *waitpoint,
                      struct buf *out)
{
    const struct tag_list *tags = waitpoint->tags;
    int64_t now_ms = now_ms_of(call);
    bool over = waitpoint_is_over(waitpoint, now_ms);
    buf_print(out, "{\"id\":\"%s\",\"url\":", waitpoint->id);
    add_json_url(call, waitpoint->id, out);
    buf_print(out, ",\"status\":\"%s\"", waitpoint_status(waitpoint, now_ms));
    members_add_time(out, "completedAt",
                     !over                     ? 0
                     : waitpoint->completed_at ? waitpoint->completed_at
                                               : waitpoint->until);
    members_add_time(out, "timeoutAt", waitpoint->until);
    if (waitpoint->key) {
        members_add_text(out, "idempotencyKey", bytes_slice(waitpoint->key));
        members_add_time(out, "idempotencyKeyExpiresAt", waitpoint->key_expires_at);
    }
    members_add_texts(out, "tags", tags ? tags->names : NULL, tags ? tags->count : 0);
    members_add_time(out, "createdAt", waitpoint->created_at);
}

void waitpoint_add_item(struct api_call *call, const struct waitpoint *waitpoint,
                        struct buf *out)
{
    open_item(call, waitpoint, out);
    buf_add_char(out, '}');
}

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
        members_add_text(out, "output", bytes_slice(waitpoint->output));
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
        open_item(call, &op->waitpoint, &out);
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

struct completing {
    struct api_call *call;
    struct waitpoint_load load;
    struct document_write write;
    struct bytes *name, *body, *output;
};

static void finish_completing(struct completing *op, enum err status)
{
    struct api_call *call = op->call;
    waitpoint_finish(&op->load.waitpoint);
    bytes_unref(op->name);
    bytes_unref(op->body);
    bytes_unref(op->output);
    free(op);
    if (status)
        api_reply_error(call, status);
    else
        api_reply_json(call, 200, SLICE("{\"success\":true}"));
}

static void on_completed(struct document_write *write, enum err status)
{
    struct completing *op = container_of(write, struct completing, write);
    if (!status)
        waits_end(api_engine(op->call->api), op->call->env, bytes_slice(op->name));
    /* Somebody else has completed it meanwhile: the first one counts. */
    finish_completing(op, status == ERR_CONFLICT ? OK : status);
}

static void on_found(struct waitpoint_load *load, enum err status)
{
    struct completing *op = container_of(load, struct completing, load);
    struct api_call *call = op->call;
    struct waitpoint *token = &load->waitpoint;
    if (status || waitpoint_is_over(token, now_ms_of(call))) {
        finish_completing(op, status);
        return;
    }
    token->completed_at = now_ms_of(call);
    bytes_set(&token->output, op->output);
    op->name = bytes_create(slice_of(token->id));
    op->body = waitpoint_write(token);
    document_write_begin(api_engine(call->api), call->env->number, DOC_WAITPOINT, op->name,
                         op->body, token->version, &op->write, on_completed);
}

/* output: a JSON text, kept byte for byte; absent: none. */
static void begin_completing(struct api_call *call, struct slice output)
{
    struct completing *op = mem_new(struct completing);
    op->call = call;
    if (output.ptr)
        op->output = bytes_create(output);
    call->busy = true;
    waitpoint_load_begin(&op->load, call, call->params[0], on_found);
}

static enum err complete(struct api_call *call)
{
    struct slice body = SLICE("{}");
    if (api_check_scope(call, "write", "waitpoints", call->params[0]))
        return ERR_FORBIDDEN;
    if (call->x->body.len) {
        enum err err = api_read_object(call, &body);
        if (err)
            return err;
    }
    begin_completing(call, scan_member(body, "data"));
    return OK;
}

/* The body is the output. */
static enum err complete_by_url(struct api_call *call)
{
    struct slice body = slice_trim(call->x->body);
    call->account = accounts_by_id(api_accounts(call->api), call->params[1]);
    if (!call->account)
        return explain(&call->why, ERR_NOT_FOUND, "Waitpoint not found");
    enum err err = url_verify(call->account, "POST", call->params[0], never_s,
                              call->params[2], now_ms_of(call), &call->why);
    if (err)
        return err;
    if (body.len && !scan_is_json(body))
        return explain(&call->why, ERR_INVALID, "The body must be JSON");
    call->env = engine_environment(api_engine(call->api), call->account->number);
    begin_completing(call, body.len ? body : (struct slice){ 0 });
    return OK;
}

/* ---- waiting ---- */

struct waiting {
    struct api_call *call;
    struct waitpoint_load load;
    struct wait wait;
    struct block block;
    char id[ID_MAX];
};

static void block_run(struct waiting *op, command_done_fn *done)
{
    op->block.waits = &op->wait;
    op->block.count = 1;
    run_block(api_engine(op->call->api), op->call->env, op->call->params[0], &op->block,
              done);
}

static void on_token_waiting(struct command *command, enum err status)
{
    struct waiting *op = container_of(command, struct waiting, block.command);
    struct api_call *call = op->call;
    if (status) {
        worker_refuse(call, command, status);
    } else {
        api_add_seq(call, command->seq);
        api_reply_json(call, 200, SLICE("{\"success\":true}"));
    }
    free(op);
}

static void on_token(struct waitpoint_load *load, enum err status)
{
    struct waiting *op = container_of(load, struct waiting, load);
    if (status) {
        api_reply_error(op->call, status);
        free(op);
        return;
    }
    memcpy(op->id, load->waitpoint.id, sizeof(op->id));
    op->wait = (struct wait){ .type = WAIT_TOKEN,
                              .id = slice_of(op->id),
                              .until = load->waitpoint.until };
    waitpoint_finish(&load->waitpoint);
    block_run(op, on_token_waiting);
}

static enum err wait_for_token(struct api_call *call)
{
    struct waiting *op = mem_new(struct waiting);
    op->call = call;
    call->busy = true;
    waitpoint_load_begin(&op->load, call, call->params[1], on_token);
    return OK;
}

static void on_time_waiting(struct command *command, enum err status)
{
    struct waiting *op = container_of(command, struct waiting, block.command);
    struct api_call *call = op->call;
    struct buf out = { 0 };
    if (status) {
        worker_refuse(call, command, status);
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
    struct waiting *op = mem_new(struct waiting);
    op->call = call;
    snprintf(op->id, sizeof(op->id), "%s", id);
    op->wait = (struct wait){ .type = WAIT_TIME, .id = slice_of(op->id), .until = until };
    block_run(op, on_time_waiting);
}

/* ---- making one ---- */

struct making {
    struct api_call *call;
    struct waitpoint waitpoint;
    struct waitpoint_load old; /* that the key led to */
    struct claim claim;
    struct change change;
    struct document_write write;
};

static void finish_making(struct making *op)
{
    waitpoint_finish(&op->waitpoint);
    waitpoint_finish(&op->old.waitpoint);
    bytes_unref(op->claim.key);
    free(op);
}

static void reply_token(struct making *op, const struct waitpoint *token, bool cached)
{
    struct api_call *call = op->call;
    char write[ID_MAX + 24];
    const char *scopes[] = { write };
    struct buf out = { 0 };
    snprintf(write, sizeof(write), "write:waitpoints:%s", token->id);
    buf_print(&out, "{\"id\":\"%s\",\"isCached\":%s,\"url\":", token->id,
              cached ? "true" : "false");
    add_json_url(call, token->id, &out);
    buf_add_char(&out, '}');
    api_add_token(call, scopes, 1);
    api_reply_json(call, 200, buf_slice(&out));
    buf_finish(&out);
}

static void reply_made(struct making *op, const struct waitpoint *made, bool cached)
{
    if (made->is_time)
        begin_time(op->call, made->id, made->until);
    else
        reply_token(op, made, cached);
    finish_making(op);
}

static void on_old(struct waitpoint_load *load, enum err status)
{
    struct making *op = container_of(load, struct making, old);
    if (!status) {
        reply_made(op, &load->waitpoint, true);
        return;
    }
    api_reply_error(op->call, status);
    finish_making(op);
}

static void on_made(struct document_write *write, enum err status)
{
    struct making *op = container_of(write, struct making, write);
    if (!status) {
        reply_made(op, &op->waitpoint, false);
    } else if (op->claim.taken) {
        waitpoint_load_begin(&op->old, op->call, slice_of(op->claim.owner), on_old);
    } else {
        api_reply_error(op->call, status);
        finish_making(op);
    }
}

/* The keys of tokens and those of times are apart. */
static void claim_key(struct making *op)
{
    struct waitpoint *waitpoint = &op->waitpoint;
    struct slice kind = waitpoint->is_time ? SLICE("time") : SLICE("token");
    op->claim = (struct claim){
        .kind = CLAIM_WAITPOINT,
        .env = op->call->env->number,
        .key = idempotency_claim_key(kind, bytes_slice(waitpoint->key)),
        .expires_at = waitpoint->key_expires_at,
    };
    memcpy(op->claim.owner, waitpoint->id, sizeof(waitpoint->id));
    op->write.claim = &op->claim;
}

static void begin_making(struct making *op)
{
    struct api_call *call = op->call;
    op->change = (struct change){
        .kind = CHANGE_DOCUMENT,
        .env = call->env->number,
        .document = { .kind = DOC_WAITPOINT,
                      .env = call->env->number,
                      .name = bytes_create(slice_of(op->waitpoint.id)),
                      .body = waitpoint_write(&op->waitpoint) },
    };
    if (op->waitpoint.key)
        claim_key(op);
    documents_write_begin(api_engine(call->api), &op->change, 1, &op->write, on_made);
}

/* ---- the bodies ---- */

static enum err read_text(struct api_call *call, const json_t *body, const char *name,
                          struct slice *text)
{
    const json_t *value = json_object_get(body, name);
    *text = (struct slice){ json_string_value(value), json_string_length(value) };
    if (value && !json_is_null(value) && !text->ptr)
        return explain(&call->why, ERR_INVALID, "%s: must be a string", name);
    return OK;
}

static enum err read_key(struct making *op, const json_t *body)
{
    struct api_call *call = op->call;
    struct slice key, ttl;
    if (read_text(call, body, "idempotencyKey", &key) ||
        read_text(call, body, "idempotencyKeyTTL", &ttl))
        return ERR_INVALID;
    if (key.len > KEY_LEN_MAX)
        return explain(&call->why, ERR_INVALID,
                       "idempotencyKey: must have at most %d characters", KEY_LEN_MAX);
    if (key.len) {
        op->waitpoint.key = bytes_create(key);
        op->waitpoint.key_expires_at = now_ms_of(call) + trigger_key_ttl_ms(ttl);
    }
    return OK;
}

/* A duration from now, or a date. */
static enum err read_timeout(struct making *op, const json_t *body)
{
    struct api_call *call = op->call;
    struct slice text;
    int64_t ms;
    if (read_text(call, body, "timeout", &text))
        return ERR_INVALID;
    if (!text.ptr)
        return OK;
    if (!text_to_duration_ms(text, &ms))
        op->waitpoint.until = now_ms_of(call) + ms;
    else if (text_to_time(text, &op->waitpoint.until))
        return explain(&call->why, ERR_INVALID,
                       "timeout: must be a duration like \"1h30m\" or an ISO 8601 date");
    return OK;
}

static enum err read_tags(struct making *op, const json_t *body)
{
    const json_t *value = json_object_get(body, "tags");
    struct slice tags[RUN_TAGS_MAX];
    size_t count = json_is_string(value) ? 1 : json_array_size(value);
    bool fine = !value || json_is_string(value) || json_is_array(value);
    if (count > RUN_TAGS_MAX)
        return explain(&op->call->why, ERR_INVALID, "tags: at most %d", RUN_TAGS_MAX);
    for (size_t i = 0; i < count && fine; i++) {
        const json_t *tag = json_is_string(value) ? value : json_array_get(value, i);
        tags[i] = (struct slice){ json_string_value(tag), json_string_length(tag) };
        fine = tags[i].len > 0 && text_utf16_length(tags[i]) <= RUN_TAG_CHARS_MAX;
    }
    if (!fine)
        return explain(&op->call->why, ERR_INVALID,
                       "tags: must be a string or an array of strings of 1 to %d "
                       "characters",
                       RUN_TAG_CHARS_MAX);
    op->waitpoint.tags = tag_list_create(tags, count);
    return OK;
}

/* A date as text, or as milliseconds. */
static enum err read_date(struct making *op, const json_t *body)
{
    const json_t *date = json_object_get(body, "date");
    op->waitpoint.is_time = true;
    if (json_is_integer(date) && json_integer_value(date) > 0) {
        op->waitpoint.until = json_integer_value(date);
        return OK;
    }
    if (json_is_string(date) &&
        !text_to_time(slice_of(json_string_value(date)), &op->waitpoint.until))
        return OK;
    return explain(&op->call->why, ERR_INVALID,
                   "date: must be an ISO 8601 date like 2024-01-31T09:00:00.000Z");
}

static enum err make(struct api_call *call, bool is_time)
{
    json_t *body;
    if (api_read_json(call, &body))
        return ERR_INVALID;
    struct making *op = mem_new(struct making);
    op->call = call;
    op->waitpoint.created_at = now_ms_of(call);
    text_make_id("waitpoint", op->waitpoint.created_at, op->waitpoint.id);
    enum err err = read_key(op, body);
    if (!err && is_time)
        err = read_date(op, body);
    if (!err && !is_time)
        err = read_timeout(op, body);
    if (!err && !is_time)
        err = read_tags(op, body);
    json_decref(body);
    if (err) {
        finish_making(op);
        return err;
    }
    call->busy = true;
    if (!is_time || op->waitpoint.key) {
        begin_making(op);
        return OK;
    }
    reply_made(op, &op->waitpoint, false); /* nobody has to find it again */
    return OK;
}

static enum err create_token(struct api_call *call)
{
    return make(call, false);
}

static enum err wait_for_time(struct api_call *call)
{
    return make(call, true);
}

#define TOKENS "/api/v1/waitpoints/tokens"
#define RUN "/engine/v1/runs/:"

enum { KEY_OR_TOKEN = AUTH_KEY | AUTH_PUBLIC };

const struct route waitpoints_routes[] = {
    { HTTP_POST_, TOKENS, AUTH_KEY, SMALL_BODY, create_token, NULL },
    { HTTP_GET_, TOKENS, AUTH_KEY, 0, waitpoint_list, NULL },
    { HTTP_GET_, TOKENS "/:", KEY_OR_TOKEN, 0, retrieve, NULL },
    { HTTP_POST_, TOKENS "/:/complete", KEY_OR_TOKEN, OUTPUT_BODY, complete, NULL },
    { HTTP_POST_, TOKENS "/:/callback/:/:", AUTH_SIGNED, OUTPUT_BODY, complete_by_url,
      NULL },
    { HTTP_POST_, RUN "/wait/duration", AUTH_KEY, SMALL_BODY, wait_for_time, NULL },
    { HTTP_POST_, RUN "/waitpoints/tokens/:/wait", AUTH_KEY, SMALL_BODY, wait_for_token,
      NULL },
    { 0 },
};
