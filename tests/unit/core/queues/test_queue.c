/* The oldest run that has a free slot is next; queues and keys take turns. */
#include "tests/support/world/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "core/queues/queue.h"
#include "tests/support/world/seat.h"

struct job {
    struct queue_item item;
    char id[16];
    /* The model's view of it. */
    bool waiting, running;
    unsigned queue, key;
    int64_t position;
};

static struct job *job_of(const struct queue_item *item)
{
    return (struct job *)(void *)item; /* its first member */
}

static struct slice job_id(const struct queue_item *item)
{
    return slice_of(job_of(item)->id);
}

static const char *next_id(struct queues *queues)
{
    struct queue_item *item = queues_next(queues, 0);
    return item ? job_of(item)->id : "none";
}

static const char *resumed_id(const struct queues *queues)
{
    struct queue_item *item = queues_next(queues, AUDIENCE_RESUMED);
    return item ? job_of(item)->id : "none";
}

static void wait_in(struct queues *queues, struct job *job, const char *queue, int64_t at)
{
    queues_wait(queues, &job->item, SEAT(slice_of(queue), (struct slice){ 0 }), at);
}

static void start(struct queues *queues, struct job *job, const char *queue)
{
    queues_run(queues, &job->item, SEAT(slice_of(queue), (struct slice){ 0 }));
}

static void set_paused(struct queues *queues, const char *queue, bool paused)
{
    struct queue_settings settings = queues_figures(queues, slice_of(queue)).settings;
    settings.paused = paused;
    queues_configure(queues, slice_of(queue), &settings);
}

static void oldest_item_is_next_and_ids_break_ties(void **state)
{
    (void)state;
    struct job jobs[] = { { .id = "d" }, { .id = "c" }, { .id = "b" }, { .id = "a" } };
    struct queues queues;
    queues_init(&queues, 10, job_id);
    assert_string_equal(next_id(&queues), "none");
    wait_in(&queues, &jobs[0], "task/x", 20);
    wait_in(&queues, &jobs[1], "task/x", 20);
    wait_in(&queues, &jobs[2], "task/y", 20);
    wait_in(&queues, &jobs[3], "task/y", 30);

    static const char *const order[] = { "b", "c", "d", "a", "none" };
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        assert_string_equal(next_id(&queues), order[i]);
        if (queues_next(&queues, 0))
            queues_leave(&queues, queues_next(&queues, 0));
    }
    queues_finish(&queues);
}

static void full_queue_does_not_block_younger_runs_of_other_queues(void **state)
{
    (void)state;
    struct job a = { .id = "a" }, b = { .id = "b" }, c = { .id = "c" };
    struct queues queues;
    queues_init(&queues, 10, job_id);
    queues_set_limit(&queues, SLICE("one"), 1);
    wait_in(&queues, &a, "one", 1);
    wait_in(&queues, &b, "one", 2);
    wait_in(&queues, &c, "two", 3);

    start(&queues, &a, "one");
    assert_string_equal(next_id(&queues), "c");
    queues_leave(&queues, &a.item);
    assert_string_equal(next_id(&queues), "c"); /* its queue has not had its turn */
    start(&queues, &c, "two");
    assert_string_equal(next_id(&queues), "b");
    queues_set_limit(&queues, SLICE("one"), 0);
    assert_string_equal(next_id(&queues), "none");
    queues_set_limit(&queues, SLICE("one"), UINT32_MAX);
    assert_string_equal(next_id(&queues), "b");

    queues_leave(&queues, &b.item);
    queues_leave(&queues, &c.item);
    queues_finish(&queues);
}

