/* Gates: an item runs only when other queues have a slot for it, too. */
#include "tests/support/world/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/buf.h"
#include "core/queues/queue.h"

struct job {
    struct queue_item item;
    char id[16];
    /* The model's view of it. */
    bool waiting, running, resumes;
    unsigned queue, key, demand, audience;
};

static struct job *job_of(const struct queue_item *item)
{
    return (struct job *)(void *)item; /* its first member */
}

static struct slice job_id(const struct queue_item *item)
{
    return slice_of(job_of(item)->id);
}

static const char *next_id(const struct queues *queues)
{
    struct queue_item *item = queues_next(queues, 0);
    return item ? job_of(item)->id : "none";
}

static struct queue_seat seat(const char *queue, const char *key, const char *needs)
{
    return (struct queue_seat){ .queue = slice_of(queue),
                                .key = slice_of(key),
                                .limits = needs ? slice_of(needs) : (struct slice){ 0 } };
}

static void queue_with(struct queues *queues, const char *name, uint32_t limit,
                       uint32_t total)
{
    queues_set_limit(queues, slice_of(name), limit);
    queues_set_total(queues, slice_of(name), total);
}

static void a_gate_is_a_slot_of_another_queue(void **state)
{
    (void)state;
    static const char gate[] = "[{\"queue\":\"gate\"}]";
    struct job a = { .id = "a" }, b = { .id = "b" }, c = { .id = "c" };
    struct queues queues;
    queues_init(&queues, 10, job_id);
    queue_with(&queues, "gate", 1, UINT32_MAX);
    queues_wait(&queues, &a.item, seat("one", "", gate), 1);
    queues_wait(&queues, &b.item, seat("gate", "", NULL), 2);
    queues_wait(&queues, &c.item, seat("one", "k", gate), 3);
    assert_int_equal(queues_figures(&queues, SLICE("gate")).waiting, 1); /* its own */
    queues_run(&queues, &a.item, seat("one", "", gate));
    assert_int_equal(queues_figures(&queues, SLICE("gate")).running, 1);
    assert_int_equal(queues.running, 1);
    assert_string_equal(next_id(&queues), "c"); /* has another key */
    struct queue_standing standing = queues_standing(&queues, &b.item, 0);
    assert_int_equal(standing.running, 1);

    queues_run(&queues, &c.item, seat("one", "k", gate));
    queues_leave(&queues, &a.item);
    assert_string_equal(next_id(&queues), "b");
    queues_run(&queues, &b.item, seat("gate", "", NULL));
    queues_wait(&queues, &a.item, seat("one", "", gate), 4);
    assert_string_equal(next_id(&queues), "none");
    standing = queues_standing(&queues, &a.item, 0);
    assert_true(standing.of_limit.is_gate);
    assert_true(slice_is(standing.of_limit.name, "gate"));
    assert_int_equal(standing.of_limit.running, 1);
    assert_false(queues_has_slot(&queues, seat("one", "", gate)));

    queues_leave(&queues, &a.item);
    queues_leave(&queues, &b.item);
    queues_leave(&queues, &c.item);
    queues_forget_limit(&queues, SLICE("gate"));
    assert_int_equal(queues_count(&queues), 0);
    queues_finish(&queues);
}

static void a_gate_may_name_a_key(void **state)
{
    (void)state;
    static const char *const gates[] = { "[{\"queue\":\"gate\",\"key\":\"u\"}]",
                                         "[{\"queue\":\"gate\",\"pin\":\"u\"}]" };
    for (int i = 0; i < 2; i++) {
        struct job a = { .id = "a" }, b = { .id = "b" }, c = { .id = "c" };
        struct queues queues;
        queues_init(&queues, 10, job_id);
        queue_with(&queues, "gate", 1, UINT32_MAX);
        queues_wait(&queues, &a.item, seat("one", "", gates[i]), 1);
        queues_wait(&queues, &b.item, seat("two", "k", gates[i]), 2);
        queues_wait(&queues, &c.item, seat("gate", "u", NULL), 3);
        queues_run(&queues, &c.item, seat("gate", "u", NULL));
        assert_string_equal(next_id(&queues), "none");
        struct queue_standing standing = queues_standing(&queues, &a.item, 0);
        assert_true(slice_is(standing.of_limit.name, "gate"));
        assert_true(slice_is(standing.of_limit.key, "u"));
        assert_false(queues_has_slot(&queues, seat("one", "", gates[i])));
        queues_leave(&queues, &c.item);
        assert_string_equal(next_id(&queues), "a");
        queues_run(&queues, &a.item, seat("one", "", gates[i]));
        assert_string_equal(next_id(&queues), "none");
        queues_leave(&queues, &a.item);
        assert_string_equal(next_id(&queues), "b");
        queues_leave(&queues, &b.item);
        queues_forget_limit(&queues, SLICE("gate"));
        assert_int_equal(queues_count(&queues), 0);
        queues_finish(&queues);
    }
}

