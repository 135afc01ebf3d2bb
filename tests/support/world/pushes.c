/* pushes.c - draws debounced triggers, and checks which runs they lead to. */
#include "tests/support/world/pushes.h"

#include <stdio.h>

#include "base/mem.h"
#include "core/model/run_life.h"

enum { NEVER_TOO_LONG = 0, KEY_MS = 1000000000, ANSWER_TURNS = 1000 };

/* Runs with this debounce key may be delayed however long. */
enum { ENDLESS = 0 };

struct push_work {
    struct trigger_op op;
    struct trigger item;
    struct pushes *pushes;
    struct push_note *note;
    char payload[24];
    bool *done; /* set when answered; NULL: none */
};

void pushes_init(struct pushes *pushes, struct world *world, struct draws *draws)
{
    *pushes = (struct pushes){ .world = world, .ledger = ledger_of(world), .draws = draws };
}

/* ---- checks ---- */

/* Ids of debounced runs begin with their debounce key. */
static bool is_of_key(const struct run *run, unsigned key)
{
    char start[16];
    int len = snprintf(start, sizeof(start), "run_push%u_", key);
    return !strncmp(run->id, start, (size_t)len);
}

/* A run that would have been delayed too long has no key any more, and stays delayed. */
static void check_keys(const struct pushes *pushes)
{
    unsigned holders[PUSH_KEYS] = { 0 }, endless = 0;
    size_t at = 0;
    for (struct tracked *run; (run = table_next(&pushes->world->env->runs, &at));) {
        endless += run->run.status == RUN_DELAYED && is_of_key(&run->run, ENDLESS);
        for (unsigned key = 0; key < PUSH_KEYS; key++)
            holders[key] += debounce_mark_of(&run->run).ptr && is_of_key(&run->run, key);
    }
    for (unsigned key = 0; key < PUSH_KEYS; key++)
        if (holders[key] > 1)
            violated("%u delayed runs have the debounce key %u", holders[key], key);
    if (endless > 1)
        violated("%u runs with one debounce key are delayed", endless);
}

/* Returns true if the idempotency key of the run is free again. */
static bool has_failed(const struct pushes *pushes, const char *id)
{
    const struct story *story = ledger_find(pushes->ledger, slice_of(id));
    return story_last(story)->status > RUN_COMPLETED &&
           story_last(story)->status != RUN_CANCELED;
}

/* Each trigger has another payload. */
static void check_no_change(const struct push_work *work)
{
    const struct story *story = ledger_find(work->pushes->ledger, slice_of(work->item.id));
    for (uint32_t i = 0; i < story->count; i++)
        if (slice_is(bytes_slice(story->versions[i].payload), work->payload))
            violated("a repeated push has changed %s", work->item.id);
}

static void check_answer(struct push_work *work)
{
    struct pushes *pushes = work->pushes;
    struct push_note *note = work->note;
    const char *id = work->item.id;
    bool is_same = !strcmp(note->id, id);
    if (!fake_store_run(pushes->world->fake, WORLD_ENV, id))
        violated("%s was acknowledged and is not stored", id);
    if (note->id[0] && !is_same && (note->has_request || !has_failed(pushes, note->id)))
        violated("a push was answered %s and now %s", note->id, id);
    if (work->op.repeated || work->item.cached) {
        check_no_change(work);
        pushes->repeated++;
    } else if (is_same) {
        violated("%s was pushed twice by one trigger", id);
    }
    pushes->joined += work->item.joined;
    memcpy(note->id, id, sizeof(note->id));
    check_keys(pushes);
}

static void on_triggered(struct trigger_op *op, enum err status)
{
    struct push_work *work = container_of(op, struct push_work, op);
    if (!status && !*work->pushes->dead)
        check_answer(work);
    if (work->done)
        *work->done = true;
    --*work->pushes->under_way;
    trigger_op_finish(op);
    free(work);
}

/* ---- triggers ---- */

