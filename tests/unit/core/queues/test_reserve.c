/* Slots that are kept for an item which others pass over: when, for how long, and that none
 * waits for ever. */
#include "tests/support/world/unit.h"

#include <stdio.h>

#include "core/queues/queue.h"

struct job {
    struct queue_item item;
    char id[16];
    const char *queue, *limits;
};

static struct slice job_id(const struct queue_item *item)
{
    return slice_of(((const struct job *)(const void *)item)->id);
}

static struct queue_seat seat_of(const struct job *job)
{
    return (struct queue_seat){ .queue = slice_of(job->queue),
                                .limits = job->limits ? slice_of(job->limits) : SLICE("") };
}

enum { STREAM = 3, ROUNDS_MAX = 2 * RESERVE_PASSES + 10 };

/* Jobs that need the same, so that one always runs and another one always waits. */
struct stream {
    struct job jobs[STREAM];
    unsigned ended; /* jobs take turns */
};

struct crowd {
    struct queues queues;
    struct stream a, b; /* of jobs that need one limit */
    struct job pair;    /* needs both */
    int64_t newest;
};

static void wait(struct crowd *crowd, struct job *job)
{
    queues_wait(&crowd->queues, &job->item, seat_of(job), ++crowd->newest);
}

static void declare(struct queues *queues, const char *limit, uint32_t total)
{
    limits_register(queues, slice_of(limit));
    limits_change(queues, slice_of(limit), UINT32_MAX, total);
}

static void take_all(struct crowd *crowd)
{
    for (struct queue_item *item; (item = queues_next(&crowd->queues, 0));)
        queues_run(&crowd->queues, item, seat_of((struct job *)(void *)item));
}

/* Ends the job of the stream that runs. Then the next one runs, if it may. */
static void end_next(struct crowd *crowd, struct stream *stream)
{
    for (int i = 0; i < STREAM; i++) {
        struct job *job = &stream->jobs[stream->ended++ % STREAM];
        if (!job->item.running)
            continue;
        wait(crowd, job);
        break;
    }
    take_all(crowd);
}

static void begin_stream(struct crowd *crowd, struct stream *stream, const char *queue,
                         const char *limits)
{
    for (int i = 0; i < STREAM; i++) {
        struct job *job = &stream->jobs[i];
        *job = (struct job){ .queue = queue, .limits = limits };
        snprintf(job->id, sizeof(job->id), "%s-%d", queue, i);
        wait(crowd, job);
    }
    take_all(crowd);
}

static void begin(struct crowd *crowd)
{
    *crowd = (struct crowd){
        .pair = { .id = "pair", .queue = "pair", .limits = "[\"a\",\"b\"]" }
    };
    queues_init(&crowd->queues, 100, job_id);
    declare(&crowd->queues, "a", 1);
    declare(&crowd->queues, "b", 1);
    begin_stream(crowd, &crowd->a, "of a", "[\"a\"]");
    begin_stream(crowd, &crowd->b, "of b", "[\"b\"]");
    queues_wait(&crowd->queues, &crowd->pair.item, seat_of(&crowd->pair), 0);
}

/* Lets the streams pass over the pair until slots are kept for it. Each time that one of
 * them has a free slot, the other one has none. */
static void pass_over(struct crowd *crowd)
{
    for (int i = 0; i < ROUNDS_MAX && !queues_keeps_for(&crowd->pair.item); i++) {
        end_next(crowd, &crowd->a);
        end_next(crowd, &crowd->b);
    }
    assert_true(queues_keeps_for(&crowd->pair.item));
}

static void leave_all(struct crowd *crowd)
{
    queues_leave(&crowd->queues, &crowd->pair.item);
    for (int i = 0; i < STREAM; i++) {
        queues_leave(&crowd->queues, &crowd->a.jobs[i].item);
        queues_leave(&crowd->queues, &crowd->b.jobs[i].item);
    }
    assert_true(list_empty(&crowd->queues.keepers));
    limits_forget(&crowd->queues, SLICE("a"));
    limits_forget(&crowd->queues, SLICE("b"));
    queues_finish(&crowd->queues);
}

static struct queue_figures figures(const struct crowd *crowd, const char *limit)
{
    return limits_figures(&crowd->queues, slice_of(limit));
}

static void an_item_of_two_limits_starts_among_streams_of_one(void **state)
{
    (void)state;
    struct crowd crowd;
    begin(&crowd);
    unsigned passes = 0;
    for (; !crowd.pair.item.running && passes < ROUNDS_MAX; passes++)
        end_next(&crowd, passes % 2 ? &crowd.b : &crowd.a);
    assert_true(crowd.pair.item.running);
    /* 64 times passed over by either, then each that ran has ended once. */
    assert_int_equal(passes, RESERVE_PASSES + 2);
    assert_int_equal(figures(&crowd, "a").running, 1);
    assert_int_equal(figures(&crowd, "a").reserved, 0);
    leave_all(&crowd);
}