/* Otherwise an item would wait for a slot that it needs itself. */
static void a_slot_that_is_needed_twice_is_held_once(void **state)
{
    (void)state;
    static const char *const twice[] = {
        "[{\"queue\":\"q\"}]",
        "[{\"queue\":\"q\",\"key\":\"k\"}]",
        "[{\"queue\":\"q\",\"pin\":\"k\"}]",
        "[{\"queue\":\"q\"},{\"queue\":\"q\",\"key\":\"k\"},{\"queue\":\"q\"}]",
        "[{\"queue\":\"q\",\"key\":\"other\"}]",
        ("[{\"queue\":\"p\"},{\"queue\":\"p\",\"key\":\"k\"},"
         "{\"queue\":\"p\",\"pin\":\"x\"}]"),
    };
    for (size_t i = 0; i < sizeof(twice) / sizeof(twice[0]); i++) {
        struct job a = { .id = "a" };
        struct queues queues;
        queues_init(&queues, 10, job_id);
        queue_with(&queues, "q", 1, 1);
        queue_with(&queues, "p", 1, 1);
        queues_wait(&queues, &a.item, seat("q", "k", twice[i]), 1);
        assert_string_equal(next_id(&queues), "a");
        queues_run(&queues, &a.item, seat("q", "k", twice[i]));
        assert_int_equal(queues_figures(&queues, SLICE("q")).running, 1);
        queues_wait_again(&queues, &a.item, seat("q", "k", twice[i]), 1);
        assert_ptr_equal(queues_next(&queues, AUDIENCE_RESUMED), &a.item);
        queues_run(&queues, &a.item, seat("q", "k", twice[i]));
        queues_leave(&queues, &a.item);
        assert_int_equal(queues_figures(&queues, SLICE("q")).running, 0);
        assert_int_equal(queues_figures(&queues, SLICE("p")).running, 0);
        queues_forget_limit(&queues, SLICE("q"));
        queues_forget_limit(&queues, SLICE("p"));
        assert_int_equal(queues_count(&queues), 0);
        queues_finish(&queues);
    }
}

static void settings_of_a_gate_count(void **state)
{
    (void)state;
    static const char *const gates[] = { "[{\"queue\":\"gate\"}]",
                                         "[{\"queue\":\"gate\",\"key\":\"u\"}]",
                                         "[{\"queue\":\"gate\",\"pin\":\"u\"}]" };
    for (int i = 0; i < 3; i++) {
        struct job a = { .id = "a" };
        struct queues queues;
        queues_init(&queues, 10, job_id);
        queue_with(&queues, "gate", UINT32_MAX, UINT32_MAX);
        queues_wait(&queues, &a.item, seat("one", "", gates[i]), 1);
        queues_configure(&queues, SLICE("gate"),
                         &(struct queue_settings){ .paused = true });
        assert_string_equal(next_id(&queues), "none");
        assert_true(queues_standing(&queues, &a.item, 0).of_limit.paused);
        queues_configure(&queues, SLICE("gate"),
                         &(struct queue_settings){ .overridden = true });
        assert_string_equal(next_id(&queues), "none");
        queues_configure(&queues, SLICE("gate"), &(struct queue_settings){ 0 });
        assert_string_equal(next_id(&queues), "a");
        queues_set_total(&queues, SLICE("gate"), 0);
        assert_string_equal(next_id(&queues), "none");
        queues_set_total(&queues, SLICE("gate"), UINT32_MAX);
        queues_change_limit(&queues, SLICE("gate"), 0);
        assert_string_equal(next_id(&queues), "none");
        queues_forget_limit(&queues, SLICE("gate"));
        assert_string_equal(next_id(&queues), "a");
        queues_leave(&queues, &a.item);
        queues_finish(&queues);
    }
}

