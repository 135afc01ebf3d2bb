/* workload.c - commands drawn, begun, and their outcomes checked. */
#include "tests/support/world/workload.h"

#include <stdio.h>

#include "base/mem.h"
#include "core/engine/calls.h"
#include "core/model/run_life.h"
#include "tests/support/world/calls.h"

enum { TEXT_MAX = 30000, BATCH_MAX = 4, FOR_EVER_MS = 1000000000 };
const char *const work_tags[WORK_TAGS] = { "a", "b", "c", "d", "e" };
static const char *const tasks[] = { "hello", "mail", "sms", "nobody-has-it" };
static const char *const ttls[] = { "1s", "3s", "1h" };

/* ---- triggers ---- */

struct trigger_work {
    struct trigger_op op;
    struct trigger items[BATCH_MAX];
    int keys[BATCH_MAX];        /* -1: none */
    unsigned resets[BATCH_MAX]; /* of the key, when the trigger began */
    int request;
    struct workload *workload;
    struct document batch;
    struct batch_note *note;
    struct list link; // workload::triggers
};

/* A batch whose items have no keys. */
struct batch_note {
    char id[ID_MAX];
    size_t count;
    bool acknowledged;
    struct list link; // workload::batches
};

static struct bytes *text_of(const char *text)
{
    return bytes_create(slice_of(text));
}

/* The owner of a key changes only after the owning run has failed (or by a reset). */
static void check_key(struct workload *workload, int key, const char *id)
{
    char *owner = workload->key_owners[key];
    if (*owner && strcmp(owner, id)) {
        const struct run *run = story_last(ledger_find(workload->ledger, slice_of(owner)));
        if (run->status <= RUN_COMPLETED)
            violated("key %d led to %s and now to %s", key, owner, id);
        workload->resets[key]++; /* earlier requests may still get the old owner */
    }
    snprintf(owner, ID_MAX, "%s", id);
}

/* In the singleton queue, each key has at most one unfinished run. */
static void check_singletons(const struct workload *workload)
{
    const struct environment *env = workload->world->env;
    const struct tracked *holders[WORK_SINGLETONS] = { NULL };
    size_t at = 0;
    for (const struct tracked *run; (run = table_next(&env->runs, &at));) {
        if (run_is_final(&run->run) ||
            !slice_is(bytes_slice(run->run.queue), WORLD_SINGLETON))
            continue;
        int key = run_rare(&run->run)->concurrency_key->data[0] - 'a';
        if (holders[key])
            violated("%s and %s have the key %c", holders[key]->run.id, run->run.id,
                     'a' + key);
        holders[key] = run;
    }
}

static void check_items(struct trigger_work *work)
{
    struct workload *workload = work->workload;
    for (size_t i = 0; i < work->op.count; i++) {
        const char *id = work->items[i].id;
        if (!fake_store_run(workload->world->fake, WORLD_ENV, id))
            violated("%s was acknowledged and is not stored", id);
        int key = work->keys[i];
        if (key >= 0 && work->resets[i] == workload->resets[key])
            check_key(workload, key, id);
    }
    if (work->request >= 0) {
        char *owner = workload->request_owners[work->request];
        if (*owner && strcmp(owner, work->items[0].id))
            violated("request %d was answered %s and now %s", work->request, owner,
                     work->items[0].id);
        if (!work->items[0].cached) /* then the request was not recorded */
            snprintf(owner, ID_MAX, "%s", work->items[0].id);
    }
    if (work->note)
        work->note->acknowledged = true;
    workload->acknowledged++;
}

static void on_triggered(struct trigger_op *op, enum err status)
{
    struct trigger_work *work = container_of(op, struct trigger_work, op);
    struct workload *workload = work->workload;
    if (!status && !workload->dead) {
        check_items(work);
        check_singletons(workload);
    }
    workload->refused += status != OK;
    workload->under_way--;
    list_remove(&work->link);
    document_finish(&work->batch);
    trigger_op_finish(op);
    free(work);
}