static struct bytes *numbered(const char *text, size_t number)
{
    char name[32];
    snprintf(name, sizeof(name), "%s%zu", text, number);
    return bytes_create(slice_of(name));
}

static void draw_debounce(struct push_work *work)
{
    struct draws *draws = work->pushes->draws;
    struct run_rare *rare = run_rare_edit(&work->item.run);
    int64_t delay_ms = 1000 + draw(draws, 3000);
    bool is_bounded = work->note->debounce_key != ENDLESS && chance(draws, 500);
    struct bytes *key = numbered("key_", work->note->debounce_key);
    work->item.debounce = (struct debounce){
        .delay_ms = delay_ms,
        .max_delay_ms = is_bounded ? delay_ms + draw(draws, 5000) : NEVER_TOO_LONG,
        .is_trailing = chance(draws, 500),
    };
    rare->waits = debounce_mark(bytes_slice(key));
    rare->delayed_until = loop_wall_ms(work->pushes->world->loop) + delay_ms;
    bytes_unref(key);
}

static void fill_in(struct push_work *work)
{
    struct pushes *pushes = work->pushes;
    const struct push_note *note = work->note;
    struct trigger *item = &work->item;
    size_t number = (size_t)(note - pushes->notes);
    snprintf(item->id, sizeof(item->id), "run_push%u_%05u", note->debounce_key,
             ++pushes->sent);
    memcpy(item->run.id, item->id, sizeof(item->run.id));
    snprintf(work->payload, sizeof(work->payload), "{\"push\":%u}", pushes->sent);
    item->run.payload = bytes_create(slice_of(work->payload));
    item->run.task = bytes_create(SLICE("hello"));
    draw_debounce(work);
    if (note->has_request)
        work->op.request_key = numbered("push_", number);
    if (note->has_key)
        run_rare_edit(&item->run)->idempotency_key = numbered("push_", number);
    item->key_expires_at = loop_wall_ms(pushes->world->loop) + KEY_MS;
}

static void begin(struct pushes *pushes, struct push_note *note, bool *done)
{
    struct push_work *work = mem_new(struct push_work);
    *work = (struct push_work){ .pushes = pushes, .note = note, .done = done };
    work->op.items = &work->item;
    work->op.count = 1;
    work->op.done = on_triggered;
    fill_in(work);
    ++*pushes->under_way;
    if (trigger_begin(pushes->world->engine, pushes->world->env, &work->op))
        violated("a debounced trigger is refused: %s", work->op.why.text);
}

void pushes_step(struct pushes *pushes)
{
    struct draws *draws = pushes->draws;
    bool is_new = !pushes->count || (pushes->count < PUSHES_MAX && chance(draws, 600));
    struct push_note *note =
        &pushes->notes[is_new ? pushes->count++ : draw(draws, pushes->count)];
    if (is_new) {
        uint32_t keys = 1 + draw(draws, 3);
        *note = (struct push_note){ .debounce_key = draw(draws, PUSH_KEYS),
                                    .has_request = keys & 1,
                                    .has_key = keys & 2 };
    }
    begin(pushes, note, NULL);
}

static void repeat(struct pushes *pushes, struct push_note *note)
{
    const struct story *story = ledger_find(pushes->ledger, slice_of(note->id));
    uint32_t versions = story->count;
    size_t runs = pushes->ledger->count;
    bool done = false;
    int turns = 0;
    begin(pushes, note, &done);
    while (!done) {
        loop_turn(pushes->world->loop, 0);
        if (turns++ == ANSWER_TURNS)
            violated("a repeated push is not answered");
    }
    if (pushes->ledger->count != runs || story->count != versions)
        violated("a repeated push has changed %s", note->id);
}

void pushes_check_repetitions(struct pushes *pushes)
{
    for (unsigned i = 0; i < pushes->count; i++) {
        struct push_note *note = &pushes->notes[i];
        if (note->id[0] && (note->has_request || !has_failed(pushes, note->id)))
            repeat(pushes, note);
    }
}