static void texts_without_a_need_need_nothing(void **state)
{
    (void)state;
    static const char *const texts[] = { "[]", "[null]", "[{}]", "[null,{}]", NULL };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct job a = { .id = "a" };
        struct queues queues;
        queues_init(&queues, 10, job_id);
        queues_wait(&queues, &a.item, seat("q", "", texts[i]), 1);
        assert_int_equal(queues.sets.count, 0);
        queues_leave(&queues, &a.item);
        queues_finish(&queues);
    }
}

/* The share that is visited first must not look at an item that is leaving another one. */
static void texts_of_one_set_wait_together(void **state)
{
    (void)state;
    static const char *const texts[] = { "[{\"queue\":\"gate\"}]",
                                         "[null,{\"queue\":\"gate\"}]" };
    struct job a = { .id = "a" }, b = { .id = "b" };
    struct queues queues;
    queues_init(&queues, 10, job_id);
    queue_with(&queues, "gate", 1, 1);
    queues_wait(&queues, &b.item, seat("q", "", texts[0]), 2);
    queues_wait(&queues, &a.item, seat("q", "", texts[1]), 1);
    assert_int_equal(queues.sets.count, 1);
    assert_string_equal(next_id(&queues), "a");
    queues_leave(&queues, &a.item);
    assert_string_equal(next_id(&queues), "b");
    queues_leave(&queues, &b.item);
    queues_forget_limit(&queues, SLICE("gate"));
    queues_finish(&queues);
}

enum { KEYED = 10000 };

/* The order is that of positions, and each key counts for itself. */
static void very_many_keys_of_a_gate_are_one_set(void **state)
{
    (void)state;
    struct job *jobs = calloc(2 * KEYED, sizeof(*jobs));
    struct queues queues;
    struct buf text = { 0 };
    queues_init(&queues, UINT32_MAX, job_id);
    queue_with(&queues, "gate", 1, UINT32_MAX);
    for (int i = 0; i < 2 * KEYED; i++) {
        snprintf(jobs[i].id, sizeof(jobs[i].id), "%d", i);
        jobs[i].key = (unsigned)i % KEYED;
        buf_clear(&text);
        buf_print(&text, "[{\"queue\":\"gate\",\"key\":\"user-%d\"}]", i % KEYED);
        struct slot_group *counted;
        assert_true(limits_count_set(&queues, buf_slice(&text), &counted));
        limits_discount_set(&queues, counted);
        queues_wait(&queues, &jobs[i].item,
                    (struct queue_seat){ .queue = SLICE("q"), .limits = buf_slice(&text) },
                    i);
    }
    assert_int_equal(queues.sets.count, 1);
    assert_int_equal(queues.groups.count, 1);
    for (int i = 0; i < KEYED; i++) {
        struct queue_item *next = queues_next(&queues, 0);
        assert_ptr_equal(next, &jobs[i].item);
        buf_clear(&text);
        buf_print(&text, "[{\"queue\":\"gate\",\"key\":\"user-%d\"}]", i);
        queues_run(&queues, next,
                   (struct queue_seat){ .queue = SLICE("q"), .limits = buf_slice(&text) });
    }
    assert_null(queues_next(&queues, 0));
    queues_leave(&queues, &jobs[7].item);
    assert_ptr_equal(queues_next(&queues, 0), &jobs[KEYED + 7].item);
    for (int i = 0; i < 2 * KEYED; i++)
        queues_leave(&queues, &jobs[i].item);
    queues_forget_limit(&queues, SLICE("gate"));
    assert_int_equal(queues_count(&queues), 0);
    queues_finish(&queues);
    buf_finish(&text);
    free(jobs);
}

