/* A follower reports each last use of a key or token, in pieces, and no use of long ago. */
#include "tests/support/world/unit.h"

#include "server/memory/reported_uses.h"
#include "tests/support/world/api_world.h"

enum { EVERY_MS = 10 * 1000, START_MS = 1000 };

struct scene {
    struct api_world world;
    struct reported_uses uses;
    struct repl_use list[REPL_USES_MAX];
    int64_t now_ms;
};

static size_t collect(struct scene *scene, size_t most)
{
    return reported_uses_collect(&scene->uses, scene->world.accounts, scene->now_ms,
                                 scene->now_ms, scene->list, most);
}

static struct secret *use_one(struct scene *scene)
{
    size_t at = 0;
    struct secret *secret = accounts_next_secret(scene->world.accounts, &at);
    secret->used_at = scene->now_ms;
    return secret;
}

static void use_is_reported_in_two_walks(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(collect(scene, REPL_USES_MAX), 0);
    scene->now_ms += EVERY_MS;
    assert_int_equal(collect(scene, REPL_USES_MAX), 0);
    const struct secret *secret = use_one(scene);
    assert_int_equal(collect(scene, REPL_USES_MAX), 0); /* no walk is due */
    for (int i = 0; i < 2; i++) {
        scene->now_ms += EVERY_MS;
        assert_int_equal(collect(scene, REPL_USES_MAX), 1);
        assert_memory_equal(scene->list[0].hash, secret->hash, HASH_LEN);
        assert_int_equal(scene->list[0].used_at, secret->used_at);
    }
    scene->now_ms += EVERY_MS;
    assert_int_equal(collect(scene, REPL_USES_MAX), 0);
}

static void new_connection_reports_all_that_is_not_stored(void **state)
{
    struct scene *scene = *state;
    struct secret *secret = use_one(scene);
    scene->now_ms += 100 * EVERY_MS;
    assert_int_equal(collect(scene, REPL_USES_MAX), 1);
    secret->stored_use = secret->used_at;
    scene->uses = (struct reported_uses){ 0 };
    assert_int_equal(collect(scene, REPL_USES_MAX), 0);
}

static void walk_continues_where_the_list_was_full(void **state)
{
    struct scene *scene = *state;
    struct secret *secret;
    size_t count = 0, reported = 0;
    for (size_t at = 0; (secret = accounts_next_secret(scene->world.accounts, &at));) {
        secret->used_at = scene->now_ms;
        count += secret_has_unstored_use(secret, scene->now_ms);
    }
    assert_true(count > 1);
    while (collect(scene, 1))
        reported++;
    assert_int_equal(reported, count);
}

static void use_at_another_gateway_is_never_in_the_future_or_earlier(void **state)
{
    struct scene *scene = *state;
    struct accounts *accounts = scene->world.accounts;
    struct secret *secret = use_one(scene);
    const unsigned char unknown[HASH_LEN] = { 1 };
    accounts_note_use(accounts, unknown, scene->now_ms, scene->now_ms);
    accounts_note_use(accounts, secret->hash, scene->now_ms - 1, scene->now_ms);
    assert_int_equal(secret->used_at, scene->now_ms);
    accounts_note_use(accounts, secret->hash, scene->now_ms + 7, scene->now_ms + 5);
    assert_int_equal(secret->used_at, scene->now_ms + 5);
}

static int open_scene(void **state)
{
    struct scene *scene = mem_new(struct scene);
    struct secret *secret;
    api_world_open(&scene->world); /* it has used some */
    for (size_t at = 0; (secret = accounts_next_secret(scene->world.accounts, &at));)
        secret->used_at = 0;
    scene->now_ms = START_MS;
    *state = scene;
    return 0;
}

static int close_scene(void **state)
{
    struct scene *scene = *state;
    api_world_close(&scene->world);
    free(scene);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(use_is_reported_in_two_walks),
        TEST(new_connection_reports_all_that_is_not_stored),
        TEST(walk_continues_where_the_list_was_full),
        TEST(use_at_another_gateway_is_never_in_the_future_or_earlier),
    };
    return cmocka_run_group_tests_name("reported_uses", tests, NULL, NULL);
}