static const struct story *any_story(struct workload *workload)
{
    size_t count = workload->ledger->count;
    return count ? ledger_story(workload->ledger, draw(workload->draws, (uint32_t)count))
                 : NULL;
}

static struct bytes *filler(struct draws *draws, uint32_t below, const char *before,
                            const char *after)
{
    size_t count = draw(draws, below), head = strlen(before), tail = strlen(after);
    struct bytes *bytes = bytes_create_empty(head + count + tail);
    memcpy(bytes->data, before, head);
    memset(bytes->data + head, (int)('a' + draw(draws, 26)), count);
    memcpy(bytes->data + head + count, after, tail);
    return bytes;
}

/* Chooses the task with the singleton queue and one of a few keys, unless the item has an
 * idempotency key, which belongs to its task. */
static void draw_singleton(struct trigger_work *work, size_t i)
{
    struct run *run = &work->items[i].run;
    if (!work->workload->world->singleton || work->keys[i] >= 0 ||
        !chance(work->workload->draws, 200))
        return;
    const char key[] = { (char)('a' + draw(work->workload->draws, WORK_SINGLETONS)), 0 };
    bytes_unref(run->task);
    run->task = text_of(&WORLD_SINGLETON[strlen("task/")]);
    run_rare_edit(run)->concurrency_key = text_of(key);
}

static void draw_item(struct trigger_work *work, size_t i, bool with_key)
{
    struct draws *draws = work->workload->draws;
    int64_t now = loop_wall_ms(work->workload->world->loop);
    struct trigger *item = &work->items[i];
    struct run *run = &item->run;
    const struct story *parent = chance(draws, 100) ? any_story(work->workload) : NULL;
    struct slice tags[2];
    size_t count = draw(draws, 3);
    /* Ids that repeat with the seed, in their own order. */
    snprintf(item->id, sizeof(item->id), "run_%03u%06u", draw(draws, 1000),
             ++work->workload->last_id);
    memcpy(run->id, item->id, sizeof(run->id));
    for (size_t k = 0; k < count; k++)
        tags[k] = slice_of(work_tags[draw(draws, WORK_TAGS)]);
    run->tags = tag_list_create(tags, count);
    run->task = text_of(tasks[draw(draws, chance(draws, 50) ? 4 : 3)]);
    run->payload = filler(draws, 300, "{\"p\":\"", "\"}");
    if (chance(draws, 500))
        run->metadata = text_of("{\"n\":0}");
    if (chance(draws, 150))
        run_rare_edit(run)->ttl = text_of(ttls[draw(draws, 3)]);
    if (chance(draws, 150))
        run_rare_edit(run)->delayed_until = now + draw(draws, 5000);
    if (parent)
        run_rare_edit(run)->parent = text_of(parent->id);
    staff_draw_wish(&work->workload->staff, run);
    work->keys[i] = with_key ? (int)draw(draws, WORK_KEYS) : -1;
    if (!with_key)
        return;
    char key[8];
    snprintf(key, sizeof(key), "k%d", work->keys[i]);
    run_rare_edit(run)->idempotency_key = text_of(key);
    bytes_unref(run->task);
    run->task = text_of(tasks[0]); /* a key belongs to its task */
    work->resets[i] = work->workload->resets[work->keys[i]];
    item->key_expires_at = now + FOR_EVER_MS;
}

static struct trigger_work *new_trigger(struct workload *workload, size_t count)
{
    struct trigger_work *work = mem_new(struct trigger_work);
    work->workload = workload;
    work->request = -1;
    work->op.items = work->items;
    work->op.count = count;
    work->op.done = on_triggered;
    list_append(&workload->triggers, &work->link);
    workload->under_way++;
    return work;
}

static void begin_trigger(struct trigger_work *work)
{
    struct world *world = work->workload->world;
    if (trigger_begin(world->engine, world->env, &work->op))
        violated("a trigger is refused: %s", work->op.why.text);
}