/* The queue has one slot. Each time an item has run, a younger one of the key "many" comes. */
static void a_key_of_a_gate_waits_only_for_older_items_of_others(void **state)
{
    enum { OLDER = 50, MANY = 100 };
    static const char many[] = "[{\"queue\":\"gate\",\"key\":\"many\"}]";
    static const char one[] = "[{\"queue\":\"gate\",\"key\":\"one\"}]";
    struct job *jobs = calloc(2 * MANY, sizeof(*jobs)), late = { .id = "late" };
    struct queues queues;
    int served = 0;
    (void)state;
    queues_init(&queues, 10, job_id);
    queue_with(&queues, "q", 1, UINT32_MAX);
    queue_with(&queues, "gate", 5, UINT32_MAX);
    for (int i = 0; i < 2 * MANY; i++)
        snprintf(jobs[i].id, sizeof(jobs[i].id), "%d", i);
    for (int i = 0; i < MANY; i++)
        queues_wait(&queues, &jobs[i].item, seat("q", "", many), i);
    queues_wait(&queues, &late.item, seat("q", "", one), OLDER - 1); /* after that job */
    for (struct queue_item *next; (next = queues_next(&queues, 0)) != &late.item;) {
        assert_true(served < MANY);
        queues_run(&queues, next, seat("q", "", many));
        queues_leave(&queues, next);
        queues_wait(&queues, &jobs[MANY + served].item, seat("q", "", many), MANY + served);
        served++;
    }
    assert_int_equal(served, OLDER);
    for (int i = 0; i < 2 * MANY; i++)
        queues_leave(&queues, &jobs[i].item);
    queues_leave(&queues, &late.item);
    queues_forget_limit(&queues, SLICE("q"));
    queues_forget_limit(&queues, SLICE("gate"));
    queues_finish(&queues);
    free(jobs);
}

/* Items that wait, run or rest count, and what a caller counts. */
static void different_sets_are_bounded(void **state)
{
    (void)state;
    struct job waiting = { .id = "a" }, resting = { .id = "b" }, own = { .id = "c" };
    struct slot_group *counted, *again, *none;
    struct queues queues;
    queues_init(&queues, 10, job_id);
    queues.sets_max = 3;
    queues_wait(&queues, &own.item, seat("q", "", "[\"task/t\"]"), 1);
    queues_wait(&queues, &waiting.item, seat("q", "", "[\"task/t\",\"one\"]"), 1);
    queues_rest(&queues, &resting.item, SLICE("[\"two\",{\"queue\":\"g\",\"key\":\"1\"}]"));
    assert_true(limits_count_set(&queues, SLICE("[\"three\"]"), &counted));
    assert_false(limits_count_set(&queues, SLICE("[\"four\"]"), &none));
    assert_null(none);
    assert_true(limits_count_set(&queues, SLICE("[\"task/u\",\"one\"]"), &again));
    limits_discount_set(&queues, again);
    assert_true(limits_count_set(
        &queues, SLICE("[\"two\",{\"queue\":\"g\",\"key\":\"2\"}]"), &again));
    limits_discount_set(&queues, again);
    assert_true(limits_count_set(&queues, SLICE("[\"task/u\"]"), &none));
    assert_null(none);

    queues_wait(&queues, &resting.item, seat("q", "", "[\"two\"]"), 1);
    assert_false(limits_count_set(&queues, SLICE("[\"four\"]"), &none));
    queues_run(&queues, &resting.item, seat("q", "", "[\"two\"]"));
    queues_rest(&queues, &resting.item, SLICE("[\"two\"]"));
    queues_rest(&queues, &resting.item, SLICE("[\"two\"]"));
    assert_false(limits_count_set(&queues, SLICE("[\"four\"]"), &none));
    queues_leave(&queues, &resting.item);
    assert_true(limits_count_set(&queues, SLICE("[\"four\"]"), &again));
    limits_discount_set(&queues, again);
    limits_discount_set(&queues, counted);
    queues_leave(&queues, &waiting.item);
    queues_leave(&queues, &own.item);
    assert_int_equal(limits_count(&queues), 0);
    queues_finish(&queues);
}