static void limit_applies_to_each_concurrency_key(void **state)
{
    (void)state;
    struct job a = { .id = "a" }, b = { .id = "b" }, c = { .id = "c" };
    struct queues queues;
    queues_init(&queues, 10, job_id);
    queues_set_limit(&queues, SLICE("q"), 1);
    queues_wait(&queues, &a.item, SEAT(SLICE("q"), SLICE("ann")), 1);
    queues_wait(&queues, &b.item, SEAT(SLICE("q"), SLICE("ann")), 2);
    queues_wait(&queues, &c.item, SEAT(SLICE("q"), SLICE("bob")), 3);

    queues_run(&queues, &a.item, SEAT(SLICE("q"), SLICE("ann")));
    assert_string_equal(next_id(&queues), "c");
    queues_run(&queues, &c.item, SEAT(SLICE("q"), SLICE("bob")));
    assert_string_equal(next_id(&queues), "none");
    assert_int_equal(queues_figures(&queues, SLICE("q")).running, 2);
    assert_int_equal(queues_figures(&queues, SLICE("q")).waiting, 1);

    queues_leave(&queues, &a.item);
    assert_string_equal(next_id(&queues), "b");
    queues_leave(&queues, &b.item);
    queues_leave(&queues, &c.item);
    queues_finish(&queues);
}

static void total_applies_to_all_concurrency_keys_together(void **state)
{
    (void)state;
    struct job a = { .id = "a" }, b = { .id = "b" }, c = { .id = "c" };
    struct queues queues;
    queues_init(&queues, 10, job_id);
    queues_set_total(&queues, SLICE("q"), 1); /* no version has registered it */
    assert_int_equal(queues_figures(&queues, SLICE("q")).total, UINT32_MAX);
    queues_set_limit(&queues, SLICE("q"), 5);
    queues_set_total(&queues, SLICE("q"), 1);
    queues_wait(&queues, &a.item, SEAT(SLICE("q"), SLICE("ann")), 1);
    queues_wait(&queues, &b.item, SEAT(SLICE("q"), SLICE("bob")), 2);
    queues_wait_again(&queues, &c.item, SEAT(SLICE("q"), SLICE("bob")), 3);
    queues_run(&queues, &a.item, SEAT(SLICE("q"), SLICE("ann")));
    assert_string_equal(next_id(&queues), "none");
    assert_string_equal(resumed_id(&queues), "none");
    assert_false(queues_has_slot(&queues, SEAT(SLICE("q"), SLICE("bob"))));
    struct queue_standing standing = queues_standing(&queues, &b.item, 10);
    assert_int_equal(standing.total, 1);
    assert_int_equal(standing.total_running, 1);
    assert_int_equal(standing.running, 0);
    queues_leave(&queues, &a.item);
    assert_string_equal(next_id(&queues), "b");
    assert_string_equal(resumed_id(&queues), "c");
    queues_leave(&queues, &b.item);
    queues_leave(&queues, &c.item);
    queues_forget_limit(&queues, SLICE("q"));
    assert_int_equal(queues_figures(&queues, SLICE("q")).total, UINT32_MAX);
    queues_finish(&queues);
}

static void environment_limit_applies_to_all_queues_together(void **state)
{
    (void)state;
    struct job a = { .id = "a" }, b = { .id = "b" };
    struct queues queues;
    queues_init(&queues, 1, job_id);
    start(&queues, &a, "one");
    wait_in(&queues, &b, "two", 1);
    assert_string_equal(next_id(&queues), "none");
    queues.limit = 2;
    assert_string_equal(next_id(&queues), "b");
    queues.limit = 0;
    assert_string_equal(next_id(&queues), "none");
    queues_leave(&queues, &a.item);
    queues_leave(&queues, &b.item);
    queues_finish(&queues);
}

