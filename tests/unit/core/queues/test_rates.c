/* Rates: how many items of a queue, of a limit, or of a key of them start per period. */
#include "tests/support/world/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "core/queues/queue_rates.h"

enum { MINUTE_MS = 60 * 1000 };

struct job {
    struct queue_item item;
    char id[16];
    bool waiting;
    unsigned queue, key, set; /* the model's view of it */
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

/* Starts the next item, which has this id, and ends it. */
static void start(struct queues *queues, const char *id, struct queue_seat at,
                  int64_t now_ms)
{
    struct queue_item *item = queues_next(queues, 0);
    assert_string_equal(next_id(queues), id);
    queues_run(queues, item, at);
    queues_take_tokens(queues, item, now_ms);
    queues_leave(queues, item);
}

/* Takes tokens for an item that ends at once; returns the buckets that are not full. */
static size_t take(struct queues *queues, struct queue_seat at, int64_t now_ms)
{
    struct job job = { .id = "taker" };
    struct rate_figures buckets[RATE_BUCKETS_MAX];
    queues_run(queues, &job.item, at);
    queues_take_tokens(queues, &job.item, now_ms);
    size_t count = queues_buckets(queues, &job.item, buckets);
    queues_leave(queues, &job.item);
    return count;
}

static struct queue_settings rates(uint32_t total, uint32_t per_key)
{
    return (struct queue_settings){ .total_rate = { total, MINUTE_MS },
                                    .key_rate = { per_key, MINUTE_MS } };
}

static void a_queue_starts_its_burst_and_then_one_per_interval(void **state)
{
    (void)state;
    struct job jobs[4] = { { .id = "0" }, { .id = "1" }, { .id = "2" }, { .id = "3" } };
    const struct queue_settings two = rates(2, 0);
    struct queue_seat at = seat("q", "", NULL);
    struct queues queues;
    struct rate_figures dry;
    int64_t opens_ms;
    queues_init(&queues, 10, job_id);
    queues_configure(&queues, SLICE("q"), &two);
    for (int i = 0; i < 4; i++)
        queues_wait(&queues, &jobs[i].item, at, i);
    start(&queues, "0", at, 0);
    assert_false(queues_lacks_token(&queues, &jobs[1].item, &dry, &opens_ms));
    start(&queues, "1", at, 1000);
    assert_string_equal(next_id(&queues), "none");
    assert_true(queues_lacks_token(&queues, &jobs[2].item, &dry, &opens_ms));
    assert_true(slice_is(dry.place.name, "q") && !dry.place.key.ptr &&
                dry.rate.starts == 2);
    assert_int_equal(opens_ms, 30000);
    assert_int_equal(queues_refill(&queues, 29999), 30000);
    assert_string_equal(next_id(&queues), "none");
    queues_refill(&queues, 30000);
    start(&queues, "2", at, 30000);
    assert_int_equal(queues_refill(&queues, 30000), 60000);
    queues_refill(&queues, 60000);
    start(&queues, "3", at, 60000);
    assert_int_equal(queues_refill(&queues, 200000), INT64_MAX); /* it is full */
    queues_finish(&queues);
}

static void a_key_has_a_bucket_of_its_own(void **state)
{
    (void)state;
    struct job jobs[3] = { { .id = "0" }, { .id = "1" }, { .id = "2" } };
    const struct queue_settings one = rates(0, 1);
    const char *limits = "[\"l\"]";
    struct queues queues;
    queues_init(&queues, 10, job_id);
    limits_configure(&queues, SLICE("l"), &one);
    queues_wait(&queues, &jobs[0].item, seat("q", "x", limits), 0);
    queues_wait(&queues, &jobs[1].item, seat("r", "x", limits), 1);
    queues_wait(&queues, &jobs[2].item, seat("q", "y", limits), 2);
    start(&queues, "0", seat("q", "x", limits), 0);
    start(&queues, "2", seat("q", "y", limits), 0);
    assert_string_equal(next_id(&queues), "none");
    queues_refill(&queues, MINUTE_MS);
    start(&queues, "1", seat("r", "x", limits), MINUTE_MS);
    queues_finish(&queues);
}

/* Returns how many buckets of the keys 0 to count - 1 of a queue are full. */
static size_t full_keys(const struct queues *queues, const char *queue, size_t count)
{
    size_t full = 0;
    for (size_t i = 0; i < count; i++) {
        char key[24];
        snprintf(key, sizeof(key), "%zu", i);
        struct rate_place place = { false, slice_of(queue), slice_of(key) };
        full += queues_bucket(queues, place).full_at == 0;
    }
    return full;
}

/* So a refill, or a change of the rate, delays nothing else for long. */
static void many_buckets_are_refilled_in_parts(void **state)
{
    (void)state;
    enum { KEYS_AT_ONCE = 2000 };
    const struct queue_settings one = rates(0, 1), quick = { .key_rate = { 1, 1000 } };
    struct queues queues;
    size_t parts = 0;
    queues_init(&queues, 10, job_id);
    queues_configure(&queues, SLICE("q"), &one);
    for (size_t i = 0; i < KEYS_AT_ONCE; i++) {
        char key[24];
        snprintf(key, sizeof(key), "%zu", i);
        assert_int_equal(take(&queues, seat("q", key, NULL), 0), 1);
    }
    assert_int_equal(queues_refill(&queues, 0), MINUTE_MS);
    queues_configure(&queues, SLICE("q"), &quick);
    assert_true(queues_are_stale(&queues));
    for (; queues_are_stale(&queues); parts++)
        queues_refresh_stale(&queues);
    assert_true(parts > 4);
    assert_in_range(queues_refill(&queues, 0), 0, 0);
    while (queues_refill(&queues, 0) <= 0)
        continue;
    assert_int_equal(full_keys(&queues, "q", KEYS_AT_ONCE), 0);
    for (parts = 0; queues_refill(&queues, 1000) <= 1000; parts++)
        continue;
    assert_true(parts > 4);
    assert_int_equal(full_keys(&queues, "q", KEYS_AT_ONCE), KEYS_AT_ONCE);
    queues_finish(&queues);
}

/* Buckets that are left of a rate do not count, and are freed with the visits. */
static void a_rate_of_many_keys_is_taken_away_in_parts(void **state)
{
    (void)state;
    struct job job = { .id = "0" };
    const struct queue_settings one = rates(0, 1);
    struct rate_figures dry;
    int64_t opens_ms;
    struct queues queues;
    queues_init(&queues, 10, job_id);
    queues.visits_max = 1;
    queues_configure(&queues, SLICE("q"), &one);
    for (int i = 0; i < 3; i++) {
        char key[2] = { (char)('a' + i), '\0' };
        assert_int_equal(take(&queues, seat("q", key, NULL), 0), 1);
    }
    queues_wait(&queues, &job.item, seat("q", "c", NULL), 0);
    queues_configure(&queues, SLICE("q"), &(struct queue_settings){ 0 });
    struct rate_place place = { .name = SLICE("q"), .key = SLICE("c") };
    queues_return_token(&queues, place, 0);
    assert_int_equal(queues_bucket(&queues, place).full_at, 0);
    assert_false(queues_lacks_token(&queues, &job.item, &dry, &opens_ms));
    assert_string_equal(next_id(&queues), "none");
    queues_refill(&queues, 2 * MINUTE_MS); /* frees them, too */
    while (queues_refresh_stale(&queues))
        continue;
    assert_string_equal(next_id(&queues), "0");
    queues_leave(&queues, &job.item);
    assert_int_equal(queues_count(&queues), 0);
    queues_finish(&queues);
}

/* The key of a gate is the item's, pinned, or another one that few items name. */
static void a_gate_has_the_rates_of_its_queue(void **state)
{
    (void)state;
    static const char *const gates[] = { "[{\"queue\":\"g\"}]",
                                         "[{\"queue\":\"g\",\"pin\":\"x\"}]",
                                         "[{\"queue\":\"g\",\"key\":\"x\"}]" };
    for (size_t i = 0; i < sizeof(gates) / sizeof(gates[0]); i++) {
        struct job jobs[2] = { { .id = "0" }, { .id = "1" } };
        const struct queue_settings one = rates(2, 1);
        struct queue_seat at = seat("q", "x", gates[i]);
        struct queues queues;
        struct rate_figures dry;
        int64_t opens_ms;
        queues_init(&queues, 10, job_id);
        queues_configure(&queues, SLICE("g"), &one);
        queues_wait(&queues, &jobs[0].item, at, 0);
        queues_wait(&queues, &jobs[1].item, at, 1);
        start(&queues, "0", at, 0);
        assert_string_equal(next_id(&queues), "none");
        assert_true(queues_lacks_token(&queues, &jobs[1].item, &dry, &opens_ms));
        assert_true(slice_is(dry.place.name, "g") && slice_is(dry.place.key, "x"));
        queues_refill(&queues, MINUTE_MS);
        start(&queues, "1", at, MINUTE_MS);
        queues_finish(&queues);
    }
}

/* Others pass the first item over, which lacks a slot of one limit and a token. */
static void no_slot_is_kept_for_an_item_without_a_token(void **state)
{
    (void)state;
    static const char *const both = "[\"l\",\"m\"]";
    for (int per_key = 0; per_key < 2; per_key++) {
        struct job jobs[4] = { { .id = "0" }, { .id = "1" }, { .id = "2" }, { .id = "3" } };
        const struct queue_settings one = rates(!per_key, (uint32_t)per_key);
        struct queues queues;
        queues_init(&queues, 10, job_id);
        queues.passes_max = 1;
        queues_configure(&queues, SLICE("q"), &one);
        for (int i = 0; i < 2; i++) {
            struct slice name = i ? SLICE("m") : SLICE("l");
            limits_register(&queues, name);
            limits_change(&queues, name, 1, UINT32_MAX);
        }
        queues_wait(&queues, &jobs[0].item, seat("q", "x", both), 0);
        queues_wait(&queues, &jobs[1].item, seat("r", "x", "[\"l\"]"), 1);
        queues_wait(&queues, &jobs[2].item, seat("r", "x", "[\"l\"]"), 2);
        queues_wait(&queues, &jobs[3].item, seat("r", "x", "[\"m\"]"), 3);
        take(&queues, seat("q", "x", NULL), 0);
        start(&queues, "1", seat("r", "x", "[\"l\"]"), 0);
        queues_run(&queues, &jobs[2].item, seat("r", "x", "[\"l\"]"));
        assert_int_equal(limits_figures(&queues, SLICE("m")).reserved, 0);
        assert_string_equal(next_id(&queues), "3");
        for (int i = 0; i < 4; i++)
            queues_leave(&queues, &jobs[i].item);
        limits_forget(&queues, SLICE("l"));
        limits_forget(&queues, SLICE("m"));
        queues_finish(&queues);
    }
}

static void an_item_that_resumes_needs_no_token(void **state)
{
    (void)state;
    struct job jobs[2] = { { .id = "0" }, { .id = "1" } };
    const struct queue_settings one = rates(1, 1);
    struct queue_seat at = seat("q", "x", NULL);
    struct queues queues;
    struct rate_figures dry;
    int64_t opens_ms;
    queues_init(&queues, 10, job_id);
    queues_configure(&queues, SLICE("q"), &one);
    queues_wait(&queues, &jobs[0].item, at, 0);
    start(&queues, "0", at, 0);
    queues_wait_again(&queues, &jobs[1].item, at, 1);
    assert_non_null(queues_next(&queues, AUDIENCE_RESUMED));
    assert_false(queues_lacks_token(&queues, &jobs[1].item, &dry, &opens_ms));
    queues_leave(&queues, &jobs[1].item);
    queues_finish(&queues);
}

static void a_token_that_was_not_used_comes_back(void **state)
{
    (void)state;
    struct job job = { .id = "0" };
    const struct queue_settings one = rates(1, 1);
    struct queue_seat at = seat("q", "x", NULL);
    struct queues queues;
    queues_init(&queues, 10, job_id);
    queues_configure(&queues, SLICE("q"), &one);
    queues_wait(&queues, &job.item, at, 0);
    assert_int_equal(take(&queues, at, 0), 2);
    assert_string_equal(next_id(&queues), "none");
    queues_return_token(&queues, (struct rate_place){ .name = SLICE("q") }, 10);
    assert_string_equal(next_id(&queues), "none"); /* that of the key is missing */
    queues_return_token(&queues,
                        (struct rate_place){ .name = SLICE("q"), .key = SLICE("x") }, 10);
    assert_string_equal(next_id(&queues), "0");
    queues_leave(&queues, &job.item);
    queues_finish(&queues);
}

static void a_rate_that_is_taken_away_holds_nothing(void **state)
{
    (void)state;
    struct job job = { .id = "0" };
    const struct queue_settings one = rates(1, 1), none = { 0 };
    struct queue_seat at = seat("q", "x", NULL);
    struct queues queues;
    queues_init(&queues, 10, job_id);
    queues_configure(&queues, SLICE("q"), &one);
    queues_wait(&queues, &job.item, at, 0);
    take(&queues, at, 0);
    queues_configure(&queues, SLICE("q"), &none);
    assert_string_equal(next_id(&queues), "0");
    queues_leave(&queues, &job.item);
    assert_int_equal(queues_count(&queues), 0);
    queues_finish(&queues);
}

static void a_restored_bucket_waits_no_longer_than_an_empty_one(void **state)
{
    (void)state;
    struct job job = { .id = "0" };
    const struct queue_settings two = rates(2, 0);
    struct queue_seat at = seat("q", "", NULL);
    struct queues queues;
    queues_init(&queues, 10, job_id);
    queues_configure(&queues, SLICE("q"), &two);
    queues_wait(&queues, &job.item, at, 0);
    queues_restore_bucket(&queues, (struct rate_place){ .name = SLICE("q") }, INT64_MAX,
                          1000);
    assert_string_equal(next_id(&queues), "none");
    assert_int_equal(queues_refill(&queues, 1000), 31000);
    queues_refill(&queues, 31000);
    assert_string_equal(next_id(&queues), "0");
    queues_leave(&queues, &job.item);
    queues_finish(&queues);
}

static void too_many_keys_wait_until_some_buckets_are_full(void **state)
{
    (void)state;
    struct job job = { .id = "0" };
    const struct queue_settings two = rates(0, 2);
    struct queues queues;
    char key[16];
    queues_init(&queues, 10, job_id);
    queues_configure(&queues, SLICE("q"), &two);
    for (int i = 0; i < RATE_KEYS_MAX; i++) {
        snprintf(key, sizeof(key), "%d", i);
        take(&queues, seat("q", key, NULL), i / (RATE_KEYS_MAX / 4));
    }
    queues_wait(&queues, &job.item, seat("q", "new", NULL), 0);
    assert_string_equal(next_id(&queues), "none");
    while (queues_refill(&queues, MINUTE_MS / 2) <= MINUTE_MS / 2)
        continue;
    assert_string_equal(next_id(&queues), "0");
    queues_leave(&queues, &job.item);
    queues_finish(&queues);
}

/* ---- random steps ----
 *
 * The model counts the time that a bucket lacks down, instead of keeping when it is full. */

enum {
    JOBS = 40,
    QUEUES = 2,
    KEYS = 3,
    SETS = 4,
    PLACES = 2 * QUEUES,
    STEPS = 60000,
    LOG_MAX = 64
};

static const char *const queue_names[QUEUES] = { "a", "b" };
static const char *const limit_names[QUEUES] = { "l", "m" };
static const char *const key_names[KEYS] = { "", "x", "y" };
static const unsigned set_bits[SETS] = { 0, 1, 2, 3 };
static const char *const set_texts[SETS] = { NULL, "[\"l\"]", "[\"m\"]", "[\"l\",\"m\"]" };

struct bucket {
    int64_t missing_ns;
    int64_t starts_ms[LOG_MAX]; /* the newest, since the rate was set */
    unsigned count;
};

/* A queue, or a limit: keys, and all of them together (KEYS). */
struct rated {
    struct rate total, key;
    struct bucket buckets[KEYS + 1];
};

struct model {
    struct queues queues;
    struct job jobs[JOBS];
    struct rated rated[PLACES];
    int64_t now_ms;
    uint64_t random;
};

static uint32_t draw(struct model *model, uint32_t below)
{
    model->random = model->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(model->random >> 33) % below;
}

static struct slice name_of(unsigned place)
{
    return slice_of(place < QUEUES ? queue_names[place] : limit_names[place - QUEUES]);
}

static bool needs(const struct job *job, unsigned place)
{
    return place < QUEUES ? job->queue == place
                          : set_bits[job->set] >> (place - QUEUES) & 1;
}

static struct queue_seat seat_of(const struct job *job)
{
    return seat(queue_names[job->queue], key_names[job->key], set_texts[job->set]);
}

static struct rate rate_of(const struct rated *rated, unsigned key)
{
    return key == KEYS ? rated->total : rated->key;
}

static bool has_token(const struct rated *rated, unsigned key)
{
    struct rate rate = rate_of(rated, key);
    return !rate.starts ||
           rated->buckets[key].missing_ns + rate_interval(rate) <= rate_capacity(rate);
}

static bool may_start(const struct model *model, const struct job *job)
{
    bool may = job->waiting;
    for (unsigned i = 0; may && i < PLACES; i++)
        if (needs(job, i))
            may =
                has_token(&model->rated[i], job->key) && has_token(&model->rated[i], KEYS);
    return may;
}

static void check(struct model *model)
{
    queues_refill(&model->queues, model->now_ms);
    struct queue_item *next = queues_next(&model->queues, 0), *other;
    bool any = false, is_stale = queues_are_stale(&model->queues);
    for (int i = 0; i < JOBS; i++) {
        const struct job *job = &model->jobs[i];
        struct rate_figures dry;
        int64_t opens_ms;
        any |= may_start(model, job);
        if (job->waiting && !is_stale)
            assert_int_equal(
                queues_lacks_token(&model->queues, &job->item, &dry, &opens_ms),
                !may_start(model, job));
    }
    other = next;
    assert_true(next ? any : !any || is_stale);
    assert_true(!other || may_start(model, job_of(other)));
}

/* Notes a start, and checks the bound of the last period. */
static void note_start(struct model *model, struct rated *rated, unsigned key)
{
    struct rate rate = rate_of(rated, key);
    struct bucket *bucket = &rated->buckets[key];
    unsigned within = 1;
    if (!rate.starts)
        return;
    for (unsigned i = 1; i <= bucket->count && i <= LOG_MAX; i++)
        within += bucket->starts_ms[(bucket->count - i) % LOG_MAX] >
                  model->now_ms - (int64_t)rate.period_ms;
    assert_true(within <= 2 * rate.starts - 1);
    bucket->starts_ms[bucket->count++ % LOG_MAX] = model->now_ms;
    bucket->missing_ns += rate_interval(rate);
}

static void start_next(struct model *model)
{
    struct queue_item *item = queues_next(&model->queues, 0);
    if (!item)
        return;
    struct job *job = job_of(item);
    queues_run(&model->queues, item, seat_of(job));
    queues_take_tokens(&model->queues, item, model->now_ms);
    queues_leave(&model->queues, item);
    job->waiting = false;
    for (unsigned i = 0; i < PLACES; i++) {
        if (!needs(job, i))
            continue;
        note_start(model, &model->rated[i], job->key);
        note_start(model, &model->rated[i], KEYS);
    }
}

static void pass_time(struct model *model, int64_t ms)
{
    model->now_ms += ms;
    for (unsigned i = 0; i < PLACES; i++)
        for (unsigned key = 0; key <= KEYS; key++) {
            int64_t *missing = &model->rated[i].buckets[key].missing_ns;
            *missing -= *missing < ms * RATE_NS_PER_MS ? *missing : ms * RATE_NS_PER_MS;
        }
}

static struct rate draw_rate(struct model *model)
{
    if (draw(model, 3) == 0)
        return (struct rate){ 0 };
    return (struct rate){ 1 + draw(model, 7), 1000 + 1000 * draw(model, 5) };
}

static void configure(struct model *model, unsigned place)
{
    const struct queue_settings settings = { .total_rate = model->rated[place].total,
                                             .key_rate = model->rated[place].key };
    if (place < QUEUES)
        queues_configure(&model->queues, name_of(place), &settings);
    else
        limits_configure(&model->queues, name_of(place), &settings);
}

/* Missing tokens stay missing, but not more than the new bucket holds. */
static void change_rates(struct model *model)
{
    unsigned place = draw(model, PLACES);
    struct rated *rated = &model->rated[place];
    if (draw(model, 2))
        rated->total = draw_rate(model);
    else
        rated->key = draw_rate(model);
    for (unsigned key = 0; key <= KEYS; key++) {
        struct rate rate = rate_of(rated, key);
        struct bucket *bucket = &rated->buckets[key];
        int64_t capacity = rate.starts ? rate_capacity(rate) : 0;
        if (bucket->missing_ns > capacity)
            bucket->missing_ns = capacity;
        bucket->count = 0;
    }
    configure(model, place);
}

static void put_to_wait(struct model *model, struct job *job)
{
    job->queue = draw(model, QUEUES);
    job->key = draw(model, KEYS);
    job->set = draw(model, SETS);
    job->waiting = true;
    queues_wait(&model->queues, &job->item, seat_of(job), draw(model, 50));
}

/* Everything is made again, as after a kill. Time to the ms is lost, at most. */
static void restart(struct model *model)
{
    for (int i = 0; i < JOBS; i++)
        queues_leave(&model->queues, &model->jobs[i].item);
    queues_finish(&model->queues);
    queues_init(&model->queues, 1000, job_id);
    model->queues.visits_max = 1 + draw(model, KEYS);
    for (unsigned i = 0; i < PLACES; i++) {
        configure(model, i);
        for (unsigned key = 0; key <= KEYS; key++) {
            int64_t *missing = &model->rated[i].buckets[key].missing_ns;
            int64_t left = (*missing + RATE_NS_PER_MS - 1) / RATE_NS_PER_MS;
            struct rate rate = rate_of(&model->rated[i], key);
            int64_t most = rate.starts ? rate_capacity(rate) : 0;
            queues_restore_bucket(&model->queues,
                                  (struct rate_place){ i >= QUEUES, name_of(i),
                                                       key < KEYS ? slice_of(key_names[key])
                                                                  : (struct slice){ 0 } },
                                  left, model->now_ms);
            *missing = left * RATE_NS_PER_MS < most ? left * RATE_NS_PER_MS : most;
        }
    }
    for (int i = 0; i < JOBS; i++)
        if (model->jobs[i].waiting)
            queues_wait(&model->queues, &model->jobs[i].item, seat_of(&model->jobs[i]), i);
}

static void step(struct model *model)
{
    uint32_t drawn = draw(model, 100);
    if (drawn < 40)
        put_to_wait(model, &model->jobs[draw(model, JOBS)]);
    else if (drawn < 85)
        start_next(model);
    else if (drawn < 86)
        restart(model);
    else if (queues_are_stale(&model->queues))
        queues_refresh_stale(&model->queues); /* a bucket forgets a time when visited */
    else if (drawn < 98)
        pass_time(model, draw(model, 400));
    else
        change_rates(model);
}

static void random_steps_start_what_the_buckets_allow_and_no_more(void **state)
{
    (void)state;
    struct model *model = calloc(1, sizeof(*model));
    assert_non_null(model);
    assert_int_equal(getrandom(&model->random, sizeof(model->random), 0),
                     sizeof(model->random));
    const char *seed = getenv("SEED");
    if (seed)
        model->random = strtoull(seed, NULL, 10);
    print_message("SEED=%llu\n", (unsigned long long)model->random);
    queues_init(&model->queues, 1000, job_id);
    for (int i = 0; i < JOBS; i++)
        snprintf(model->jobs[i].id, sizeof(model->jobs[i].id), "%02d", i);
    for (int i = 0; i < STEPS; i++) {
        step(model);
        check(model);
    }
    for (int i = 0; i < JOBS; i++)
        queues_leave(&model->queues, &model->jobs[i].item);
    queues_finish(&model->queues);
    free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_queue_starts_its_burst_and_then_one_per_interval),
        cmocka_unit_test(a_key_has_a_bucket_of_its_own),
        cmocka_unit_test(many_buckets_are_refilled_in_parts),
        cmocka_unit_test(a_rate_of_many_keys_is_taken_away_in_parts),
        cmocka_unit_test(a_gate_has_the_rates_of_its_queue),
        cmocka_unit_test(no_slot_is_kept_for_an_item_without_a_token),
        cmocka_unit_test(an_item_that_resumes_needs_no_token),
        cmocka_unit_test(a_token_that_was_not_used_comes_back),
        cmocka_unit_test(a_rate_that_is_taken_away_holds_nothing),
        cmocka_unit_test(a_restored_bucket_waits_no_longer_than_an_empty_one),
        cmocka_unit_test(too_many_keys_wait_until_some_buckets_are_full),
        cmocka_unit_test(random_steps_start_what_the_buckets_allow_and_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