static void trigger_run(struct workload *workload)
{
    struct trigger_work *work = new_trigger(workload, 1);
    char request[16];
    draw_item(work, 0, chance(workload->draws, 150));
    draw_singleton(work, 0);
    if (work->keys[0] < 0 && chance(workload->draws, 100)) {
        work->request = (int)draw(workload->draws, WORK_REQUESTS);
        snprintf(request, sizeof(request), "request_%d", work->request);
        work->op.request_key = text_of(request);
    }
    begin_trigger(work);
}

static void trigger_batch(struct workload *workload)
{
    struct draws *draws = workload->draws;
    bool with_keys = chance(draws, 500);
    struct trigger_work *work = new_trigger(workload, 1 + draw(draws, BATCH_MAX));
    snprintf(work->op.batch_id, sizeof(work->op.batch_id), "batch_%u", ++workload->last_id);
    struct bytes *id = text_of(work->op.batch_id);
    for (size_t i = 0; i < work->op.count; i++) {
        draw_item(work, i, with_keys && chance(draws, 500));
        if (with_keys)
            draw_singleton(work, i);
        work->items[i].run.batch = bytes_ref(id);
    }
    if (chance(draws, 500)) {
        work->batch = (struct document){ .kind = DOC_BATCH,
                                         .name = bytes_ref(id),
                                         .body = text_of("{}") };
        work->op.batch = &work->batch;
    }
    bytes_unref(id);
    if (!with_keys) {
        work->note = mem_new(struct batch_note);
        memcpy(work->note->id, work->op.batch_id, sizeof(work->note->id));
        work->note->count = work->op.count;
        list_append(&workload->batches, &work->note->link);
    }
    begin_trigger(work);
}

/* ---- commands ---- */

struct command_work {
    union {
        struct command command; /* first in all of them */
        struct cancel cancel;
        struct reschedule reschedule;
        struct add_tags tags;
        struct change_metadata metadata;
        struct start_attempt start;
        struct complete_attempt complete;
        struct block block;
    } op;
    struct workload *workload;
    struct slice tag;
    struct bytes *text;
    struct relay relay; /* of a completion */
    struct wait waits[3];
    char snapshot[64], request[16];
};

static void on_command(struct command *command, enum err status)
{
    struct command_work *work = container_of(command, struct command_work, op.command);
    struct workload *workload = work->workload;
    if (!status && !workload->dead && command->seq) {
        const struct story *story =
            ledger_find(workload->ledger, slice_of(command->run_id));
        if (!story || story_at(story, command->seq)->rev != command->seq)
            violated("%s: change %llu was acknowledged and is not stored", command->run_id,
                     (unsigned long long)command->seq);
    }
    if (!status && !workload->dead && work->relay.note)
        relay_acknowledge(&work->relay);
    workload->refused += status != OK;
    workload->completed += status == OK;
    workload->under_way--;
    bytes_unref(work->text);
    free(work);
}

static struct command_work *new_command(struct workload *workload)
{
    struct command_work *work = mem_new(struct command_work);
    work->workload = workload;
    workload->under_way++;
    return work;
}

static void steer(struct workload *workload)
{
    struct draws *draws = workload->draws;
    struct engine *engine = workload->world->engine;
    struct environment *env = workload->world->env;
    const struct story *story = any_story(workload);
    if (!story)
        return;
    struct slice id = slice_of(story->id);
    struct command_work *work = new_command(workload);
    switch (draw(draws, 8)) {
    case 0: run_cancel(engine, env, id, &work->op.cancel, on_command); break;
    case 1:
        work->op.reschedule.delayed_until =
            loop_wall_ms(workload->world->loop) + draw(draws, 5000);
        run_reschedule(engine, env, id, &work->op.reschedule, on_command);
        break;
    case 2:
    case 3:
        work->tag = slice_of(work_tags[draw(draws, WORK_TAGS)]);
        work->op.tags.tags = &work->tag;
        work->op.tags.count = 1;
        run_add_tags(engine, env, id, &work->op.tags, on_command);
        break;
    case 4:
        work->text =
            filler(draws, chance(draws, 500) ? TEXT_MAX : 2000, "{\"m\":\"", "\"}");
        work->op.metadata.replacement = bytes_slice(work->text);
        run_change_metadata(engine, env, id, &work->op.metadata, on_command);
        break;
    default:
        work->op.metadata.operations =
            SLICE("[{\"type\":\"increment\",\"key\":\"n\",\"value\":1}]");
        run_change_metadata(engine, env, id, &work->op.metadata, on_command);
        break;
    }
}

