/* Workers that wait for a run: in which line, in which order, and for how long. */
#include "core/fleet/line.h"

#include "tests/support/world/calls.h"
#include "tests/support/world/unit.h"

/* A seat in a line (struct dequeue_seat), and the notices that it got. */
struct sitter {
    struct dequeue_seat seat; /* must be first */
    unsigned hurried;
    int64_t until;
};

static void on_hurry(struct dequeue_seat *seat, int64_t until)
{
    struct sitter *sitter = container_of(seat, struct sitter, seat);
    sitter->hurried++;
    sitter->until = until;
    line_leave(seat);
}

static void sitter_init(struct sitter *sitter, struct environment *env)
{
    *sitter = (struct sitter){ .seat = { .env = env, .shorten_wait = on_hurry } };
    list_init(&sitter->seat.link);
}

/* Joins the line as a worker that names this version ("": none). */
static bool sit(struct sitter *sitter, struct environment *env, const char *version)
{
    sitter_init(sitter, env);
    return line_join(&sitter->seat, slice_of(version));
}

static void assert_order(const struct list *line, const struct sitter *const *sitters,
                         size_t count)
{
    size_t at = 0;
    list_each (link, line) {
        assert_true(at < count);
        assert_ptr_equal(container_of(link, struct sitter, seat.link), sitters[at++]);
    }
    assert_int_equal(at, count);
}

static int create_dev(void **state)
{
    *state = world_create(NULL);
    return 0;
}

static int create_prod(void **state)
{
    *state = world_create(&(struct world_options){ .is_prod = true });
    return 0;
}

static int destroy_world(void **state)
{
    world_destroy(*state);
    return 0;
}

/* ---- outside of dev ---- */

static void line_is_first_come_first_served(void **state)
{
    struct world *world = *state;
    struct fleet *fleet = world->env->fleet;
    struct sitter all[4];
    for (int i = 0; i < 3; i++)
        assert_true(sit(&all[i], world->env, ""));
    assert_int_equal(fleet->seated, 3);
    assert_order(&fleet->line, (const struct sitter *[]){ &all[0], &all[1], &all[2] }, 3);
    line_leave(&all[1].seat);
    assert_true(sit(&all[3], world->env, ""));
    assert_order(&fleet->line, (const struct sitter *[]){ &all[0], &all[2], &all[3] }, 3);
    line_leave(&all[0].seat);
    assert_true(line_join(&all[0].seat, SLICE(""))); /* it is the last now */
    assert_order(&fleet->line, (const struct sitter *[]){ &all[2], &all[3], &all[0] }, 3);
    assert_int_equal(fleet->seated, 3);
    for (int i = 0; i < 4; i++)
        line_leave(&all[i].seat);
    assert_order(&fleet->line, NULL, 0);
    assert_int_equal(fleet->seated, 0);
}

static void workers_outside_dev_share_one_line(void **state)
{
    struct world *world = *state;
    struct sitter one, other;
    register_worker(world, "20260101.1", "hello", 3);
    register_worker(world, "20260101.2", "hello", 3);
    assert_true(sit(&one, world->env, "20260101.1"));
    assert_true(sit(&other, world->env, "nobody"));
    assert_order(&world->env->fleet->line, (const struct sitter *[]){ &one, &other }, 2);
    assert_null(one.seat.session);
    line_leave(&one.seat);
    line_leave(&other.seat);
}

static void worker_of_several_environments_waits_in_each(void **state)
{
    struct world *world = *state;
    struct environment *next =
        engine_add_environment(world->engine, WORLD_ENV + 1, "env_next", false);
    struct sitter here, there;
    assert_true(sit(&here, world->env, ""));
    assert_true(sit(&there, next, ""));
    assert_int_equal(world->env->fleet->seated, 1);
    assert_int_equal(next->fleet->seated, 1);
    line_leave(&here.seat);
    assert_int_equal(world->env->fleet->seated, 0);
    assert_order(&next->fleet->line, (const struct sitter *[]){ &there }, 1);
    line_leave(&there.seat);
}

static void leaving_without_a_place_does_nothing(void **state)
{
    struct world *world = *state;
    struct sitter sitter;
    sitter_init(&sitter, world->env);
    line_leave(&sitter.seat);
    assert_int_equal(world->env->fleet->served_until, 0);
    assert_true(line_join(&sitter.seat, SLICE("")));
    line_leave(&sitter.seat);
    int64_t until = world->env->fleet->served_until;
    world_pass(world, 1000);
    line_leave(&sitter.seat);
    assert_int_equal(world->env->fleet->seated, 0);
    assert_int_equal(world->env->fleet->served_until, until);
}

static void worker_that_left_counts_as_present_for_a_while(void **state)
{
    struct world *world = *state;
    struct fleet *fleet = world->env->fleet;
    struct sitter sitter;
    assert_true(sit(&sitter, world->env, ""));
    assert_int_equal(fleet->served_until, loop_now_ms(world->loop) + SESSION_LOST_MS);
    world_pass(world, 20000);
    line_leave(&sitter.seat);
    assert_int_equal(fleet->served_until, loop_now_ms(world->loop) + SESSION_LOST_MS);
}

/* ---- dev ---- */