/* Nor does a key that many subqueues need: it is pinned from the 64th lane on. */
static void a_key_of_very_many_subqueues_is_pinned(void **state)
{
    (void)state;
    static const char gate[] = "[{\"queue\":\"gate\",\"key\":\"all\"}]";
    struct job *jobs = calloc(KEYED, sizeof(*jobs));
    struct queues queues;
    queues_init(&queues, UINT32_MAX, job_id);
    queue_with(&queues, "gate", 1, UINT32_MAX);
    for (int i = 0; i < KEYED; i++) {
        snprintf(jobs[i].id, sizeof(jobs[i].id), "%d", i);
        queues_wait(&queues, &jobs[i].item, seat("q", jobs[i].id, gate), i);
    }
    assert_int_equal(queues.demands.count, 2);
    assert_int_equal(queues.wide, 1);
    for (int i = 0; i < KEYED; i++) {
        struct queue_item *next = queues_next(&queues, 0);
        assert_ptr_equal(next, &jobs[i].item);
        queues_run(&queues, next, seat("q", jobs[i].id, gate));
        assert_null(queues_next(&queues, 0));
        assert_int_equal(queues_figures(&queues, SLICE("gate")).running, 1);
        queues_leave(&queues, next);
    }
    assert_int_equal(queues.wide, 0);
    queues_forget_limit(&queues, SLICE("gate"));
    assert_int_equal(queues_count(&queues), 0);
    queues_finish(&queues);
    free(jobs);
}

/* Nor does a key that lanes of different texts need. */
static void a_key_of_very_many_lanes_is_pinned(void **state)
{
    (void)state;
    struct job *jobs = calloc(KEYED, sizeof(*jobs));
    char(*texts)[80] = calloc(KEYED, sizeof(*texts));
    struct queues queues;
    queues_init(&queues, UINT32_MAX, job_id);
    queue_with(&queues, "gate", 1, UINT32_MAX);
    for (int i = 0; i < KEYED; i++) {
        snprintf(jobs[i].id, sizeof(jobs[i].id), "%d", i);
        snprintf(texts[i], sizeof(texts[i]),
                 "[{\"queue\":\"gate\",\"key\":\"all\"},{\"queue\":\"h\",\"key\":\"%d\"}]",
                 i);
        queues_wait(&queues, &jobs[i].item, seat("q", "", texts[i]), i);
    }
    assert_int_equal(queues.crowded, 1);
    assert_int_equal(queues.sets.count, 2);
    struct slot_group *counted[2] = { NULL };
    queues.sets_max = 2; /* the pinned key takes none of them */
    assert_true(limits_count_set(&queues, SLICE("[\"one\"]"), &counted[0]));
    assert_false(limits_count_set(&queues, SLICE("[\"two\"]"), &counted[1]));
    limits_discount_set(&queues, counted[0]);
    for (int i = 0; i < KEYED; i++) {
        struct queue_item *next = queues_next(&queues, 0);
        assert_ptr_equal(next, &jobs[i].item);
        queues_run(&queues, next, seat("q", "", texts[i]));
        assert_null(queues_next(&queues, 0));
        assert_int_equal(queues_figures(&queues, SLICE("gate")).running, 1);
        queues_leave(&queues, next);
    }
    assert_int_equal(queues.crowded, 0);
    queues_forget_limit(&queues, SLICE("gate"));
    assert_int_equal(queues_count(&queues), 0);
    queues_finish(&queues);
    free(texts);
    free(jobs);
}

/* ---- random changes ---- */

enum { JOBS = 40, QUEUES = 3, KEYS = 3, LIMITS = 2, NEEDS = 4, STEPS = 60000, OWN = -1 };

static const char *const queue_names[QUEUES] = { "a", "b", "c" };
static const char *const key_names[KEYS] = { "", "x", "y" };
static const char *const limit_names[LIMITS] = { "l", "m" };

/* Places of pools: those of queues first, then those of limits. */
struct need {
    int of;  /* a queue, or QUEUES plus a limit */
    int key; /* OWN: that of the job */
};