static void paused_queue_keeps_its_waiting_and_running_items(void **state)
{
    (void)state;
    struct job a = { .id = "a" }, b = { .id = "b" };
    struct queues queues;
    queues_init(&queues, 10, job_id);
    start(&queues, &a, "q");
    wait_in(&queues, &b, "q", 1);
    set_paused(&queues, "q", true);
    assert_string_equal(next_id(&queues), "none");
    struct queue_figures figures = queues_figures(&queues, SLICE("q"));
    assert_true(figures.settings.paused);
    assert_int_equal(figures.running, 1);
    assert_int_equal(figures.waiting, 1);
    set_paused(&queues, "q", false);
    assert_string_equal(next_id(&queues), "b");
    queues_leave(&queues, &a.item);
    queues_leave(&queues, &b.item);
    queues_finish(&queues);
}

static void resumed_item_needs_a_slot_even_in_a_paused_queue(void **state)
{
    (void)state;
    struct job a = { .id = "a" }, b = { .id = "b" }, c = { .id = "c" };
    struct queues queues;
    queues_init(&queues, 10, job_id);
    queues_set_limit(&queues, SLICE("q"), 1);
    start(&queues, &a, "q");
    wait_in(&queues, &b, "q", 1);
    queues_wait_again(&queues, &c.item, SEAT(SLICE("q"), (struct slice){ 0 }), 2);
    assert_string_equal(resumed_id(&queues), "none");
    assert_false(queues_has_slot(&queues, SEAT(SLICE("q"), (struct slice){ 0 })));
    assert_int_equal(queues.waiting, 1); /* only those that have not started */
    assert_int_equal(queues_figures(&queues, SLICE("q")).waiting, 1);
    assert_ptr_equal(queues_oldest(&queues), &b.item);

    set_paused(&queues, "q", true);
    queues_leave(&queues, &a.item);
    assert_true(queues_has_slot(&queues, SEAT(SLICE("q"), (struct slice){ 0 })));
    assert_string_equal(next_id(&queues), "none");
    assert_string_equal(resumed_id(&queues), "c");
    queues.limit = 0;
    assert_false(queues_has_slot(&queues, SEAT(SLICE("q"), (struct slice){ 0 })));
    assert_string_equal(resumed_id(&queues), "none");
    queues.limit = 1;
    start(&queues, &c, "q");
    assert_int_equal(queues_waiting_for(&queues, AUDIENCE_RESUMED), 0);
    queues_leave(&queues, &b.item);
    queues_leave(&queues, &c.item);
    queues_finish(&queues);
}

static void queue_is_known_while_it_is_registered_or_in_use(void **state)
{
    (void)state;
    struct job a = { .id = "a" };
    struct queues queues;
    queues_init(&queues, 10, job_id);
    assert_false(queues_figures(&queues, SLICE("q")).known);
    assert_int_equal(queues_figures(&queues, SLICE("q")).limit, UINT32_MAX);
    wait_in(&queues, &a, "q", 1);
    assert_true(queues_figures(&queues, SLICE("q")).known);
    queues_leave(&queues, &a.item);
    assert_false(queues_figures(&queues, SLICE("q")).known);

    queues_set_limit(&queues, SLICE("q"), 3);
    wait_in(&queues, &a, "q", 1);
    queues_leave(&queues, &a.item);
    assert_true(queues_figures(&queues, SLICE("q")).known);
    assert_int_equal(queues_figures(&queues, SLICE("q")).limit, 3);
    queues_finish(&queues);
}

static void configured_queue_stays_until_its_settings_are_removed(void **state)
{
    (void)state;
    const struct queue_settings none = { .version = 3 },
                                set = { .overridden = true, .override = 2, .version = 2 };
    struct job a = { .id = "a" };
    struct queues queues;
    queues_init(&queues, 10, job_id);
    wait_in(&queues, &a, "q", 1);
    queues_configure(&queues, SLICE("q"), &set);
    queues_leave(&queues, &a.item);
    assert_int_equal(queues_figures(&queues, SLICE("q")).limit, 2);
    assert_int_equal(queues_figures(&queues, SLICE("q")).base, UINT32_MAX);
    assert_int_equal(queues_figures(&queues, SLICE("q")).settings.version, 2);
    assert_int_equal(queues.own.configured.used, 1);
    queues_configure(&queues, SLICE("q"), &none);
    assert_false(queues_figures(&queues, SLICE("q")).known);
    assert_int_equal(queues.own.configured.used, 0);
    queues_finish(&queues);
}