/* Connects two CLIs, each of which has requested runs with its own version. */
static void connect_two(struct world *world)
{
    static const char *const versions[] = { "20260101.1", "20260101.2" };
    for (int i = 0; i < 2; i++) {
        dev_sessions_connect(world->env, SESSION_SOCKET);
        register_worker(world, versions[i], "hello", 3);
        assert_non_null(dev_sessions_ask(world->env, slice_of(versions[i])));
    }
    world_settle(world);
}

static struct session *session_of(struct world *world, const char *version)
{
    return dev_sessions_asking(world->env, slice_of(version));
}

static void each_version_has_a_line_of_its_own(void **state)
{
    struct world *world = *state;
    struct sitter old, newer, none;
    connect_two(world);
    assert_true(sit(&old, world->env, "20260101.1"));
    assert_true(sit(&newer, world->env, "20260101.2"));
    assert_true(sit(&none, world->env, "")); /* by the current version, the newest */
    struct session *one = session_of(world, "20260101.1");
    struct session *two = session_of(world, "20260101.2");
    assert_ptr_not_equal(one, two);
    assert_ptr_equal(old.seat.session, one);
    assert_ptr_equal(none.seat.session, two);
    assert_order(&one->dequeues, (const struct sitter *[]){ &old }, 1);
    assert_order(&two->dequeues, (const struct sitter *[]){ &newer, &none }, 2);
    assert_int_equal(one->held, 1);
    assert_int_equal(two->held, 2);
    assert_order(&world->env->fleet->line, NULL, 0);
    assert_int_equal(world->env->fleet->seated, 3);

    line_leave(&newer.seat);
    assert_null(newer.seat.session);
    assert_int_equal(two->held, 1);
    assert_int_equal(one->held, 1);
    line_leave(&none.seat);
    line_leave(&old.seat);
    assert_int_equal(one->held + two->held, 0);
    assert_int_equal(world->env->fleet->seated, 0);
}

static void unknown_or_ended_version_has_no_line(void **state)
{
    static const char *const names[] = { "20260101.1", "20250101.1", "-" };
    struct world *world = *state;
    struct sitter sitter;
    dev_sessions_connect(world->env, SESSION_SOCKET);
    register_worker(world, "20260101.1", "hello", 3);
    register_worker(world, "20260101.2", "hello", 3); /* of the same CLI */
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_false(sit(&sitter, world->env, names[i]));
        assert_null(sitter.seat.session);
        assert_true(list_empty(&sitter.seat.link));
        line_leave(&sitter.seat);
    }
    assert_int_equal(world->env->fleet->seated, 0);
    assert_true(sit(&sitter, world->env, "20260101.2"));
    line_leave(&sitter.seat);
}

static void there_is_no_line_before_the_first_version(void **state)
{
    struct world *world = *state;
    struct sitter sitter;
    assert_false(sit(&sitter, world->env, ""));
    assert_int_equal(world->env->fleet->seated, 0);
}

static void waiting_worker_is_notified_when_its_version_changes(void **state)
{
    struct world *world = *state;
    struct sitter first, second;
    dev_sessions_connect(world->env, SESSION_SOCKET);
    register_worker(world, "20260101.1", "hello", 3);
    assert_true(sit(&first, world->env, "20260101.1"));
    assert_true(sit(&second, world->env, ""));
    assert_int_equal(first.hurried + second.hurried, 0);
    register_worker(world, "20260101.2", "hello", 3);
    assert_int_equal(first.hurried, 1);
    assert_int_equal(second.hurried, 1);
    assert_in_range(first.until, loop_now_ms(world->loop), loop_now_ms(world->loop) + 1000);
    assert_int_equal(first.until, second.until);
    assert_int_equal(world->env->fleet->seated, 0);
}

/* A CLI that waits sends nothing and is alive; its silence begins when it leaves. */
static void session_lives_while_a_worker_waits_in_its_line(void **state)
{
    struct world *world = *state;
    struct sitter sitter;
    register_worker(world, "20260101.1", "hello", 3);
    assert_true(sit(&sitter, world->env, "20260101.1"));
    for (int i = 0; i < 3; i++)
        world_pass(world, SESSION_LOST_MS);
    assert_non_null(session_of(world, "20260101.1"));
    world_pass(world, SESSION_LOST_MS / 2);
    line_leave(&sitter.seat);
    world_pass(world, SESSION_LOST_MS / 2); /* half of its time has passed */
    world_pass(world, SESSION_LOST_MS / 2 - 1);
    assert_non_null(session_of(world, "20260101.1"));
    world_pass(world, 1);
    assert_null(session_of(world, "20260101.1"));
}

#define DEV(name) cmocka_unit_test_setup_teardown(name, create_dev, destroy_world)
#define PROD(name) cmocka_unit_test_setup_teardown(name, create_prod, destroy_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROD(line_is_first_come_first_served),
        PROD(workers_outside_dev_share_one_line),
        PROD(worker_of_several_environments_waits_in_each),
        PROD(leaving_without_a_place_does_nothing),
        PROD(worker_that_left_counts_as_present_for_a_while),
        DEV(each_version_has_a_line_of_its_own),
        DEV(unknown_or_ended_version_has_no_line),
        DEV(there_is_no_line_before_the_first_version),
        DEV(waiting_worker_is_notified_when_its_version_changes),
        DEV(session_lives_while_a_worker_waits_in_its_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