static void a_kept_slot_is_reserved_and_not_held(void **state)
{
    (void)state;
    struct crowd crowd;
    begin(&crowd);
    pass_over(&crowd);
    assert_int_equal(figures(&crowd, "a").reserved, 0); /* none is free yet */
    end_next(&crowd, &crowd.a);
    assert_int_equal(figures(&crowd, "a").running, 0);
    assert_int_equal(figures(&crowd, "a").reserved, 1);
    assert_int_equal(figures(&crowd, "b").reserved, 0);

    struct limit_standing standing =
        queues_standing(&crowd.queues, &crowd.a.jobs[0].item, 0).of_limit;
    assert_true(slice_is(standing.name, "a"));
    assert_int_equal(standing.limit, 1);
    assert_int_equal(standing.running, 0);
    assert_int_equal(standing.reserved, 1);
    assert_true(
        slice_is(queues_standing(&crowd.queues, &crowd.pair.item, 0).of_limit.name, "b"));
    assert_false(queues_has_slot(&crowd.queues, seat_of(&crowd.a.jobs[0])));
    leave_all(&crowd);
}

static void an_item_that_leaves_keeps_nothing(void **state)
{
    (void)state;
    struct crowd crowd;
    begin(&crowd);
    pass_over(&crowd);
    end_next(&crowd, &crowd.a);
    assert_null(queues_next(&crowd.queues, 0));
    queues_leave(&crowd.queues, &crowd.pair.item);
    assert_non_null(queues_next(&crowd.queues, 0));
    leave_all(&crowd);
}

static void an_item_that_is_put_where_it_waits_keeps_its_slots(void **state)
{
    (void)state;
    struct crowd crowd;
    begin(&crowd);
    pass_over(&crowd);
    queues_wait(&crowd.queues, &crowd.pair.item, seat_of(&crowd.pair),
                crowd.pair.item.position);
    assert_true(queues_keeps_for(&crowd.pair.item));
    leave_all(&crowd);
}

/* Sets what a limit allows while slots are kept, and takes that back. */
static void check_setting(const struct queue_settings *settings)
{
    struct crowd crowd;
    begin(&crowd);
    pass_over(&crowd);
    end_next(&crowd, &crowd.a);
    assert_int_equal(figures(&crowd, "a").reserved, 1);
    limits_configure(&crowd.queues, SLICE("b"), settings);
    assert_false(queues_keeps_for(&crowd.pair.item));
    assert_int_equal(figures(&crowd, "a").reserved, 0);
    take_all(&crowd);
    assert_int_equal(figures(&crowd, "a").running, 1);

    limits_configure(&crowd.queues, SLICE("b"), &(struct queue_settings){ 0 });
    end_next(&crowd, &crowd.a); /* it was passed over often enough */
    assert_true(queues_keeps_for(&crowd.pair.item));
    leave_all(&crowd);
}

static void nothing_is_kept_while_a_limit_is_paused_or_0(void **state)
{
    (void)state;
    check_setting(&(struct queue_settings){ .paused = true });
    check_setting(&(struct queue_settings){ .overridden = true });
    check_setting(&(struct queue_settings){ .total_overridden = true });
}

static void an_override_of_its_key_with_0_keeps_nothing(void **state)
{
    (void)state;
    struct crowd crowd;
    struct limit_override override = { SLICE(""), 0, 100 };
    begin(&crowd);
    pass_over(&crowd);
    limits_override_key(&crowd.queues, SLICE("b"), &override);
    assert_false(queues_keeps_for(&crowd.pair.item));
    limits_end_overrides(&crowd.queues, 100);
    leave_all(&crowd);
}

static void of_two_that_need_the_same_the_older_one_keeps_slots(void **state)
{
    (void)state;
    struct crowd crowd;
    struct job older = { .id = "older", .queue = "older", .limits = "[\"b\",\"a\"]" };
    begin(&crowd);
    pass_over(&crowd);
    queues_wait(&crowd.queues, &older.item, seat_of(&older), -1);
    crowd.queues.passes_max = 1;
    end_next(&crowd, &crowd.b); /* kept for the pair */
    queues_leave(&crowd.queues, &crowd.pair.item);
    take_all(&crowd);
    wait(&crowd, &crowd.pair);
    end_next(&crowd, &crowd.a);
    assert_true(queues_keeps_for(&older.item));
    end_next(&crowd, &crowd.b);
    assert_false(queues_keeps_for(&crowd.pair.item));
    end_next(&crowd, &crowd.a);
    assert_true(older.item.running);
    queues_leave(&crowd.queues, &older.item);
    leave_all(&crowd);
}