/* ---- keys ---- */

struct reset_work {
    struct reset_key op;
    struct workload *workload;
    int key;
};

static void forget_owner(struct workload *workload, int key)
{
    workload->key_owners[key][0] = 0;
    workload->resets[key]++;
}

/* Until now the key may have had any owner, and requests that began before may still get
 * the old owner. */
static void on_reset(struct reset_key *op, enum err status)
{
    struct reset_work *work = container_of(op, struct reset_work, op);
    (void)status;
    forget_owner(work->workload, work->key);
    work->workload->under_way--;
    free(work);
}

static void reset(struct workload *workload)
{
    struct reset_work *work = mem_new(struct reset_work);
    char key[8];
    work->workload = workload;
    work->key = (int)draw(workload->draws, WORK_KEYS);
    snprintf(key, sizeof(key), "k%d", work->key);
    forget_owner(workload, work->key);
    workload->under_way++;
    run_reset_key(workload->world->engine, workload->world->env, slice_of(tasks[0]),
                  slice_of(key), &work->op, on_reset);
}

/* ---- workers ---- */

struct dequeue_work {
    struct dequeue op;
    struct workload *workload;
    const char *version; /* with which it dequeues */
    struct list link;    // workload::dequeues
};

static void on_dequeued(struct dequeue *dequeue, enum err status)
{
    struct dequeue_work *work = container_of(dequeue, struct dequeue_work, op);
    struct workload *workload = work->workload;
    if (!status && !workload->dead)
        staff_check_taken(&workload->staff, work->version, dequeue->command.run);
    for (int i = 0; i < WORK_HELD && !status; i++) {
        if (workload->held[i][0])
            continue;
        snprintf(workload->held[i], ID_MAX, "%s", dequeue->command.run_id);
        break; /* with too many runs in hand the lease expires */
    }
    list_remove(&work->link);
    workload->under_way--;
    free(work);
}

static void ask_for_work(struct workload *workload)
{
    struct world *world = workload->world;
    struct dequeue_work *work = mem_new(struct dequeue_work);
    work->workload = workload;
    work->version = staff_any(&workload->staff);
    if (dequeue_begin_for(world->engine, world->env, slice_of(work->version), &work->op,
                          draw(workload->draws, 100), on_dequeued))
        violated("a dequeue is refused");
    list_append(&workload->dequeues, &work->link);
    workload->under_way++;
}

static void leave(struct workload *workload)
{
    if (!list_empty(&workload->dequeues))
        dequeue_cancel(
            &container_of(workload->dequeues.next, struct dequeue_work, link)->op);
}

static void begin_start(struct command_work *work, struct slice id)
{
    struct world *world = work->workload->world;
    work->op.start.snapshot = slice_of(work->snapshot);
    work->op.start.request_id = slice_of(work->request);
    attempt_start(world->engine, world->env, id, &work->op.start, on_command);
}