static void configured_queues_count_in_the_quota_of_their_project(void **state)
{
    (void)state;
    const struct queue_settings none = { 0 }, paused = { .paused = true };
    struct quota project = { .limit = 3 };
    struct queues queues[2];
    for (size_t i = 0; i < 2; i++) {
        queues_init(&queues[i], 10, job_id);
        queues[i].own.configured.outer = &project;
        queues_configure(&queues[i], SLICE("a"), &paused);
    }
    queues_configure(&queues[0], SLICE("b"), &paused);
    queues_configure(&queues[0], SLICE("b"), &paused);
    assert_int_equal(project.used, 3);
    assert_false(quota_has(&queues[1].own.configured, 1));
    queues_configure(&queues[0], SLICE("a"), &none);
    assert_int_equal(project.used, 2);
    assert_true(quota_has(&queues[1].own.configured, 1));
    queues_finish(&queues[0]);
    assert_int_equal(project.used, 1);
    queues_finish(&queues[1]);
    assert_int_equal(project.used, 0);
}

static void queues_are_listed_in_order_of_their_names(void **state)
{
    (void)state;
    static const char *const names[] = { "task/b", "mails", "task/a" }, *const order[] = {
        "mails", "task/a", "task/b"
    };
    struct queues queues;
    queues_init(&queues, 10, job_id);
    for (size_t i = 0; i < 3; i++)
        queues_set_limit(&queues, slice_of(names[i]), 1);
    assert_int_equal(queues_count(&queues), 3);
    for (size_t i = 0; i < 3; i++)
        assert_true(slice_is(queues_name_at(&queues, i), order[i]));
    assert_null(queues_name_at(&queues, 3).ptr);
    queues_finish(&queues);
}

static void item_may_leave_twice(void **state)
{
    (void)state;
    struct job a = { .id = "a" };
    struct queues queues;
    queues_init(&queues, 10, job_id);
    queues_leave(&queues, &a.item);
    start(&queues, &a, "q");
    start(&queues, &a, "q");
    assert_int_equal(queues.running, 1);
    queues_leave(&queues, &a.item);
    queues_leave(&queues, &a.item);
    assert_int_equal(queues.running, 0);
    queues_finish(&queues);
}

/* ---- a model: everything looked up again each time ---- */

enum { JOBS = 60, QUEUES = 5, KEYS = 3, STEPS = 100000 };

static const char *const queue_names[QUEUES] = { "task/a", "task/b", "mails", "", "x" };
static const char *const key_names[KEYS] = { NULL, "ann", "bob" };

/* For a queue or subqueue: whether it offers an item, and its place among those that do. */
struct turn {
    bool ready;
    uint64_t round;
};

struct model {
    struct queues queues;
    struct job jobs[JOBS];
    uint32_t limit, limits[QUEUES], totals[QUEUES], overrides[QUEUES];
    struct turn subqueues[QUEUES][KEYS], queue_turns[QUEUES];
    uint64_t lane_rounds[QUEUES], queue_round; /* rounds of those served last */
    bool paused[QUEUES], overridden[QUEUES];
    unsigned set_up[QUEUES]; /* how often */
    uint64_t random;
};

static unsigned draw(struct model *model, unsigned below)
{
    model->random ^= model->random << 13;
    model->random ^= model->random >> 7;
    model->random ^= model->random << 17;
    return (unsigned)((model->random >> 11) % below);
}

static uint32_t count(const struct model *model, int queue, int key, bool running)
{
    uint32_t sum = 0;
    for (int i = 0; i < JOBS; i++) {
        const struct job *job = &model->jobs[i];
        bool counts = running ? job->running : job->waiting;
        sum += counts && (queue < 0 || (int)job->queue == queue) &&
               (key < 0 || (int)job->key == key);
    }
    return sum;
}