static void an_older_one_takes_over_what_a_younger_one_keeps(void **state)
{
    (void)state;
    struct crowd crowd;
    struct stream c = { 0 };
    struct job older = { .id = "older", .queue = "older", .limits = "[\"a\",\"c\"]" };
    begin(&crowd);
    pass_over(&crowd);
    end_next(&crowd, &crowd.a);
    assert_int_equal(figures(&crowd, "a").reserved, 1); /* for the pair */
    declare(&crowd.queues, "c", 1);
    begin_stream(&crowd, &c, "of c", "[\"c\"]");
    queues_wait(&crowd.queues, &older.item, seat_of(&older), -1);
    for (int i = 0; i < ROUNDS_MAX && !queues_keeps_for(&older.item); i++)
        end_next(&crowd, &c);
    assert_true(queues_keeps_for(&older.item));
    assert_false(queues_keeps_for(&crowd.pair.item));
    assert_int_equal(figures(&crowd, "b").reserved, 0);
    end_next(&crowd, &c);
    assert_true(older.item.running);
    queues_leave(&crowd.queues, &older.item);
    for (int i = 0; i < STREAM; i++)
        queues_leave(&crowd.queues, &c.jobs[i].item);
    limits_forget(&crowd.queues, SLICE("c"));
    leave_all(&crowd);
}

/* The pair needs its queue and a. Some job of its queue, and of a, runs all the time. */
static void begin_in_queue(struct crowd *crowd)
{
    begin(crowd);
    queues_leave(&crowd->queues, &crowd->pair.item);
    for (int i = 0; i < STREAM; i++)
        queues_leave(&crowd->queues, &crowd->b.jobs[i].item);
    queues_set_limit(&crowd->queues, SLICE("both"), 1);
    begin_stream(crowd, &crowd->b, "both", NULL);
    crowd->pair = (struct job){ .id = "pair", .queue = "both", .limits = "[\"a\"]" };
    wait(crowd, &crowd->pair);
}

static void its_queue_counts_as_one_of_its_limits(void **state)
{
    (void)state;
    struct crowd crowd;
    begin_in_queue(&crowd);
    for (int i = 0; i < ROUNDS_MAX && !crowd.pair.item.running; i++) {
        end_next(&crowd, &crowd.b);
        end_next(&crowd, &crowd.a);
    }
    assert_true(crowd.pair.item.running);
    queues_forget_limit(&crowd.queues, SLICE("both"));
    leave_all(&crowd);
}

/* The pair is in a lane. One stream has another key of the gate in the same queue, and has a;
 * the other one has the pair's key. */
static void a_key_of_a_gate_starts_among_streams_of_others(void **state)
{
    (void)state;
    struct crowd crowd = { .pair = { .id = "pair",
                                     .queue = "q",
                                     .limits =
                                         "[\"a\",{\"queue\":\"gate\",\"key\":\"one\"}]" } };
    queues_init(&crowd.queues, 100, job_id);
    declare(&crowd.queues, "a", 1);
    declare(&crowd.queues, "b", 1);
    queues_set_limit(&crowd.queues, SLICE("gate"), 1);
    begin_stream(&crowd, &crowd.a, "q", "[\"a\",{\"queue\":\"gate\",\"key\":\"many\"}]");
    begin_stream(&crowd, &crowd.b, "other", "[{\"queue\":\"gate\",\"key\":\"one\"}]");
    queues_wait(&crowd.queues, &crowd.pair.item, seat_of(&crowd.pair), 0);
    pass_over(&crowd);
    for (int i = 0; i < 2 * STREAM && !crowd.pair.item.running; i++)
        end_next(&crowd, i % 2 ? &crowd.b : &crowd.a);
    assert_true(crowd.pair.item.running);
    queues_forget_limit(&crowd.queues, SLICE("gate"));
    leave_all(&crowd);
}

static void a_higher_limit_frees_a_slot_in_addition_to_the_kept_one(void **state)
{
    (void)state;
    struct crowd crowd;
    begin_in_queue(&crowd);
    pass_over(&crowd);
    end_next(&crowd, &crowd.b);
    assert_int_equal(queues_figures(&crowd.queues, SLICE("both")).running, 0);
    queues_change_limit(&crowd.queues, SLICE("both"), 2);
    take_all(&crowd);
    assert_int_equal(queues_figures(&crowd.queues, SLICE("both")).running, 1);
    assert_true(queues_keeps_for(&crowd.pair.item));
    queues_set_total(&crowd.queues, SLICE("both"), 0);
    assert_false(queues_keeps_for(&crowd.pair.item));
    queues_forget_limit(&crowd.queues, SLICE("both"));
    leave_all(&crowd);
}

