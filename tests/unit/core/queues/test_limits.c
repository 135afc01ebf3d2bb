/* Limits with names: an item runs only when its queue and each of its limits have a slot. */
#include "tests/support/world/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "core/queues/queue.h"

struct job {
    struct queue_item item;
    char id[16];
    /* The model's view of it. */
    bool waiting, running, resumes;
    unsigned queue, key, set, audience;
    uint64_t keeps;   /* number of its reservation */
    uint64_t holders; /* bits of jobs that have run ever since it keeps slots */
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

static struct queue_seat seat(const char *queue, const char *key, const char *limits)
{
    return (struct queue_seat){ .queue = slice_of(queue),
                                .key = slice_of(key),
                                .limits = limits ? slice_of(limits) : (struct slice){ 0 } };
}

static void declare(struct queues *queues, const char *limit, uint32_t per_key,
                    uint32_t total)
{
    limits_register(queues, slice_of(limit));
    limits_change(queues, slice_of(limit), per_key, total);
}

static void a_limit_holds_across_queues(void **state)
{
    (void)state;
    struct job a = { .id = "a" }, b = { .id = "b" }, c = { .id = "c" };
    struct queues queues;
    queues_init(&queues, 10, job_id);
    declare(&queues, "openai", UINT32_MAX, 1);
    queues_wait(&queues, &a.item, seat("one", "", "[\"openai\"]"), 1);
    queues_wait(&queues, &b.item, seat("two", "", "[\"openai\"]"), 2);
    queues_wait(&queues, &c.item, seat("two", "", NULL), 3);

    queues_run(&queues, &a.item, seat("one", "", "[\"openai\"]"));
    assert_string_equal(next_id(&queues), "c"); /* needs no limit */
    struct queue_standing standing = queues_standing(&queues, &b.item, 0);
    assert_true(slice_is(standing.of_limit.name, "openai"));
    assert_true(standing.of_limit.is_total);
    assert_int_equal(standing.of_limit.limit, 1);
    assert_int_equal(standing.of_limit.running, 1);
    assert_int_equal(limits_figures(&queues, SLICE("openai")).running, 1);
    assert_int_equal(limits_figures(&queues, SLICE("openai")).waiting, 1);

    queues_leave(&queues, &a.item);
    assert_string_equal(next_id(&queues), "b");
    queues_leave(&queues, &b.item);
    queues_leave(&queues, &c.item);
    queues_finish(&queues);
}

static void a_limit_per_key_counts_the_keys_of_all_queues(void **state)
{
    (void)state;
    struct job a = { .id = "a" }, b = { .id = "b" }, c = { .id = "c" };
    struct queues queues;
    queues_init(&queues, 10, job_id);
    declare(&queues, "user", 1, 5);
    queues_run(&queues, &a.item, seat("one", "ann", "[\"user\"]"));
    queues_wait(&queues, &b.item, seat("two", "ann", "[\"user\"]"), 1);
    queues_wait(&queues, &c.item, seat("two", "bob", "[\"user\"]"), 2);
    assert_string_equal(next_id(&queues), "c");
    assert_false(queues_has_slot(&queues, seat("two", "ann", "[\"user\"]")));

    struct limit_override override = { SLICE("ann"), 2, 1000 }, now;
    limits_override_key(&queues, SLICE("user"), &override);
    assert_string_equal(next_id(&queues), "b");
    assert_int_equal(limits_key_figures(&queues, SLICE("user"), SLICE("ann"), &now).limit,
                     2);
    assert_int_equal(now.until, 1000);
    assert_int_equal(limits_end_overrides(&queues, 999), 1000);
    assert_string_equal(next_id(&queues), "b");
    assert_true(limits_end_overrides(&queues, 1000) == INT64_MAX);
    assert_string_equal(next_id(&queues), "c");

    queues_leave(&queues, &a.item);
    queues_leave(&queues, &b.item);
    queues_leave(&queues, &c.item);
    queues_finish(&queues);
}

static void a_paused_limit_holds_back_only_what_has_not_run(void **state)
{
    (void)state;
    struct job a = { .id = "a" }, b = { .id = "b" };
    struct queues queues;
    queues_init(&queues, 10, job_id);
    declare(&queues, "l", 2, 2);
    queues_wait(&queues, &a.item, seat("q", "", "[\"l\"]"), 1);
    queues_wait_again(&queues, &b.item, seat("q", "", "[\"l\"]"), 2);
    limits_configure(&queues, SLICE("l"), &(struct queue_settings){ .paused = true });
    assert_string_equal(next_id(&queues), "none");
    assert_ptr_equal(queues_next(&queues, AUDIENCE_RESUMED), &b.item);
    assert_true(queues_standing(&queues, &a.item, 0).of_limit.paused);
    limits_configure(&queues, SLICE("l"), &(struct queue_settings){ 0 });
    assert_string_equal(next_id(&queues), "a");
    queues_leave(&queues, &a.item);
    queues_leave(&queues, &b.item);
    queues_finish(&queues);
}

/* Checks the items of a line that need the limit "l", by their ids. */
static void expect_items(const struct queues *queues, const struct list *line, size_t most,
                         size_t among, const char *ids)
{
    const struct queue_item *items[8];
    char found[8] = "";
    size_t count = limits_items(queues, line, SLICE("l"), items, most, among);
    for (size_t i = 0; i < count; i++)
        found[i] = job_of(items[i])->id[0];
    assert_string_equal(found, ids);
}

static void a_limit_lists_its_items_and_keys(void **state)
{
    (void)state;
    struct job a = { .id = "a" }, b = { .id = "b" }, c = { .id = "c" }, d = { .id = "d" },
               e = { .id = "e" };
    struct queues queues;
    queues_init(&queues, 10, job_id);
    declare(&queues, "l", 1, 5);
    queues_run(&queues, &a.item, seat("one", "ann", "[\"l\"]"));
    queues_run(&queues, &b.item, seat("one", "bob", "[\"m\",\"l\"]"));
    queues_run(&queues, &a.item, seat("one", "ann", "[\"l\"]")); /* keeps its place */
    expect_items(&queues, &queues.executing, 8, 8, "ab");
    queues_wait(&queues, &c.item, seat("two", "ann", "[\"m\"]"), 1);
    queues_wait(&queues, &d.item, seat("two", "ann", "[\"l\"]"), 2);
    queues_wait(&queues, &e.item, seat("two", "ann", "[\"l\"]"), 3);
    queues_wait_again(&queues, &b.item, seat("one", "bob", "[\"m\",\"l\"]"), 4);
    expect_items(&queues, &queues.executing, 8, 8, "a");
    expect_items(&queues, &queues.resuming, 8, 8, "b");
    expect_items(&queues, &queues.line, 8, 8, "de");
    expect_items(&queues, &queues.line, 1, 8, "d");
    expect_items(&queues, &queues.line, 8, 2, "d"); /* c is the first of the two */

    struct limit_override override = { SLICE("eve"), 2, 1000 }, now;
    struct slice keys[3];
    limits_override_key(&queues, SLICE("l"), &override);
    assert_int_equal(limits_keys(&queues, SLICE("l"), keys, 3), 2);
    assert_true(slice_is(keys[0], "eve") && slice_is(keys[1], "ann"));
    assert_int_equal(limits_keys(&queues, SLICE("l"), keys, 1), 1);
    assert_int_equal(limits_keys(&queues, SLICE("none"), keys, 3), 0);
    assert_int_equal(limits_key_figures(&queues, SLICE("l"), SLICE("ann"), &now).waiting,
                     2);

    queues_wait(&queues, &a.item, seat("one", "ann", "[\"l\"]"), 0);
    queues_run(&queues, &b.item, seat("one", "bob", "[\"m\",\"l\"]"));
    expect_items(&queues, &queues.executing, 8, 8, "b");
    expect_items(&queues, &queues.line, 8, 8, "dea");
    limits_end_overrides(&queues, 1000);
    struct job *all[] = { &a, &b, &c, &d, &e };
    for (int i = 0; i < 5; i++)
        queues_leave(&queues, &all[i]->item);
    queues_finish(&queues);
}

static void overrides_that_end_at_once_all_end(void **state)
{
    (void)state;
    struct queues queues;
    char key[16];
    queues_init(&queues, 10, job_id);
    declare(&queues, "declared", 1, 1);
    for (int i = 0; i < 3000; i++) {
        struct slice limit = slice_of(i % 2 ? "declared" : "gone");
        snprintf(key, sizeof(key), "%d", i);
        limits_override_key(
            &queues, limit,
            &(struct limit_override){ slice_of(key), 5, i % 3 ? 100 : 200 });
    }
    assert_int_equal(limits_end_overrides(&queues, 100), 200);
    assert_int_equal(queues.limits.overrides, 1000);
    assert_true(limits_end_overrides(&queues, 200) == INT64_MAX);
    assert_int_equal(queues.limits.overrides, 0);
    assert_int_equal(limits_count(&queues), 1); /* nothing needs the other one */
    limits_forget(&queues, SLICE("declared"));
    queues_finish(&queues);
}

/* Sets the limit for each key, and returns in how many parts the other keys are visited. */
static unsigned set_per_key(struct queues *queues, uint32_t per_key)
{
    unsigned parts = 0;
    limits_change(queues, SLICE("l"), per_key, UINT32_MAX);
    for (; queues_are_stale(queues); parts++) {
        assert_string_equal(next_id(queues), "other"); /* needs another limit */
        queues_refresh_stale(queues);
    }
    return parts;
}

static void many_keys_of_a_limit_are_visited_in_parts(void **state)
{
    (void)state;
    enum { MANY = 2000 };
    struct job *jobs = calloc(MANY, sizeof(*jobs)), other = { .id = "other" };
    struct queues queues;
    queues_init(&queues, 10, job_id);
    declare(&queues, "l", 2, UINT32_MAX);
    for (int i = 0; i < MANY; i++) {
        snprintf(jobs[i].id, sizeof(jobs[i].id), "%d", i);
        queues_wait(&queues, &jobs[i].item, seat("q", jobs[i].id, "[\"l\"]"), i);
    }
    queues_wait(&queues, &other.item, seat("p", "", "[\"m\"]"), MANY);
    assert_in_range(set_per_key(&queues, 0), 4, 20);
    assert_string_equal(next_id(&queues), "other");
    limits_override_key(&queues, SLICE("l"),
                        &(struct limit_override){ SLICE("1999"), 1, 1 });
    assert_in_range(set_per_key(&queues, 1), 4, 20);
    assert_string_equal(next_id(&queues), "0");
    assert_in_range(set_per_key(&queues, 0), 4, 20);
    queues_leave(&queues, &other.item);
    assert_string_equal(next_id(&queues), "1999");
    limits_end_overrides(&queues, 1);
    assert_string_equal(next_id(&queues), "none");
    for (int i = 0; i < MANY; i++)
        queues_leave(&queues, &jobs[i].item);
    limits_forget(&queues, SLICE("l"));
    queues_finish(&queues);
    free(jobs);
}

/* A limit that is not declared any more is freed with its last pool. */
static void a_limit_may_go_while_its_keys_are_visited(void **state)
{
    (void)state;
    struct job jobs[3] = { { .id = "a" }, { .id = "b" }, { .id = "c" } };
    struct queues queues;
    for (int visits = 0; visits < 3; visits++) {
        queues_init(&queues, 10, job_id);
        queues.visits_max = 1;
        declare(&queues, "l", 0, UINT32_MAX);
        for (int i = 0; i < 3; i++)
            queues_wait(&queues, &jobs[i].item, seat("q", jobs[i].id, "[\"l\"]"), i);
        limits_forget(&queues, SLICE("l"));
        assert_true(queues_are_stale(&queues));
        for (int i = 0; i < visits; i++)
            queues_refresh_stale(&queues);
        for (int i = 0; i < 3; i++)
            queues_leave(&queues, &jobs[i].item);
        assert_int_equal(limits_count(&queues), 0);
        assert_false(queues_are_stale(&queues));
        queues_finish(&queues);
    }
}

static void runs_of_a_queue_keep_their_order_whatever_limits_they_need(void **state)
{
    (void)state;
    struct job jobs[6] = { { .id = "0" }, { .id = "1" }, { .id = "2" },
                           { .id = "3" }, { .id = "4" }, { .id = "5" } };
    static const char *const sets[] = { NULL, "[\"a\"]", "[\"a\",\"b\"]" };
    struct queues queues;
    queues_init(&queues, 10, job_id);
    for (int i = 5; i >= 0; i--)
        queues_wait(&queues, &jobs[i].item, seat("q", "", sets[i % 3]), i);
    for (int i = 0; i < 6; i++) {
        assert_string_equal(next_id(&queues), jobs[i].id);
        queues_run(&queues, &jobs[i].item, seat("q", "", sets[i % 3]));
    }
    for (int i = 0; i < 6; i++)
        queues_leave(&queues, &jobs[i].item);
    queues_finish(&queues);
}

static void names_of_limits_do_not_stay(void **state)
{
    (void)state;
    struct job a = { .id = "a" };
    struct queues queues;
    queues_init(&queues, 10, job_id);
    queues_wait(&queues, &a.item, seat("q", "k", "[\"x\",\"y\"]"), 1);
    assert_int_equal(limits_count(&queues), 2);
    queues_run(&queues, &a.item, seat("q", "k", "[\"x\",\"y\"]"));
    queues_leave(&queues, &a.item);
    assert_int_equal(limits_count(&queues), 0);
    declare(&queues, "x", 1, 1);
    limits_forget(&queues, SLICE("x"));
    assert_int_equal(limits_count(&queues), 0);
    queues_finish(&queues);
}

static void a_limit_named_twice_is_held_once(void **state)
{
    (void)state;
    struct job a = { .id = "a" };
    struct queues queues;
    queues_init(&queues, 10, job_id);
    declare(&queues, "l", 1, 1);
    queues_wait(&queues, &a.item, seat("q", "", "[\"l\",\"l\"]"), 1);
    assert_int_equal(limits_figures(&queues, SLICE("l")).waiting, 1);
    queues_run(&queues, &a.item, seat("q", "", "[\"l\",\"l\"]"));
    assert_int_equal(limits_figures(&queues, SLICE("l")).running, 1);
    queues_leave(&queues, &a.item);
    assert_int_equal(limits_figures(&queues, SLICE("l")).running, 0);
    limits_forget(&queues, SLICE("l"));
    queues_finish(&queues);
}

/* Runs the next item, which has this id, and ends it. */
static void serve_next(struct queues *queues, const char *id)
{
    struct queue_item *item = queues_next(queues, 0);
    assert_string_equal(next_id(queues), id);
    queues_run(queues, item, seat(job_of(item)->queue ? "two" : "one", "", "[\"l\"]"));
    assert_string_equal(next_id(queues), "none");
    queues_leave(queues, item);
}

static void queues_that_share_a_full_limit_take_turns(void **state)
{
    (void)state;
    struct job jobs[6] = { { .id = "0" },
                           { .id = "1" },
                           { .id = "2" },
                           { .id = "3", .queue = 1 },
                           { .id = "4", .queue = 1 },
                           { .id = "5", .queue = 1 } };
    struct queues queues;
    queues_init(&queues, 10, job_id);
    declare(&queues, "l", UINT32_MAX, 1);
    for (int i = 0; i < 6; i++)
        queues_wait(&queues, &jobs[i].item,
                    seat(jobs[i].queue ? "two" : "one", "", "[\"l\"]"), i);
    static const char *const expected[] = { "0", "3", "1", "4", "2", "5" };
    for (int i = 0; i < 6; i++)
        serve_next(&queues, expected[i]);
    limits_forget(&queues, SLICE("l"));
    queues_finish(&queues);
}

/* The document stays after its overrides have expired. */
static void a_limit_knows_the_version_of_its_document_until_that_is_removed(void **state)
{
    (void)state;
    struct queue_settings settings = { .version = 3 };
    struct limit_override override = { SLICE("k"), 1, 100 };
    struct queues queues;
    queues_init(&queues, 10, job_id);
    declare(&queues, "l", 1, 1);
    limits_override_key(&queues, SLICE("l"), &override);
    limits_configure(&queues, SLICE("l"), &settings);
    limits_forget(&queues, SLICE("l"));
    limits_end_overrides(&queues, 100);
    declare(&queues, "l", 1, 1);
    assert_int_equal(limits_figures(&queues, SLICE("l")).settings.version, 3);
    limits_forget(&queues, SLICE("l"));
    limits_configure(&queues, SLICE("l"), &(struct queue_settings){ 0 });
    assert_int_equal(limits_count(&queues), 0);
    queues_finish(&queues);
}

/* ---- random changes ---- */

enum {
    JOBS = 40 /* at most 64 */,
    QUEUES = 3,
    KEYS = 3,
    LIMITS = 3,
    SETS = 6,
    STEPS = 60000
};

static const char *const queue_names[QUEUES] = { "a", "b", "c" };
static const char *const key_names[KEYS] = { "", "x", "y" };
static const char *const limit_names[LIMITS] = { "l", "m", "n" };
/* Bits of the limits that each set has. */
static const unsigned set_bits[SETS] = { 0, 1, 2, 3, 6, 7 };
static const char *const set_texts[SETS] = {
    NULL, "[\"l\"]", "[\"m\"]", "[\"l\",\"m\"]", "[\"m\",\"n\"]", "[\"l\",\"m\",\"n\"]"
};

struct bounds {
    bool paused;
    uint32_t per_key, total, keys[KEYS]; /* keys: overrides; UINT32_MAX: none */
};

struct model {
    struct queues queues;
    struct job jobs[JOBS];
    struct bounds of_queues[QUEUES], of_limits[LIMITS];
    bool is_calm;   /* settings hardly change, and each job is younger than those before */
    int64_t newest; /* position, if calm */
    unsigned keepers; /* how often a job began to keep slots */
    uint64_t random;
};

static uint32_t draw(struct model *model, uint32_t below)
{
    model->random = model->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(model->random >> 33) % below;
}

/* Counts running jobs of a queue or of a limit, with a key or with any (KEYS). */
static uint32_t count(const struct model *model, int queue, int limit, unsigned key)
{
    uint32_t sum = 0;
    for (int i = 0; i < JOBS; i++) {
        const struct job *job = &model->jobs[i];
        sum += job->running && (queue < 0 || job->queue == (unsigned)queue) &&
               (limit < 0 || set_bits[job->set] >> limit & 1) &&
               (key == KEYS || job->key == key);
    }
    return sum;
}

static bool needs(const struct job *job, int queue, int limit)
{
    return limit < 0 ? job->queue == (unsigned)queue : set_bits[job->set] >> limit & 1;
}

/* Returns the job for which a slot of the queue or limit is kept, or NULL. */
static const struct job *keeper_of(const struct model *model, int queue, int limit)
{
    const struct job *keeper = NULL;
    for (int i = 0; i < JOBS; i++) {
        const struct job *job = &model->jobs[i];
        if (!job->waiting || !queues_keeps_for(&job->item) || !needs(job, queue, limit))
            continue;
        assert_null(keeper);
        keeper = job;
    }
    return keeper;
}

static uint32_t limit_of_key(const struct bounds *bounds, unsigned key)
{
    return bounds->keys[key] == UINT32_MAX ? bounds->per_key : bounds->keys[key];
}

static bool has_room(const struct model *model, const struct bounds *bounds, int queue,
                     int limit, const struct job *job)
{
    const struct job *keeper = keeper_of(model, queue, limit);
    uint32_t kept = 0, kept_of_key = 0;
    if (keeper && keeper != job) {
        kept = count(model, queue, limit, keeper->key) < limit_of_key(bounds, keeper->key);
        kept_of_key = keeper->key == job->key;
    }
    return (!bounds->paused || job->resumes) &&
           count(model, queue, limit, KEYS) + kept < bounds->total &&
           count(model, queue, limit, job->key) + kept_of_key <
               limit_of_key(bounds, job->key);
}

/* Returns true if each limit of the job has a slot for it. */
static bool has_slots(const struct model *model, const struct job *job)
{
    bool has = has_room(model, &model->of_queues[job->queue], (int)job->queue, -1, job);
    for (int i = 0; has && i < LIMITS; i++)
        if (needs(job, -1, i))
            has = has_room(model, &model->of_limits[i], -1, i, job);
    return has;
}

static bool may_run(const struct model *model, const struct job *job)
{
    return job->waiting && count(model, -1, -1, KEYS) < model->queues.limit &&
           has_slots(model, job);
}

/* ---- kept slots ---- */

static uint64_t running_jobs(const struct model *model)
{
    uint64_t bits = 0;
    for (int i = 0; i < JOBS; i++)
        bits |= (uint64_t)model->jobs[i].running << i;
    return bits;
}

/* After a change that may give slots to others, the bound begins again. */
static void begin_bounds(struct model *model)
{
    for (int i = 0; i < JOBS; i++)
        model->jobs[i].holders = running_jobs(model);
}

static void end_run(struct model *model, struct job *job)
{
    for (int i = 0; i < JOBS; i++)
        model->jobs[i].holders &= ~((uint64_t)1 << (job - model->jobs));
    job->running = false;
}

/* Returns true if the queue or limit may give the job a slot at some time. */
static bool gives_slots(const struct bounds *bounds, const struct job *job)
{
    return (!bounds->paused || job->resumes) && bounds->total &&
           limit_of_key(bounds, job->key);
}

/* A job for which slots are kept may run when those have left that ran when that began. */
static void check_keepers(struct model *model)
{
    for (int i = 0; i < JOBS; i++) {
        struct job *job = &model->jobs[i];
        uint64_t keeps = job->waiting ? queues_keeps_for(&job->item) : 0;
        if (keeps && keeps != job->keeps) {
            job->holders = running_jobs(model);
            model->keepers++;
        }
        job->keeps = keeps;
        assert_true(!keeps || job->holders || has_slots(model, job));
        assert_true(!keeps || gives_slots(&model->of_queues[job->queue], job));
    }
}

/* A kept slot is free: it is not one of those that run. */
static void check_reserved(const struct model *model, int limit)
{
    struct queue_figures figures =
        limits_figures(&model->queues, slice_of(limit_names[limit]));
    const struct bounds *bounds = &model->of_limits[limit];
    const struct job *keeper = keeper_of(model, -1, limit);
    assert_int_equal(figures.running, count(model, -1, limit, KEYS));
    assert_int_equal(figures.reserved, keeper && figures.running < bounds->total &&
                                           count(model, -1, limit, keeper->key) <
                                               limit_of_key(bounds, keeper->key));
    assert_true(!keeper || gives_slots(bounds, keeper));
}

static struct queue_seat seat_of(const struct job *job)
{
    return seat(queue_names[job->queue], key_names[job->key], set_texts[job->set]);
}

/* The items and keys of one limit are those that hold it or wait for it. */
static void check_limit(const struct model *model, int limit, unsigned key)
{
    const struct queue_item *items[JOBS];
    struct limit_override override;
    struct slice name = slice_of(limit_names[limit]);
    uint32_t waiting = 0, resuming = 0, of_key = 0;
    for (int i = 0; i < JOBS; i++) {
        const struct job *job = &model->jobs[i];
        bool waits = job->waiting && set_bits[job->set] >> limit & 1;
        resuming += waits && job->resumes;
        waiting += waits && !job->resumes;
        of_key += waits && !job->resumes && job->key == key;
    }
    const struct queues *queues = &model->queues;
    assert_int_equal(limits_items(queues, &queues->executing, name, items, JOBS, JOBS),
                     count(model, -1, limit, KEYS));
    assert_int_equal(limits_items(queues, &queues->resuming, name, items, JOBS, JOBS),
                     resuming);
    assert_int_equal(limits_items(queues, &queues->line, name, items, JOBS, JOBS), waiting);
    assert_int_equal(
        limits_key_figures(queues, name, slice_of(key_names[key]), &override).waiting,
        of_key);
}

static void check(struct model *model)
{
    check_limit(model, (int)draw(model, LIMITS), draw(model, KEYS));
    for (uint32_t audience = 0; audience < 3; audience++) {
        uint32_t asked = audience == 2 ? AUDIENCE_RESUMED : audience;
        struct queue_item *next = queues_next(&model->queues, asked);
        bool any = false, keeps = false, is_stale = queues_are_stale(&model->queues);
        for (int i = 0; i < JOBS; i++) {
            const struct job *job = &model->jobs[i];
            bool is_asked = job->resumes ? audience == 2 : job->audience == audience;
            bool may = is_asked && may_run(model, job);
            any |= may;
            keeps |= may && queues_keeps_for(&job->item);
        }
        assert_true(next ? any : !any || is_stale);
        assert_true(!next || may_run(model, job_of(next)));
        assert_true(!keeps || is_stale || queues_keeps_for(next));
    }
    check_keepers(model);
    for (int i = 0; i < LIMITS; i++)
        check_reserved(model, i);
}

static void change_limit(struct model *model)
{
    unsigned i = draw(model, LIMITS), key = draw(model, KEYS);
    struct bounds *bounds = &model->of_limits[i];
    struct slice name = slice_of(limit_names[i]);
    switch (draw(model, 3)) {
    case 0:
        bounds->per_key = draw(model, 3) ? draw(model, 4) : UINT32_MAX;
        bounds->total = draw(model, 3) ? draw(model, 6) : UINT32_MAX;
        limits_change(&model->queues, name, bounds->per_key, bounds->total);
        break;
    case 1:
        bounds->paused = draw(model, 3) == 0;
        limits_configure(&model->queues, name,
                         &(struct queue_settings){ .paused = bounds->paused });
        break;
    default:
        bounds->keys[key] = draw(model, 2) ? draw(model, 4) : UINT32_MAX;
        limits_override_key(
            &model->queues, name,
            &(struct limit_override){ slice_of(key_names[key]), bounds->keys[key], 1 });
    }
}

static void change_queue(struct model *model)
{
    unsigned i = draw(model, QUEUES);
    struct bounds *bounds = &model->of_queues[i];
    struct slice name = slice_of(queue_names[i]);
    bounds->per_key = draw(model, 3) ? draw(model, 4) : UINT32_MAX;
    bounds->total = draw(model, 3) ? draw(model, 6) : UINT32_MAX;
    queues_change_limit(&model->queues, name, bounds->per_key);
    queues_set_total(&model->queues, name, bounds->total);
    bounds->paused = draw(model, 4) == 0;
    queues_configure(&model->queues, name,
                     &(struct queue_settings){ .paused = bounds->paused });
}

static void put_to_wait(struct model *model, struct job *job)
{
    end_run(model, job);
    job->queue = draw(model, QUEUES);
    job->key = draw(model, KEYS);
    job->set = draw(model, SETS);
    job->audience = draw(model, 2);
    job->resumes = draw(model, model->is_calm ? 16 : 4) == 0;
    job->waiting = true;
    job->item.audience = (uint16_t)job->audience;
    int64_t position = model->is_calm ? ++model->newest : draw(model, 50);
    if (job->resumes)
        queues_wait_again(&model->queues, &job->item, seat_of(job), position);
    else
        queues_wait(&model->queues, &job->item, seat_of(job), position);
}

static void put_to_run(struct model *model, struct job *job)
{
    job->waiting = false;
    job->running = true;
    queues_run(&model->queues, &job->item, seat_of(job));
}

static void leave(struct model *model, struct job *job)
{
    end_run(model, job);
    job->waiting = false;
    queues_leave(&model->queues, &job->item);
}

static void change_settings(struct model *model)
{
    if (draw(model, 2))
        change_limit(model);
    else
        change_queue(model);
    begin_bounds(model);
}

static void step(struct model *model)
{
    struct job *job = &model->jobs[draw(model, JOBS)];
    struct queue_item *next =
        queues_next(&model->queues, draw(model, 3) ? draw(model, 2) : AUDIENCE_RESUMED);
    bool may_leave = !model->is_calm || !job->waiting || !draw(model, 200);
    switch (draw(model, 8)) {
    case 0:
    case 1:
        if (!model->is_calm || (!job->waiting && !job->running))
            put_to_wait(model, job);
        break;
    case 2:
        if (!job->waiting || draw(model, model->is_calm ? 4000 : 8))
            break;
        put_to_run(model, job); /* as after a restart, whatever the limits are */
        begin_bounds(model);
        break;
    case 3:
    case 4:
    case 5:
        if (next)
            put_to_run(model, job_of(next));
        break;
    case 6:
        if (may_leave)
            leave(model, job);
        break;
    default:
        if (!draw(model, model->is_calm ? 2000 : 4))
            change_settings(model);
        else if (!draw(model, 200))
            queues_free_untaken(&model->queues);
        else
            queues_refresh_stale(&model->queues);
    }
}

/* The visits end, however many keys were visited before. */
static void finish_visits(struct model *model)
{
    for (int i = 0; queues_refresh_stale(&model->queues); i++)
        assert_true(i < (QUEUES + LIMITS) * KEYS);
    check(model);
}

static void run_model(bool is_calm)
{
    struct model *model = calloc(1, sizeof(*model));
    model->is_calm = is_calm;
    assert_int_equal(getrandom(&model->random, sizeof(model->random), 0),
                     sizeof(model->random));
    print_message("# seed %llu\n", (unsigned long long)model->random);
    queues_init(&model->queues, 12, job_id);
    model->queues.passes_max = 1 + draw(model, 4);
    model->queues.visits_max = 1 + draw(model, KEYS);
    for (int i = 0; i < JOBS; i++)
        snprintf(model->jobs[i].id, sizeof(model->jobs[i].id), "%d", i);
    const struct bounds open = {
        false, UINT32_MAX, UINT32_MAX, { UINT32_MAX, UINT32_MAX, UINT32_MAX }
    };
    for (int i = 0; i < LIMITS; i++) {
        struct bounds *bounds = &model->of_limits[i];
        model->of_queues[i] = *bounds = open;
        if (is_calm)
            bounds->per_key = 1 + draw(model, 2);
        if (is_calm)
            bounds->total = 1 + draw(model, 3);
        declare(&model->queues, limit_names[i], bounds->per_key, bounds->total);
        queues_register(&model->queues, slice_of(queue_names[i]));
    }
    for (int i = 0; i < STEPS; i++) {
        step(model);
        check(model);
        if (!draw(model, 100))
            finish_visits(model);
    }
    for (int i = 0; i < JOBS; i++)
        queues_leave(&model->queues, &model->jobs[i].item);
    limits_end_overrides(&model->queues, 1);
    for (int i = 0; i < LIMITS; i++)
        limits_forget(&model->queues, slice_of(limit_names[i]));
    queues_finish(&model->queues);
    print_message("# slots were kept %u times\n", model->keepers);
    assert_true(model->keepers || !is_calm);
    free(model);
}

static void next_item_has_all_slots_whatever_happens(void **state)
{
    (void)state;
    run_model(false);
}

static void an_item_that_keeps_slots_waits_only_for_those_that_ran_before(void **state)
{
    (void)state;
    run_model(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_limit_holds_across_queues),
        cmocka_unit_test(a_limit_per_key_counts_the_keys_of_all_queues),
        cmocka_unit_test(a_paused_limit_holds_back_only_what_has_not_run),
        cmocka_unit_test(a_limit_lists_its_items_and_keys),
        cmocka_unit_test(runs_of_a_queue_keep_their_order_whatever_limits_they_need),
        cmocka_unit_test(names_of_limits_do_not_stay),
        cmocka_unit_test(overrides_that_end_at_once_all_end),
        cmocka_unit_test(many_keys_of_a_limit_are_visited_in_parts),
        cmocka_unit_test(a_limit_may_go_while_its_keys_are_visited),
        cmocka_unit_test(a_limit_named_twice_is_held_once),
        cmocka_unit_test(queues_that_share_a_full_limit_take_turns),
        cmocka_unit_test(a_limit_knows_the_version_of_its_document_until_that_is_removed),
        cmocka_unit_test(next_item_has_all_slots_whatever_happens),
        cmocka_unit_test(an_item_that_keeps_slots_waits_only_for_those_that_ran_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