static const struct {
    const char *text;
    int count;
    struct need needs[NEEDS];
} demands[] = {
    { NULL, 0, { { 0 } } },
    { "[\"l\",{\"queue\":\"a\"}]", 2, { { QUEUES, OWN }, { 0, OWN } } },
    { "[{\"queue\":\"b\",\"key\":\"x\"}]", 1, { { 1, 1 } } },
    { "[{\"queue\":\"b\",\"key\":\"y\"}]", 1, { { 1, 2 } } },
    { "[{\"queue\":\"b\",\"pin\":\"x\"}]", 1, { { 1, 1 } } },
    { "[{\"queue\":\"c\",\"pin\":\"y\"},{\"queue\":\"a\",\"key\":\"x\"}]",
      2,
      { { 2, 2 }, { 0, 1 } } },
    { "[\"m\",{\"queue\":\"a\"},{\"queue\":\"b\"},{\"queue\":\"a\",\"key\":\"y\"}]",
      4,
      { { QUEUES + 1, OWN }, { 0, OWN }, { 1, OWN }, { 0, 2 } } },
    { "[\"l\",\"m\",{\"queue\":\"c\",\"key\":\"x\"},{\"queue\":\"c\",\"pin\":\"x\"}]",
      3,
      { { QUEUES, OWN }, { QUEUES + 1, OWN }, { 2, 1 } } },
};
enum { DEMANDS = sizeof(demands) / sizeof(demands[0]) };

struct bounds {
    bool paused;
    uint32_t per_key, total;
};

struct model {
    struct queues queues;
    struct job jobs[JOBS];
    struct bounds bounds[QUEUES + LIMITS];
    uint64_t random;
};

static uint32_t draw(struct model *model, uint32_t below)
{
    model->random = model->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(model->random >> 33) % below;
}

/* key: KEYS for any. */
static bool holds(const struct job *job, int of, unsigned key)
{
    bool found = job->queue == (unsigned)of && (key == KEYS || job->key == key);
    for (int i = 0; i < demands[job->demand].count; i++) {
        struct need need = demands[job->demand].needs[i];
        unsigned own = need.key == OWN ? job->key : (unsigned)need.key;
        found |= need.of == of && (key == KEYS || own == key);
    }
    return found;
}

static uint32_t count(const struct model *model, int of, unsigned key)
{
    uint32_t sum = 0;
    for (int i = 0; i < JOBS; i++)
        sum += model->jobs[i].running && holds(&model->jobs[i], of, key);
    return sum;
}

static bool may_run(const struct model *model, const struct job *job)
{
    uint32_t executing = 0;
    for (int i = 0; i < JOBS; i++)
        executing += model->jobs[i].running;
    bool may = job->waiting && executing < model->queues.limit;
    for (int of = 0; of < QUEUES + LIMITS; of++) {
        const struct bounds *bounds = &model->bounds[of];
        if (holds(job, of, KEYS))
            may &=
                (!bounds->paused || job->resumes) && count(model, of, KEYS) < bounds->total;
        for (unsigned key = 0; key < KEYS; key++)
            if (holds(job, of, key))
                may &= count(model, of, key) < bounds->per_key;
    }
    return may;
}

static struct queue_seat seat_of(const struct job *job)
{
    return seat(queue_names[job->queue], key_names[job->key], demands[job->demand].text);
}

static bool is_of(const struct job *job, uint32_t audience)
{
    return job->resumes ? audience == AUDIENCE_RESUMED : job->audience == audience;
}

/* Items of the queue itself that wait with this key. */
static uint32_t count_queued(const struct model *model, unsigned queue, unsigned key)
{
    uint32_t sum = 0;
    for (int i = 0; i < JOBS; i++) {
        const struct job *job = &model->jobs[i];
        sum += job->waiting && !job->resumes && job->queue == queue && job->key == key;
    }
    return sum;
}

