/* Last uses of keys and tokens are stored every hour of a simulated clock, and at a stop. */
#include "tests/support/world/unit.h"

#include "accounts/account_writer.h"
#include "api/request/parts.h"
#include "api/router/stored_uses.h"
#include "base/log.h"
#include "tests/support/world/world.h"

enum { HOUR = 60 * 60 * 1000 };

#define KEY_HEX "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

static struct {
    struct world *world;
    struct vault *vault;
    struct accounts *accounts;
    struct bootstrap bootstrap;
    struct account_writer *writer;
    struct api api; /* only what stored uses need */
    struct stored_uses *stored;
    struct secret *token; /* the personal token of the first start */
} scene;

static enum err decide_first(struct account_write *write, struct accounts *accounts,
                             struct draft *draft)
{
    (void)write;
    draft->count =
        accounts_bootstrap(accounts, &scene.bootstrap, draft->now_ms, draft->changes);
    return OK;
}

static void on_first(struct account_write *write, enum err status)
{
    (void)write;
    assert_int_equal(status, OK);
}

static void make_accounts(void)
{
    static struct account_write first = { .decide = decide_first, .done = on_first };
    struct failure why;
    assert_int_equal(vault_open(SLICE(KEY_HEX), NULL, &scene.vault, &why), OK);
    assert_int_equal(bootstrap_prepare(&scene.bootstrap, &why), OK);
    scene.accounts = accounts_create(scene.vault);
    scene.writer =
        account_writer_create(scene.world->loop, scene.world->store, scene.accounts);
    account_write_begin(scene.writer, &first);
    world_settle(scene.world);
    scene.token = accounts_secret(scene.accounts, slice_of(scene.bootstrap.personal_token),
                                  loop_wall_ms(scene.world->loop));
    assert_non_null(scene.token);
}

static int open_scene(void **state)
{
    (void)state;
    log_configure(LOG_ERROR, LOG_LOGFMT);
    scene.world = world_create(NULL);
    make_accounts();
    scene.api = (struct api){ .engine = scene.world->engine,
                              .options = { .writer = scene.writer } };
    scene.stored = stored_uses_create(&scene.api);
    stored_uses_start(scene.stored);
    return 0;
}

static void pass(int64_t ms)
{
    world_pass(scene.world, ms);
    while (!account_writer_idle(scene.writer))
        world_pass(scene.world, 1);
}

static int close_scene(void **state)
{
    (void)state;
    stored_uses_stop(scene.stored);
    pass(0);
    assert_true(stored_uses_has_ended(scene.stored));
    stored_uses_destroy(scene.stored);
    account_writer_destroy(scene.writer);
    accounts_destroy(scene.accounts);
    vault_close(scene.vault);
    world_destroy(scene.world);
    return 0;
}

/* Returns the time of the use. */
static int64_t use(void)
{
    return scene.token->used_at = loop_wall_ms(scene.world->loop);
}

static void a_use_is_stored_after_an_hour(void **state)
{
    (void)state;
    int64_t used = use();
    pass(HOUR - 1);
    assert_true(scene.token->stored_use == 0);
    pass(1);
    assert_true(scene.token->stored_use == used);
}

static void later_uses_are_stored_in_each_further_hour(void **state)
{
    (void)state;
    for (int hour = 0; hour < 3; hour++) {
        pass(HOUR / 2);
        int64_t used = use();
        pass(HOUR / 2);
        assert_true(scene.token->stored_use == used);
    }
}

static void after_a_failed_write_the_next_hour_tries_again(void **state)
{
    (void)state;
    int64_t used = use();
    *fake_store_fault(scene.world->fake) = (struct fault){ .countdown = 1 };
    pass(HOUR);
    assert_true(scene.token->stored_use == 0);
    pass(HOUR);
    assert_true(scene.token->stored_use == used);
}

static void a_second_start_does_not_move_the_hour(void **state)
{
    (void)state;
    int64_t used = use();
    pass(HOUR - 1);
    stored_uses_start(scene.stored);
    pass(1);
    assert_true(scene.token->stored_use == used);
}

static void a_stop_stores_at_once_and_ends_the_timer(void **state)
{
    (void)state;
    int64_t used = use();
    stored_uses_stop(scene.stored);
    assert_false(stored_uses_has_ended(scene.stored));
    pass(0);
    assert_true(stored_uses_has_ended(scene.stored));
    assert_true(scene.token->stored_use == used);
    pass(1);
    use();
    pass(2 * HOUR);
    assert_true(scene.token->stored_use == used);
}

#define IN_SCENE(test) cmocka_unit_test_setup_teardown(test, open_scene, close_scene)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCENE(a_use_is_stored_after_an_hour),
        IN_SCENE(later_uses_are_stored_in_each_further_hour),
        IN_SCENE(after_a_failed_write_the_next_hour_tries_again),
        IN_SCENE(a_second_start_does_not_move_the_hour),
        IN_SCENE(a_stop_stores_at_once_and_ends_the_timer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