static void an_item_that_resumes_takes_no_kept_slot(void **state)
{
    (void)state;
    struct crowd crowd;
    struct job parent = { .id = "parent", .queue = "parent", .limits = "[\"a\"]" };
    begin(&crowd);
    pass_over(&crowd);
    end_next(&crowd, &crowd.a);
    queues_wait_again(&crowd.queues, &parent.item, seat_of(&parent), 1);
    assert_null(queues_next(&crowd.queues, AUDIENCE_RESUMED));
    end_next(&crowd, &crowd.b);
    assert_true(crowd.pair.item.running);
    queues_leave(&crowd.queues, &crowd.pair.item);
    assert_ptr_equal(queues_next(&crowd.queues, AUDIENCE_RESUMED), &parent.item);
    queues_leave(&crowd.queues, &parent.item);
    leave_all(&crowd);
}

/* Ends what runs, and starts nothing. */
static void end_running(struct crowd *crowd, struct stream *stream)
{
    for (int i = 0; i < STREAM; i++)
        if (stream->jobs[i].item.running)
            wait(crowd, &stream->jobs[i]);
}

static void slots_that_no_caller_takes_are_freed(void **state)
{
    (void)state;
    struct crowd crowd;
    begin(&crowd);
    pass_over(&crowd);
    assert_false(queues_free_untaken(&crowd.queues)); /* it could not run yet */
    end_running(&crowd, &crowd.a);
    end_running(&crowd, &crowd.b);
    assert_ptr_equal(queues_next(&crowd.queues, 0), &crowd.pair.item);
    assert_false(queues_has_slot(&crowd.queues, seat_of(&crowd.a.jobs[0])));
    assert_true(queues_free_untaken(&crowd.queues));
    assert_true(queues_has_slot(&crowd.queues, seat_of(&crowd.a.jobs[0])));
    assert_false(queues_free_untaken(&crowd.queues));
    take_all(&crowd);
    queues_leave(&crowd.queues, &crowd.pair.item);
    take_all(&crowd);
    queues_wait(&crowd.queues, &crowd.pair.item, seat_of(&crowd.pair), 0);
    pass_over(&crowd); /* others may pass over it again */
    leave_all(&crowd);
}

static void older_items_do_not_pass_over_younger_ones(void **state)
{
    (void)state;
    enum { OLDER = 3 * RESERVE_PASSES };
    static struct job older[OLDER];
    struct job younger = { .id = "younger", .queue = "q", .limits = "[\"a\"]" };
    struct crowd crowd = { 0 };
    queues_init(&crowd.queues, 100, job_id);
    declare(&crowd.queues, "a", 1);
    queues_set_limit(&crowd.queues, SLICE("q"), 1);
    for (int i = 0; i < OLDER; i++) {
        older[i] = (struct job){ .queue = "q" };
        snprintf(older[i].id, sizeof(older[i].id), "%03d", i);
        wait(&crowd, &older[i]);
    }
    wait(&crowd, &younger);
    for (int i = 0; i < OLDER; i++) {
        take_all(&crowd);
        assert_true(older[i].item.running);
        queues_leave(&crowd.queues, &older[i].item);
    }
    queues_leave(&crowd.queues, &younger.item);
    queues_forget_limit(&crowd.queues, SLICE("q"));
    limits_forget(&crowd.queues, SLICE("a"));
    queues_finish(&crowd.queues);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_item_of_two_limits_starts_among_streams_of_one),
        cmocka_unit_test(a_kept_slot_is_reserved_and_not_held),
        cmocka_unit_test(an_item_that_leaves_keeps_nothing),
        cmocka_unit_test(an_item_that_is_put_where_it_waits_keeps_its_slots),
        cmocka_unit_test(nothing_is_kept_while_a_limit_is_paused_or_0),
        cmocka_unit_test(an_override_of_its_key_with_0_keeps_nothing),
        cmocka_unit_test(of_two_that_need_the_same_the_older_one_keeps_slots),
        cmocka_unit_test(an_older_one_takes_over_what_a_younger_one_keeps),
        cmocka_unit_test(its_queue_counts_as_one_of_its_limits),
        cmocka_unit_test(a_key_of_a_gate_starts_among_streams_of_others),
        cmocka_unit_test(a_higher_limit_frees_a_slot_in_addition_to_the_kept_one),
        cmocka_unit_test(an_item_that_resumes_takes_no_kept_slot),
        cmocka_unit_test(slots_that_no_caller_takes_are_freed),
        cmocka_unit_test(older_items_do_not_pass_over_younger_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
