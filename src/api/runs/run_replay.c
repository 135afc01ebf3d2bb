/* run_replay.c - creates a new run from an old one, with the caller's overrides.
 *
 *   body, piece by piece ─► old run ─► options: overrides, else old values ─► trigger
 *
 * Copied: task, payload, tags, metadata as triggered, queue (unless is_queue_there
 * returns false), machine, concurrencyKey, isTest, region. Not copied: delay, ttl, keys,
 * limits, version, parent, batch. */
#include "api/runs/run_changes.h"
#include "api/triggers/trigger_call.h"
#include "base/json/envelope.h"
#include "base/json/scan.h"
#include "base/mem.h"

struct replay {
    struct api_call *call;
    struct envelope body; /* an empty text: no overrides */
    struct run_read read;
    struct trigger item;
    struct trigger_op trigger;
};

/* The members of a body, and the option of a trigger that each one becomes. */
static const struct {
    const char *name;
    const char *option; /* NULL: read separately */
} overrides[] = {
    { "payload", NULL },
    { "payloadType", "payloadType" },
    { "metadata", "metadata" },
    { "tags", "tags" },
    { "queue", "queue" },
    { "concurrencyKey", "concurrencyKey" },
    { "machine", "machine" },
    { "version", "lockToVersion" },
    { "region", "region" },
    { "delay", "delay" },
    { "ttl", "ttl" },
    { "idempotencyKey", "idempotencyKey" },
    { "idempotencyKeyTTL", "idempotencyKeyTTL" },
    { "maxAttempts", "maxAttempts" },
    { "maxDuration", "maxDuration" },
    { "priority", "priority" },
};

enum { OVERRIDE_COUNT = sizeof(overrides) / sizeof(overrides[0]) };

/* ---- the body ---- */

static void run_replay_finish(struct replay *replay)
{
    if (replay->trigger.items)
        trigger_op_finish(&replay->trigger);
    else
        run_finish(&replay->item.run);
    envelope_finish(&replay->body);
    free(replay);
}

static struct replay *replay_of(struct api_call *call)
{
    struct replay *replay = call->state;
    if (replay)
        return replay;
    replay = call->state = mem_new(struct replay);
    replay->call = call;
    envelope_clear(&replay->body);
    return replay;
}

static struct replay *take_out(struct api_call *call)
{
    struct replay *replay = replay_of(call);
    call->state = NULL;
    call->on_gone = NULL;
    return replay;
}

/* The client disconnected before it had sent the whole body. */
static void on_gone(struct api_call *call)
{
    run_replay_finish(take_out(call));
    api_reply_gone(call);
}

enum err run_replay_take(struct api_call *call, struct slice piece)
{
    struct replay *replay = replay_of(call);
    call->on_gone = on_gone;
    if (!envelope_feed(&replay->body, piece))
        return OK;
    scan_explain(&replay->body.scan, &call->why);
    run_replay_finish(take_out(call));
    return ERR_INVALID;
}

static bool is_known(struct slice key)
{
    for (size_t i = 0; i < OVERRIDE_COUNT; i++)
        if (scan_key_is(key, slice_of(overrides[i].name)))
            return true;
    return false;
}

static enum err check_body(struct replay *replay, struct failure *why)
{
    const struct envelope *body = &replay->body;
    if (!slice_trim(buf_slice(&body->text)).len) {
        envelope_clear(&replay->body);
        return OK;
    }
    enum err refused = envelope_close(&replay->body, why);
    for (size_t i = 0; !refused && i < body->count; i++) {
        const struct envelope_member *member = &body->members[i];
        struct slice key = { body->text.ptr + member->key, member->key_len };
        if (!is_known(key))
            refused = explain(why, ERR_INVALID,
                              "Validation error: Unrecognized key '%.*s': a replay can "
                              "override payload, metadata, tags and other options",
                              SLICE_ARG(text_clip(key)));
    }
    return refused;
}

static enum err check_number(const struct replay *replay, const char *name, double least,
                             struct failure *why)
{
    struct slice value = envelope_get(&replay->body, name);
    double number = 0;
    if (scan_type(value) != SCAN_NUMBER || (scan_number(value, &number) && number >= least))
        return OK;
    return explain(why, ERR_INVALID,
                   "Validation error: Number must be greater than or equal to %g at \"%s\"",
                   least, name);
}

/* Checks the members that the published schema restricts more than the options of a
 * trigger. */
static enum err check_values(const struct replay *replay, struct failure *why)
{
    struct slice type = envelope_get(&replay->body, "payloadType");
    struct slice payload = envelope_get(&replay->body, "payload");
    bool is_super = scan_equal(type, SLICE("\"application/super+json\""));
    if (type.ptr && !is_super && !scan_equal(type, SLICE("\"application/json\"")))
        return explain(why, ERR_INVALID,
                       "Validation error: Expected application/json or "
                       "application/super+json at \"payloadType\"");
    if (is_super && scan_type(payload) != SCAN_STRING)
        return explain(why, ERR_INVALID,
                       "Validation error: Expected a SuperJSON string at \"payload\"");
    if (scan_type(envelope_get(&replay->body, "metadata")) == SCAN_NULL)
        return explain(why, ERR_INVALID,
                       "Validation error: Expected object at \"metadata\"");
    enum err refused = check_number(replay, "maxAttempts", 1, why);
    return refused ? refused : check_number(replay, "maxDuration", 0, why);
}

/* ---- the new run ---- */

static bool overrides_it(const struct replay *replay, const char *name)
{
    return envelope_get(&replay->body, name).ptr;
}