/* A usage lists the items that hold a slot of the queue, or need one, and its keys. */
static void check_usage(const struct model *model, unsigned queue)
{
    const struct queues *queues = &model->queues;
    struct slice name = slice_of(queue_names[queue]), keys[KEYS];
    const struct queue_item *items[JOBS];
    size_t busy = 0, needed = 0, found = 0;
    for (unsigned key = 0; key < KEYS; key++) {
        struct queue_figures figures =
            queues_key_figures(queues, name, slice_of(key_names[key]));
        assert_int_equal(figures.running, count(model, (int)queue, key));
        assert_int_equal(figures.waiting, count_queued(model, queue, key));
        busy += figures.running > 0;
    }
    assert_int_equal(queues_keys(queues, name, keys, KEYS), busy);
    for (int i = 0; i < JOBS; i++)
        needed += (model->jobs[i].waiting || model->jobs[i].running) &&
                  holds(&model->jobs[i], (int)queue, KEYS);
    const struct list *lines[] = { &queues->executing, &queues->resuming, &queues->line };
    for (int i = 0; i < 3; i++)
        found += queues_items(queues, lines[i], name, items, JOBS, JOBS);
    assert_int_equal(found, needed);
}

static void check(struct model *model)
{
    static const uint32_t audiences[] = { 0, 1, AUDIENCE_RESUMED };
    for (int a = 0; a < 3; a++) {
        struct queue_item *next = queues_next(&model->queues, audiences[a]);
        bool any = false;
        for (int i = 0; i < JOBS; i++)
            any |= is_of(&model->jobs[i], audiences[a]) && may_run(model, &model->jobs[i]);
        assert_true(next ? any : !any || queues_are_stale(&model->queues));
        assert_true(!next || may_run(model, job_of(next)));
    }
    for (int i = 0; i < QUEUES; i++)
        assert_int_equal(queues_figures(&model->queues, slice_of(queue_names[i])).running,
                         count(model, i, KEYS));
    for (int i = 0; i < LIMITS; i++)
        assert_int_equal(limits_figures(&model->queues, slice_of(limit_names[i])).running,
                         count(model, QUEUES + i, KEYS));
}

/* An item that may not run has a reason. */
static void check_standing(const struct model *model, const struct job *job)
{
    if (!job->waiting)
        return;
    struct queue_standing standing = queues_standing(&model->queues, &job->item, 0);
    bool is_held = standing.paused || standing.running >= standing.limit ||
                   standing.total_running >= standing.total || standing.of_limit.name.ptr ||
                   model->queues.running >= model->queues.limit;
    assert_int_equal(is_held, !may_run(model, job));
}

static void change(struct model *model)
{
    unsigned i = draw(model, QUEUES + LIMITS);
    struct bounds *bounds = &model->bounds[i];
    bounds->per_key = draw(model, 3) ? draw(model, 4) : UINT32_MAX;
    bounds->total = draw(model, 3) ? draw(model, 6) : UINT32_MAX;
    bounds->paused = draw(model, 4) == 0;
    struct queue_settings settings = { .paused = bounds->paused };
    if (i >= QUEUES) {
        struct slice limit = slice_of(limit_names[i - QUEUES]);
        limits_change(&model->queues, limit, bounds->per_key, bounds->total);
        limits_configure(&model->queues, limit, &settings);
        return;
    }
    struct slice name = slice_of(queue_names[i]);
    queues_change_limit(&model->queues, name, bounds->per_key);
    queues_set_total(&model->queues, name, bounds->total);
    queues_configure(&model->queues, name, &settings);
}

static void put_to_wait(struct model *model, struct job *job)
{
    job->queue = draw(model, QUEUES);
    job->key = draw(model, KEYS);
    job->demand = draw(model, DEMANDS);
    job->audience = draw(model, 2);
    job->resumes = draw(model, 4) == 0;
    job->waiting = true;
    job->running = false;
    job->item.audience = (uint16_t)job->audience;
    if (job->resumes)
        queues_wait_again(&model->queues, &job->item, seat_of(job), draw(model, 50));
    else
        queues_wait(&model->queues, &job->item, seat_of(job), draw(model, 50));
}

static void put_to_run(struct model *model, struct job *job)
{
    job->waiting = false;
    job->running = true;
    queues_run(&model->queues, &job->item, seat_of(job));
}