static void begin_complete(struct command_work *work, struct slice id)
{
    struct world *world = work->workload->world;
    struct draws *draws = work->workload->draws;
    struct relays *relays = &work->workload->relays;
    struct complete_attempt *op = &work->op.complete;
    op->snapshot = slice_of(work->snapshot);
    op->request_id = slice_of(work->request);
    op->usage_ms = draw(draws, 100);
    op->ok = chance(draws, 700);
    if (op->ok) {
        work->text = filler(draws, chance(draws, 50) ? TEXT_MAX : 3000, "\"", "\"");
        op->output = work->text;
    } else {
        op->error = SLICE("{\"type\":\"STRING_ERROR\",\"raw\":\"no\"}");
        op->has_retry = chance(draws, 700);
        op->retry_delay_ms = draw(draws, chance(draws, 300) ? 60000 : 500);
    }
    if (chance(draws, 300))
        relay_prepare(relays, &work->relay, ledger_find(relays->ledger, id), op);
    attempt_complete(world->engine, world->env, id, op, on_command);
    if (work->relay.note)
        relay_join(&work->relay, op);
}

/* Waits for a time, or for up to three runs, of which some may have ended. */
static void begin_wait(struct command_work *work, struct slice id)
{
    struct workload *workload = work->workload;
    struct world *world = workload->world;
    struct draws *draws = workload->draws;
    work->op.block.waits = work->waits;
    work->op.block.count = 1;
    work->waits[0] =
        (struct wait){ .type = WAIT_TIME,
                       .id = SLICE("waitpoint_1"),
                       .until = loop_wall_ms(world->loop) + draw(draws, 2000) };
    if (chance(draws, 500)) {
        work->op.block.count = 1 + draw(draws, 3);
        for (size_t i = 0; i < work->op.block.count; i++)
            work->waits[i] =
                (struct wait){ .type = WAIT_RUN, .id = slice_of(any_story(workload)->id) };
    }
    run_block(world->engine, world->env, id, &work->op.block, on_command);
}

static void work_on(struct workload *workload, const struct tracked *run)
{
    struct world *world = workload->world;
    struct draws *draws = workload->draws;
    struct slice id = slice_of(run->run.id);
    char snapshot[64];
    run_snapshot_id(&run->run, snapshot);
    if (chance(draws, 200)) {
        attempt_heartbeat(world->engine, world->env, id, slice_of(snapshot));
        return;
    }
    struct command_work *work = new_command(workload);
    memcpy(work->snapshot, snapshot, sizeof(snapshot));
    snprintf(work->request, sizeof(work->request), "r%u", draw(draws, 1000000));
    if (run->run.execution == EXECUTION_PENDING_EXECUTING ||
        run->run.status == RUN_RETRYING) {
        begin_start(work, id);
    } else if (run->run.execution == EXECUTION_EXECUTING && chance(draws, 200)) {
        begin_wait(work, id);
    } else {
        begin_complete(work, id);
    }
}

static void work(struct workload *workload)
{
    char *held = workload->held[draw(workload->draws, WORK_HELD)];
    const struct tracked *run = environment_find(workload->world->env, slice_of(held));
    if (run && run_is_with_worker(&run->run))
        work_on(workload, run);
    else if (run && run->run.execution == EXECUTION_PENDING_CANCEL)
        work_on(workload, run);
    else
        held[0] = 0; /* it has ended, or belongs to another worker */
}

/* ---- the workload ---- */

void workload_init(struct workload *workload, struct world *world, struct draws *draws)
{
    *workload =
        (struct workload){ .world = world, .ledger = ledger_of(world), .draws = draws };
    list_init(&workload->triggers);
    list_init(&workload->batches);
    list_init(&workload->dequeues);
    relays_init(&workload->relays, world, draws);
    workload->relays.under_way = &workload->under_way;
    workload->relays.dead = &workload->dead;
    pushes_init(&workload->pushes, world, draws);
    workload->pushes.under_way = &workload->under_way;
    workload->pushes.dead = &workload->dead;
    staff_init(&workload->staff, world, draws);
}

void workload_finish(struct workload *workload)
{
    if (workload->under_way)
        violated("%u operations were never answered", workload->under_way);
    relays_finish(&workload->relays);
    while (!list_empty(&workload->batches))
        free(container_of(list_take(&workload->batches), struct batch_note, link));
}