/* Writes the overrides as options of a trigger. There a queue is an object, here it is a
 * text. */
static void write_options(const struct replay *replay, struct buf *options)
{
    buf_add_char(options, '{');
    for (size_t i = 0; i < OVERRIDE_COUNT; i++) {
        struct slice value = envelope_get(&replay->body, overrides[i].name);
        bool is_queue = slice_is(slice_of(overrides[i].name), "queue");
        if (!value.ptr || !overrides[i].option)
            continue;
        if (options->len > 1)
            buf_add_char(options, ',');
        buf_print(options, "\"%s\":%s", overrides[i].option, is_queue ? "{\"name\":" : "");
        buf_add(options, value);
        if (is_queue)
            buf_add_char(options, '}');
    }
    buf_add_char(options, '}');
}

static void keep(const struct replay *replay, const char *name, struct bytes **place,
                 struct bytes *old)
{
    if (!overrides_it(replay, name))
        bytes_set(place, old);
}

static void keep_rare(const struct replay *replay, struct run_rare *rare,
                      const struct run_rare *old)
{
    keep(replay, "payload", &rare->payload_type, old->payload_type);
    keep(replay, "concurrencyKey", &rare->concurrency_key, old->concurrency_key);
    keep(replay, "region", &rare->region, old->region);
    keep(replay, "concurrency", &rare->limits, old->limits);
}

/* Returns true if the old queue can be used again. If the versions that have the task no
 * longer declare the queue, the run would wait in it forever, so the default queue of
 * the task is used instead. */
static bool is_queue_there(const struct trigger_place *place, const struct run *old)
{
    return !workers_task_of(place->workers, old) ||
           queues_is_registered(place->queues, bytes_slice(old->queue));
}

static void keep_the_rest(struct replay *replay, const struct trigger_place *place,
                          const struct run *old)
{
    struct run *run = &replay->item.run;
    keep(replay, "payload", &run->payload, old->payload);
    keep(replay, "metadata", &run->metadata, old->metadata_seed);
    if (is_queue_there(place, old))
        keep(replay, "queue", &run->queue, old->queue);
    if (old->rare)
        keep_rare(replay, run_rare_edit(run), old->rare);
    if (!overrides_it(replay, "tags"))
        run->tags = tag_list_ref(old->tags);
    if (!overrides_it(replay, "machine"))
        run->machine = old->machine;
    run->is_test = old->is_test;
    run->is_replay = true;
}

static enum err read_options(struct replay *replay, const struct trigger_place *place,
                             const struct run *old, struct failure *why)
{
    struct trigger_source source = {
        .task = bytes_slice(old->task),
        .payload = envelope_get(&replay->body, "payload"),
        .payload_text = envelope_payload_text(&replay->body),
        .text_is_json = envelope_payload_is_json(&replay->body),
    };
    struct trigger_parent parent = { 0 }; /* no override names one */
    struct buf options = { 0 };

    write_options(replay, &options);
    source.options = buf_slice(&options);
    enum err refused = trigger_options_read(&source, place, &replay->item, &parent, why);
    buf_finish(&options);
    if (!refused)
        keep_the_rest(replay, place, old);
    return refused;
}

enum err run_replay_plain(const struct run *old, const struct trigger_place *place,
                          struct trigger *item, struct failure *why)
{
    struct replay replay = { 0 };
    envelope_clear(&replay.body);
    enum err refused = read_options(&replay, place, old, why);
    envelope_finish(&replay.body);
    *item = replay.item;
    return refused;
}

/* ---- the call ---- */

static void on_triggered(struct trigger_op *trigger, enum err status)
{
    struct replay *replay = container_of(trigger, struct replay, trigger);
    struct api_call *call = replay->call;
    struct buf body = { 0 };
    if (status) {
        api_reply_refused(call, status, &trigger->why, "Run not found");
    } else {
        buf_print(&body, "{\"id\":\"%s\"}", replay->item.id);
        api_add_seq(call, trigger->seq);
        api_reply_json(call, 200, buf_slice(&body));
    }
    buf_finish(&body);
    run_replay_finish(replay);
}

/* Makes a repeated request return the run that the first one created. */
static void claim_request(struct replay *replay)
{
    struct buf kind = { 0 };
    buf_add_text(&kind, CLAIM_NO_TASK "replay\n");
    buf_add(&kind, replay->call->params[0]);
    trigger_call_claims(replay->call, buf_slice(&kind), &replay->trigger);
    buf_finish(&kind);
}

static void on_read(struct run_read *read, enum err status)
{
    struct replay *replay = container_of(read, struct replay, read);
    struct api_call *call = replay->call;
    const struct trigger_place place = trigger_call_place(call);
    struct failure why = { 0 };
    if (!status && !(status = read_options(replay, &place, read->run, &why))) {
        replay->trigger.items = &replay->item;
        replay->trigger.count = 1;
        replay->trigger.done = on_triggered;
        claim_request(replay);
        status = trigger_begin(api_engine(call->api), call->env, &replay->trigger);
        if (!status)
            return;
        why = replay->trigger.why;
    }
    api_reply_refused(call, status, &why, "Run not found");
    run_replay_finish(replay);
}

enum err run_replay(struct api_call *call)
{
    struct replay *replay = take_out(call);
    enum err refused = check_body(replay, &call->why);
    if (!refused)
        refused = check_values(replay, &call->why);
    if (refused) {
        run_replay_finish(replay);
        return refused;
    }
    call->busy = true;
    run_read_begin(call->env, call->params[0], &replay->read, on_read);
    return OK;
}