static uint32_t limit_of(const struct model *model, unsigned queue)
{
    return model->overridden[queue] ? model->overrides[queue] : model->limits[queue];
}

static void update(struct turn *turn, bool ready, uint64_t round)
{
    if (ready && !turn->ready)
        turn->round = round + 1;
    turn->ready = ready;
}

static void settle(struct model *model)
{
    for (unsigned q = 0; q < QUEUES; q++) {
        bool any = false;
        for (unsigned k = 0; k < KEYS; k++) {
            uint32_t running = count(model, (int)q, (int)k, true);
            bool is_free = !running || running < limit_of(model, q);
            update(&model->subqueues[q][k], is_free && count(model, (int)q, (int)k, false),
                   model->lane_rounds[q]);
            any |= model->subqueues[q][k].ready;
        }
        bool is_open = !model->paused[q] && limit_of(model, q) > 0 &&
                       count(model, (int)q, -1, true) < model->totals[q];
        update(&model->queue_turns[q], any && is_open, model->queue_round);
    }
}

static void serve(struct turn *turn, uint64_t *round)
{
    if (!turn->ready)
        return;
    *round = *round < turn->round ? turn->round : *round;
    turn->round = *round + 1;
}

/* ids rise with i: the first of equals is next */
static bool is_before(const struct job *a, uint64_t a_round, const struct job *b,
                      uint64_t b_round)
{
    if (!a || !b)
        return a != NULL;
    if (a_round != b_round)
        return a_round < b_round;
    return a->position != b->position ? a->position < b->position : a < b;
}

static struct job *head_of_lane(struct model *model, unsigned queue, unsigned key)
{
    struct job *head = NULL;
    for (int i = 0; i < JOBS; i++) {
        struct job *job = &model->jobs[i];
        if (job->waiting && job->queue == queue && job->key == key &&
            is_before(job, 0, head, 0))
            head = job;
    }
    return head;
}

static struct job *head_of_queue(struct model *model, unsigned queue)
{
    struct job *head = NULL;
    uint64_t round = 0;
    for (unsigned k = 0; k < KEYS; k++) {
        const struct turn *turn = &model->subqueues[queue][k];
        struct job *job = turn->ready ? head_of_lane(model, queue, k) : NULL;
        if (!is_before(job, turn->round, head, round))
            continue;
        head = job;
        round = turn->round;
    }
    return head;
}

static struct job *expected_next(struct model *model)
{
    struct job *next = NULL;
    uint64_t round = 0;
    if (count(model, -1, -1, true) >= model->limit)
        return NULL;
    for (unsigned q = 0; q < QUEUES; q++) {
        const struct turn *turn = &model->queue_turns[q];
        struct job *job = turn->ready ? head_of_queue(model, q) : NULL;
        if (!is_before(job, turn->round, next, round))
            continue;
        next = job;
        round = turn->round;
    }
    return next;
}

static void detach(struct model *model, struct job *job)
{
    job->waiting = job->running = false;
    settle(model);
}

/* An item that waits in that place already stays the head that it is. */
static void put_to_wait(struct model *model, struct job *job)
{
    struct job was = *job;
    unsigned queue = draw(model, QUEUES), key = draw(model, KEYS);
    int64_t position = (int64_t)draw(model, 50) - 10;
    if (!was.waiting || was.queue != queue || was.key != key || was.position != position)
        detach(model, job);
    job->queue = queue;
    job->key = key;
    job->position = position;
    job->waiting = true;
    settle(model);
    queues_wait(&model->queues, &job->item,
                SEAT(slice_of(queue_names[queue]), slice_of(key_names[key])), position);
}

