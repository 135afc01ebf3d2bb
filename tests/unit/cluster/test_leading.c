/* Gateways on one database of this file: one of them leads, whatever stops, is cut off, or comes
 * back. Each has a loop, and so a clock, of its own. */
#include "cluster/leading.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"

enum { GATEWAYS = 3, TURN_MS = 100 };

/* A gateway, and its view of the database, which is its store. */
struct process {
    struct store store;
    struct leading *leading;
    struct loop *loop;
    uint64_t id; /* 0: its row is gone */
    char name[8];
    uint64_t beat;
    bool cut;         /* the database does not answer it, and gets nothing of it */
    bool stopped;     /* its turns do not come */
    bool refused;     /* the next take fails with nobody knowing */
    int64_t ahead_ms; /* of its wall clock */
    struct store_beat *beating;
    struct store_lead *taking;
    unsigned standby, taken, lost, beats;
    bool for_good;
    const char *reason;
};

static struct {
    struct process all[GATEWAYS];
    size_t count;
    uint64_t next_id, leader;
    int64_t now_ms, dead_ms;
} world;

static const int64_t begun_ms = 1760000000000;

static struct process *of_store(struct store *store)
{
    return container_of(store, struct process, store);
}

static struct process *of_id(uint64_t id)
{
    for (size_t i = 0; i < world.count; i++)
        if (id && world.all[i].id == id)
            return &world.all[i];
    return NULL;
}

/* ---- the database ---- */

static void begin_beat(struct store *store, struct store_beat *req)
{
    assert_null(of_store(store)->beating);
    of_store(store)->beating = req;
}

static void begin_lead(struct store *store, struct store_lead *req)
{
    assert_null(of_store(store)->taking);
    of_store(store)->taking = req;
}

static void answer_beat(struct process *process)
{
    struct store_beat *req = process->beating;
    struct store_gateway gateways[GATEWAYS] = { 0 };
    process->beating = NULL;
    process->beats++;
    if (process->cut) {
        req->done(req, STORE_FAILED);
        return;
    }
    process->beat++;
    for (size_t i = 0; i < world.count; i++) {
        if (!world.all[i].id)
            continue;
        struct store_gateway *gateway = &gateways[req->gateway_count++];
        *gateway =
            (struct store_gateway){ .id = world.all[i].id, .beat = world.all[i].beat };
        snprintf(gateway->name, sizeof(gateway->name), "%s", world.all[i].name);
    }
    req->gateways = gateways;
    req->me = process->id;
    req->leader = world.leader;
    req->clock_ms = world.now_ms;
    req->done(req, process->id ? STORE_OK : STORE_MOVED);
}

static bool may_take(const struct process *process, const struct store_lead *req,
                     uint64_t leader)
{
    if (!leader || leader == process->id || !of_id(leader))
        return true;
    for (size_t i = 0; i < req->dead_count; i++)
        if (req->dead[i].id == leader && req->dead[i].beat == of_id(leader)->beat)
            return true;
    return false;
}

static void answer_lead(struct process *process)
{
    struct store_lead *req = process->taking;
    process->taking = NULL;
    if (process->cut || process->refused) {
        process->refused = false;
        req->done(req, STORE_FAILED);
    } else if (!process->id) {
        req->done(req, STORE_MOVED);
    } else if (may_take(process, req, world.leader)) {
        world.leader = process->id;
        req->done(req, STORE_OK);
    } else {
        req->done(req, STORE_TAKEN);
    }
}

static const struct store_ops several = { .beat = begin_beat, .lead = begin_lead };
static const struct store_ops alone = { 0 };

/* ---- processes ---- */

static void on_standby(void *owner)
{
    ((struct process *)owner)->standby++;
}

static void on_taken(void *owner)
{
    ((struct process *)owner)->taken++;
}

static void on_lost(void *owner, const char *reason, bool for_good)
{
    struct process *process = owner;
    process->lost++;
    process->reason = reason;
    process->for_good = for_good;
}

static struct process *start(const char *name, const struct store_ops *ops)
{
    struct process *process = &world.all[world.count++];
    *process = (struct process){ .store.ops = ops, .id = ++world.next_id };
    snprintf(process->name, sizeof(process->name), "%s", name);
    process->loop = loop_create(NULL);
    loop_set_wall(process->loop, world.now_ms);
    struct leading_options options = { .name = process->name,
                                       .beat_ms = 1000,
                                       .dead_ms = world.dead_ms,
                                       .on_standby = on_standby,
                                       .on_taken = on_taken,
                                       .on_lost = on_lost,
                                       .owner = process };
    process->leading = leading_create(process->loop, &process->store, &options);
    return process;
}

static void turn(struct process *process, int64_t ms)
{
    loop_set_wall(process->loop, world.now_ms - ms + process->ahead_ms);
    loop_turn(process->loop, ms);
    if (process->beating)
        answer_beat(process);
    if (process->taking)
        answer_lead(process);
    loop_turn(process->loop, 0);
}