void workload_step(struct workload *workload)
{
    uint32_t choice = draw(workload->draws, 100);
    if (choice < 3)
        pushes_step(&workload->pushes);
    else if (choice < 14)
        trigger_run(workload);
    else if (choice < 18)
        trigger_batch(workload);
    else if (choice < 50)
        steer(workload);
    else if (choice < 58)
        relays_request(&workload->relays);
    else if (choice < 60)
        reset(workload);
    else if (choice < 70)
        ask_for_work(workload);
    else if (choice < 72)
        leave(workload);
    else if (choice == 72 && chance(workload->draws, 600))
        staff_step(&workload->staff);
    else
        work(workload);
}

void workload_lose(struct workload *workload)
{
    workload->dead = true;
    workload_rest(workload);
    memset(workload->held, 0, sizeof(workload->held));
}

void workload_return(struct workload *workload)
{
    workload->dead = false;
    staff_return(&workload->staff);
}

void workload_rest(struct workload *workload)
{
    list_each (link, &workload->dequeues)
        dequeue_cancel(&container_of(link, struct dequeue_work, link)->op);
}

static void check_batch(struct workload *workload, const struct batch_note *note)
{
    size_t count = 0;
    list_each (link, &workload->ledger->stories) {
        const struct run *run = story_last(container_of(link, struct story, link));
        count += run->batch && slice_is(bytes_slice(run->batch), note->id);
    }
    if (count != note->count && (count || note->acknowledged))
        violated("%zu of %zu runs of %s are there", count, note->count, note->id);
}

/* Returns true if something that a blocked run waits for has not ended. */
static bool is_blocked(struct workload *workload, const struct run *run)
{
    struct scan_members all = wait_list_of(run);
    struct wait wait;
    while (wait_list_next(&all, &wait)) {
        const struct story *story =
            wait.type == WAIT_RUN ? ledger_find(workload->ledger, wait.id) : NULL;
        if (!wait.completed_at &&
            (wait.type == WAIT_TIME || (story && !run_is_final(story_last(story)))))
            return true;
    }
    return false;
}

/* Asserts that what the run's status waits for has happened or can still happen. */
static void check_story(struct workload *workload, const struct story *story)
{
    const struct run *run = story_last(story);
    int64_t now = loop_wall_ms(workload->world->loop);
    if (run_is_settled(run))
        return;
    if (!environment_find(workload->world->env, slice_of(run->id)))
        violated("%s is not finished and not in memory", run->id);
    if (run->due_at && run->due_at < now && run->execution != EXECUTION_QUEUED &&
        !(run->execution == EXECUTION_CREATED && run->started_at)) /* after a pause */
        violated("%s was due %lld ms ago", run->id, (long long)(now - run->due_at));
    const struct story *parent =
        ledger_find(workload->ledger, bytes_slice(run_rare(run)->parent));
    const struct run *last = parent ? story_last(parent) : NULL;
    if (last && !run_is_final(run) && run_is_settled(last) && last->status == RUN_CANCELED)
        violated("%s goes on although its parent was canceled", run->id);
}

void workload_check_waits(struct workload *workload)
{
    list_each (link, &workload->ledger->stories) {
        const struct run *run = story_last(container_of(link, struct story, link));
        bool has_slot = queues_has_slot(&workload->world->env->queues, engine_seat_of(run));
        if (run->execution == EXECUTION_WITH_WAITPOINTS && !is_blocked(workload, run) &&
            has_slot)
            violated("%s waits for what is over", run->id);
    }
}

void workload_check_end(struct workload *workload)
{
    relays_check(&workload->relays);
    pushes_check_repetitions(&workload->pushes);
    list_each (link, &workload->batches)
        check_batch(workload, container_of(link, struct batch_note, link));
    list_each (link, &workload->ledger->stories)
        check_story(workload, container_of(link, struct story, link));
    if (fake_store_count(workload->world->fake, WORLD_ENV) != workload->ledger->count)
        violated("the store has other runs than were written");
}