/* An item that runs stays where it is. */
static void put_to_run(struct model *model, struct job *job)
{
    if (!job->waiting && !job->running) {
        job->queue = draw(model, QUEUES);
        job->key = draw(model, KEYS);
    }
    if (job->waiting) {
        serve(&model->subqueues[job->queue][job->key], &model->lane_rounds[job->queue]);
        serve(&model->queue_turns[job->queue], &model->queue_round);
    }
    if (!job->running)
        detach(model, job);
    job->running = true;
    settle(model);
    queues_run(&model->queues, &job->item,
               SEAT(slice_of(queue_names[job->queue]), slice_of(key_names[job->key])));
}

static void override(struct model *model, unsigned queue)
{
    struct slice name = slice_of(queue_names[queue]);
    struct queue_settings settings = queues_figures(&model->queues, name).settings;
    model->overridden[queue] = settings.overridden = draw(model, 2);
    model->overrides[queue] = settings.override = draw(model, 4);
    queues_configure(&model->queues, name, &settings);
}

static void change_settings(struct model *model)
{
    unsigned queue = draw(model, QUEUES - 1); /* the last one has none */
    if (draw(model, 4) == 0) {
        model->queues.limit = model->limit = draw(model, 20);
        return;
    }
    if (draw(model, 3) == 0) {
        override(model, queue);
    } else if (model->set_up[queue] && draw(model, 3) == 0) {
        if (!--model->set_up[queue])
            model->limits[queue] = model->totals[queue] = UINT32_MAX;
        queues_forget_limit(&model->queues, slice_of(queue_names[queue]));
    } else if (draw(model, 2)) {
        model->set_up[queue]++;
        model->limits[queue] = draw(model, 3) ? draw(model, 4) : UINT32_MAX;
        model->totals[queue] = draw(model, 2) ? draw(model, 6) : UINT32_MAX;
        queues_set_limit(&model->queues, slice_of(queue_names[queue]),
                         model->limits[queue]);
        queues_set_total(&model->queues, slice_of(queue_names[queue]),
                         model->totals[queue]);
    } else {
        model->paused[queue] = draw(model, 2);
        set_paused(&model->queues, queue_names[queue], model->paused[queue]);
    }
}

static void step(struct model *model)
{
    struct job *job = &model->jobs[draw(model, JOBS)];
    struct job *next = expected_next(model);
    switch (draw(model, 12)) {
    case 0:
    case 1:
    case 2: put_to_wait(model, job); break;
    case 3: put_to_run(model, job); break;
    case 4:
        if (draw(model, 8) == 0)
            change_settings(model);
        settle(model);
        break;
    case 5:
    case 6:
    case 7:
        if (next)
            put_to_run(model, next);
        break;
    default: detach(model, job); queues_leave(&model->queues, &job->item);
    }
}

static void compare(struct model *model)
{
    struct job *next = expected_next(model);
    assert_string_equal(next_id(&model->queues), next ? next->id : "none");
    assert_int_equal(model->queues.running, count(model, -1, -1, true));
    assert_int_equal(model->queues.waiting, count(model, -1, -1, false));
    for (int i = 0; i < QUEUES; i++) {
        struct queue_figures figures =
            queues_figures(&model->queues, slice_of(queue_names[i]));
        assert_int_equal(figures.running, count(model, i, -1, true));
        assert_int_equal(figures.waiting, count(model, i, -1, false));
        assert_int_equal(figures.limit, limit_of(model, i));
        assert_int_equal(figures.base, model->limits[i]);
        assert_int_equal(figures.total, model->totals[i]);
        assert_int_equal(figures.settings.paused, model->paused[i]);
        assert_int_equal(figures.known, model->set_up[i] || model->paused[i] ||
                                            model->overridden[i] || figures.running ||
                                            figures.waiting);
    }
}