/* Everybody's clocks go on. A process that is stopped finds that later. */
static void pass(int64_t ms)
{
    static int64_t slept[GATEWAYS];
    for (; ms > 0; ms -= TURN_MS) {
        world.now_ms += TURN_MS;
        for (size_t i = 0; i < world.count; i++) {
            slept[i] += TURN_MS;
            if (world.all[i].stopped)
                continue;
            turn(&world.all[i], slept[i]);
            slept[i] = 0;
        }
    }
}

static bool leads(const struct process *process)
{
    return !leading_why_not(process->leading);
}

static struct process *start_and_lead(const char *name)
{
    struct process *process = start(name, &several);
    pass(1000);
    assert_int_equal(process->taken, 1);
    leading_loaded(process->leading);
    assert_true(leads(process));
    return process;
}

static void assert_why_not(const struct process *process, const char *word)
{
    assert_string_equal(leading_why_not(process->leading), word);
}

static int open_world(void **state)
{
    (void)state;
    memset(&world, 0, sizeof(world));
    world.now_ms = begun_ms;
    world.dead_ms = 5000;
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    for (size_t i = 0; i < world.count; i++) {
        leading_stop(world.all[i].leading);
        leading_destroy(world.all[i].leading);
        loop_destroy(world.all[i].loop);
    }
    return 0;
}

/* ---- one ---- */

static void a_database_of_one_process_is_led_at_once(void **state)
{
    (void)state;
    struct process *only = start("a", &alone);
    assert_int_equal(only->taken, 0); /* not from inside the call */
    pass(TURN_MS);
    assert_int_equal(only->taken, 1);
    assert_why_not(only, "starting");
    leading_loaded(only->leading);
    pass(60000);
    assert_true(leads(only));
    assert_int_equal(only->beats + only->lost, 0);
}

static void what_nobody_leads_is_taken_with_the_first_beat(void **state)
{
    (void)state;
    struct process *a = start("a", &several);
    assert_why_not(a, "standby");
    pass(TURN_MS);
    assert_int_equal(a->taken, 1);
    assert_int_equal(a->standby, 0);
    assert_why_not(a, "starting");
    leading_loaded(a->leading);
    assert_true(leads(a));
}

static void it_beats_once_a_second(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a");
    unsigned before = a->beats;
    pass(10000);
    assert_int_equal(a->beats - before, 10);
}

static void a_take_of_which_nobody_knows_is_tried_again(void **state)
{
    (void)state;
    struct process *a = start("a", &several);
    a->refused = true;
    pass(TURN_MS);
    assert_int_equal(a->taken, 0);
    pass(1000);
    assert_int_equal(a->taken, 1);
}

/* ---- two ---- */

static void a_second_one_stands_by_as_long_as_the_first_one_beats(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a"), *b = start("b", &several);
    pass(120000);
    assert_true(leads(a));
    assert_int_equal(b->taken, 0);
    assert_int_equal(b->standby, 1);
    assert_why_not(b, "standby");
}

static void one_without_a_database_stands_by_until_it_answers(void **state)
{
    (void)state;
    struct process *a = start("a", &several);
    a->cut = true;
    pass(3000);
    assert_int_equal(a->standby, 1);
    a->cut = false;
    pass(1000);
    assert_int_equal(a->taken, 1);
    assert_int_equal(a->standby, 1);
}

static void one_that_was_killed_is_followed_after_five_seconds(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a"), *b = start("b", &several);
    pass(10000);
    a->stopped = true;
    pass(4000);
    assert_int_equal(b->taken, 0);
    pass(2500);
    assert_int_equal(b->taken, 1);
}

/* Between two beats: for a gateway that is alive one a second is enough. */
static void one_that_was_killed_is_followed_when_it_is_dead_and_not_later(void **state)
{
    (void)state;
    world.dead_ms = 5300;
    struct process *a = start_and_lead("a"), *b = start("b", &several);
    pass(10000);
    unsigned before = b->beats;
    pass(10000);
    assert_int_equal(b->beats - before, 10);
    before = a->beats;
    while (a->beats == before)
        pass(TURN_MS);
    a->stopped = true;
    pass(5000);
    assert_int_equal(b->taken, 0);
    pass(500);
    assert_int_equal(b->taken, 1);
}

static void one_that_has_left_is_followed_with_the_next_beat(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a"), *b = start("b", &several);
    pass(3000);
    a->stopped = true;
    a->id = 0;
    pass(1000);
    assert_int_equal(b->taken, 1);
}

/* In the very turn in which it goes on, before it has heard anything. */
static void one_that_was_stopped_answers_nobody_when_it_goes_on(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a"), *b = start("b", &several);
    pass(10000);
    a->stopped = true;
    pass(20000);
    assert_int_equal(b->taken, 1);
    loop_turn(a->loop, 20000);
    assert_why_not(a, "no_beat");
    a->stopped = false;
    pass(1000);
    assert_int_equal(a->lost, 1);
    assert_false(a->for_good);
    pass(10000);
    assert_int_equal(a->lost, 1); /* once */
}