static void step(struct model *model)
{
    struct job *job = &model->jobs[draw(model, JOBS)];
    struct queue_item *next =
        queues_next(&model->queues, draw(model, 3) ? draw(model, 2) : AUDIENCE_RESUMED);
    switch (draw(model, 8)) {
    case 0:
    case 1: put_to_wait(model, job); break;
    case 2:
        if (job->waiting && draw(model, 8) == 0)
            put_to_run(model, job); /* as after a restart, whatever the limits are */
        break;
    case 3:
    case 4:
    case 5:
        if (next)
            put_to_run(model, job_of(next));
        break;
    case 6:
        job->waiting = job->running = false;
        queues_leave(&model->queues, &job->item);
        break;
    default:
        if (!draw(model, 4))
            change(model);
        else
            queues_refresh_stale(&model->queues);
    }
    check_standing(model, job);
}

static void begin(struct model *model, uint32_t lanes_max)
{
    assert_int_equal(getrandom(&model->random, sizeof(model->random), 0),
                     sizeof(model->random));
    print_message("# seed %llu\n", (unsigned long long)model->random);
    queues_init(&model->queues, 12, job_id);
    model->queues.lanes_max = lanes_max;
    model->queues.visits_max = 1 + draw(model, KEYS);
    for (int i = 0; i < JOBS; i++)
        snprintf(model->jobs[i].id, sizeof(model->jobs[i].id), "%d", i);
    for (int i = 0; i < QUEUES + LIMITS; i++)
        model->bounds[i] = (struct bounds){ false, UINT32_MAX, UINT32_MAX };
    for (int i = 0; i < QUEUES; i++)
        queues_register(&model->queues, slice_of(queue_names[i]));
    for (int i = 0; i < LIMITS; i++)
        limits_register(&model->queues, slice_of(limit_names[i]));
}

static void change_at_random(uint32_t lanes_max)
{
    struct model *model = calloc(1, sizeof(*model));
    begin(model, lanes_max);
    for (int i = 0, steps = cases_to_draw(STEPS); i < steps; i++) {
        step(model);
        check(model);
        if (i % 16 == 0)
            for (unsigned queue = 0; queue < QUEUES; queue++)
                check_usage(model, queue);
        for (bool all = !draw(model, 50); all && queues_refresh_stale(&model->queues);)
            check(model);
    }
    for (int i = 0; i < JOBS; i++)
        queues_leave(&model->queues, &model->jobs[i].item);
    for (int i = 0; i < LIMITS; i++) {
        limits_configure(&model->queues, slice_of(limit_names[i]),
                         &(struct queue_settings){ 0 });
        limits_forget(&model->queues, slice_of(limit_names[i]));
    }
    for (int i = 0; i < QUEUES; i++) {
        queues_configure(&model->queues, slice_of(queue_names[i]),
                         &(struct queue_settings){ 0 });
        queues_forget_limit(&model->queues, slice_of(queue_names[i]));
    }
    assert_int_equal(queues_count(&model->queues) + limits_count(&model->queues), 0);
    queues_finish(&model->queues);
    free(model);
}

static void next_item_has_all_slots_whatever_happens(void **state)
{
    (void)state;
    change_at_random(64);
}

static void the_same_holds_while_keys_are_pinned(void **state)
{
    (void)state;
    change_at_random(2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gate_is_a_slot_of_another_queue),
        cmocka_unit_test(a_gate_may_name_a_key),
        cmocka_unit_test(a_slot_that_is_needed_twice_is_held_once),
        cmocka_unit_test(settings_of_a_gate_count),
        cmocka_unit_test(texts_without_a_need_need_nothing),
        cmocka_unit_test(texts_of_one_set_wait_together),
        cmocka_unit_test(very_many_keys_of_a_gate_are_one_set),
        cmocka_unit_test(a_key_of_a_gate_waits_only_for_older_items_of_others),
        cmocka_unit_test(different_sets_are_bounded),
        cmocka_unit_test(a_key_of_very_many_subqueues_is_pinned),
        cmocka_unit_test(a_key_of_very_many_lanes_is_pinned),
        cmocka_unit_test(next_item_has_all_slots_whatever_happens),
        cmocka_unit_test(the_same_holds_while_keys_are_pinned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