static uint64_t choose_seed(void)
{
    const char *given = getenv("SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : 0;
    while (seed == 0)
        if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
            seed = 0;
    print_message("SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

static void random_steps_agree_with_the_model(void **state)
{
    (void)state;
    static struct model model;
    model = (struct model){ .limit = 10, .random = choose_seed() };
    queues_init(&model.queues, model.limit, job_id);
    model.queues.passes_max = UINT32_MAX; /* test_reserve.c has the order with kept slots */
    for (int i = 0; i < QUEUES; i++)
        model.limits[i] = model.totals[i] = UINT32_MAX;
    for (int i = 0; i < JOBS; i++)
        snprintf(model.jobs[i].id, sizeof(model.jobs[i].id), "run_%02d", i);

    for (int i = 0; i < STEPS; i++) {
        step(&model);
        compare(&model);
    }

    for (int i = 0; i < JOBS; i++) {
        detach(&model, &model.jobs[i]);
        queues_leave(&model.queues, &model.jobs[i].item);
    }
    compare(&model);
    assert_string_equal(next_id(&model.queues), "none");
    queues_finish(&model.queues); /* asserts that no subqueue is left */
}

/* Whatever its position is, and even if it is paused or for another audience. */
static void item_that_has_waited_longest_is_found(void **state)
{
    (void)state;
    struct job jobs[] = { { .id = "a" }, { .id = "b" }, { .id = "c" } };
    struct queues queues;
    queues_init(&queues, 10, job_id);
    assert_null(queues_oldest(&queues));
    set_paused(&queues, "x", true);
    wait_in(&queues, &jobs[0], "x", 30);
    wait_in(&queues, &jobs[1], "y", 20);
    wait_in(&queues, &jobs[2], "y", 10);
    jobs[0].item.audience = 1;
    wait_in(&queues, &jobs[0], "x", 40); /* is moved, but still came first */
    assert_ptr_equal(queues_oldest(&queues), &jobs[0].item);
    assert_ptr_equal(queues_oldest_of(&queues, SLICE("y"), 10), &jobs[1].item);
    assert_ptr_equal(queues_oldest_of(&queues, SLICE("x"), 0), &jobs[0].item);
    /* It is after the items that may be looked at. */
    assert_null(queues_oldest_of(&queues, SLICE("y"), 0));
    assert_null(queues_oldest_of(&queues, SLICE("z"), 10));
    start(&queues, &jobs[0], "x");
    assert_null(queues_oldest_of(&queues, SLICE("x"), 10));
    assert_ptr_equal(queues_oldest(&queues), &jobs[1].item);
    wait_in(&queues, &jobs[0], "x", 0); /* again, after the others */
    queues_leave(&queues, &jobs[1].item);
    assert_ptr_equal(queues_oldest(&queues), &jobs[2].item);
    queues_leave(&queues, &jobs[2].item);
    assert_ptr_equal(queues_oldest(&queues), &jobs[0].item);
    queues_leave(&queues, &jobs[0].item);
    assert_null(queues_oldest(&queues));
    queues_finish(&queues);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(oldest_item_is_next_and_ids_break_ties),
        cmocka_unit_test(full_queue_does_not_block_younger_runs_of_other_queues),
        cmocka_unit_test(limit_applies_to_each_concurrency_key),
        cmocka_unit_test(total_applies_to_all_concurrency_keys_together),
        cmocka_unit_test(environment_limit_applies_to_all_queues_together),
        cmocka_unit_test(paused_queue_keeps_its_waiting_and_running_items),
        cmocka_unit_test(resumed_item_needs_a_slot_even_in_a_paused_queue),
        cmocka_unit_test(queue_is_known_while_it_is_registered_or_in_use),
        cmocka_unit_test(configured_queue_stays_until_its_settings_are_removed),
        cmocka_unit_test(configured_queues_count_in_the_quota_of_their_project),
        cmocka_unit_test(queues_are_listed_in_order_of_their_names),
        cmocka_unit_test(item_that_has_waited_longest_is_found),
        cmocka_unit_test(item_may_leave_twice),
        cmocka_unit_test(random_steps_agree_with_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