static void one_that_is_cut_off_stops_to_answer_before_another_begins(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a"), *b = start("b", &several);
    pass(10000);
    a->cut = true;
    while (!b->taken) {
        pass(TURN_MS);
        assert_false(leads(a) && b->taken);
    }
    assert_why_not(a, "no_beat");
    a->cut = false;
    pass(2000);
    assert_int_equal(a->lost, 1);
}

static void one_that_is_cut_off_and_alone_goes_on_when_it_hears_again(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a");
    a->cut = true;
    pass(60000);
    assert_why_not(a, "no_beat");
    a->cut = false;
    pass(2000);
    assert_true(leads(a));
    assert_int_equal(a->lost, 0);
}

/* The database was away: who led before leads after it. */
static void after_a_restart_of_the_database_nobody_is_dead(void **state)
{
    (void)state;
    for (int64_t down_ms = 500; down_ms <= 32000; down_ms *= 4) {
        open_world(NULL);
        struct process *a = start_and_lead("a"), *b = start("b", &several);
        pass(10000);
        a->cut = b->cut = true;
        pass(down_ms);
        b->cut = false;
        pass(4000); /* the first one needs longer to come back */
        a->cut = false;
        pass(20000);
        assert_true(leads(a));
        assert_int_equal(b->taken, 0);
        close_world(NULL);
        world.count = 0;
    }
}

static void of_two_that_stand_by_one_takes_over(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a"), *b = start("b", &several),
                   *c = start("c", &several);
    pass(10000);
    a->stopped = true;
    pass(30000);
    assert_int_equal(b->taken + c->taken, 1);
    assert_int_equal(b->lost + c->lost, 0);
}

/* A statement of the database says so before any beat does. */
static void a_commit_that_was_refused_ends_the_lead_in_that_moment(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a");
    pass(500);
    a->store.on_moved(a->store.moved_owner);
    assert_why_not(a, "standby");
    assert_int_equal(a->lost, 0); /* not from inside the call */
    pass(TURN_MS);
    assert_int_equal(a->lost, 1);
    assert_false(a->for_good);
}

static void of_two_of_one_name_the_older_one_ends_for_good(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a");
    a->id = 0;
    struct process *again = start("a", &several);
    pass(1500);
    assert_int_equal(again->taken, 1);
    assert_int_equal(a->lost, 1);
    assert_true(a->for_good);
    assert_non_null(strstr(a->reason, "--gateway-name"));
}

static void one_whose_row_is_gone_begins_anew(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a");
    a->id = 0;
    pass(1500);
    assert_int_equal(a->lost, 1);
    assert_false(a->for_good);
}

static void one_that_is_about_to_end_takes_nothing(void **state)
{
    (void)state;
    struct process *a = start("a", &several);
    leading_drain(a->leading);
    pass(10000);
    assert_int_equal(a->taken, 0);
}

static void one_whose_clock_is_wrong_by_more_than_half_a_minute_takes_nothing(void **state)
{
    (void)state;
    struct process *a = start("a", &several);
    a->ahead_ms = 31000;
    pass(5000);
    assert_int_equal(a->taken, 0);
    a->ahead_ms = 29000;
    pass(2000);
    assert_int_equal(a->taken, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
    const struct CMUnitTest tests[] = {
        TEST(a_database_of_one_process_is_led_at_once),
        TEST(what_nobody_leads_is_taken_with_the_first_beat),
        TEST(it_beats_once_a_second),
        TEST(a_take_of_which_nobody_knows_is_tried_again),
        TEST(one_without_a_database_stands_by_until_it_answers),
        TEST(a_second_one_stands_by_as_long_as_the_first_one_beats),
        TEST(one_that_was_killed_is_followed_after_five_seconds),
        TEST(one_that_was_killed_is_followed_when_it_is_dead_and_not_later),
        TEST(one_that_has_left_is_followed_with_the_next_beat),
        TEST(one_that_was_stopped_answers_nobody_when_it_goes_on),
        TEST(one_that_is_cut_off_stops_to_answer_before_another_begins),
        TEST(one_that_is_cut_off_and_alone_goes_on_when_it_hears_again),
        TEST(after_a_restart_of_the_database_nobody_is_dead),
        TEST(of_two_that_stand_by_one_takes_over),
        TEST(a_commit_that_was_refused_ends_the_lead_in_that_moment),
        TEST(of_two_of_one_name_the_older_one_ends_for_good),
        TEST(one_whose_row_is_gone_begins_anew),
        TEST(one_that_is_about_to_end_takes_nothing),
        TEST(one_whose_clock_is_wrong_by_more_than_half_a_minute_takes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
