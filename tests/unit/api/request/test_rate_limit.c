/* Requests per minute: half of them at once, then evenly, each party on its own. */
#include "tests/support/world/unit.h"

#include <stdlib.h>

#include "api/request/rate_limit.h"
#include "base/mem.h"

enum { PER_MINUTE = 60, BURST = 30, EACH_MS = 1000, MANY = 60000 };

static const int64_t wall_ms = INT64_C(1700000000000);

struct world {
    struct loop *loop;
    struct rate_limit *rate;
    struct account dev, prod;
    struct identity key, other_key, token;
};

static int make_world(void **state)
{
    struct world *world = mem_new(struct world);
    world->loop = loop_create(NULL);
    loop_set_wall(world->loop, wall_ms);
    world->rate = rate_limit_create(world->loop, PER_MINUTE);
    world->dev.number = 1;
    world->prod.number = 3;
    world->key = (struct identity){ .kind = CREDENTIAL_SECRET_KEY, .account = &world->dev };
    world->other_key =
        (struct identity){ .kind = CREDENTIAL_SECRET_KEY, .account = &world->prod };
    world->token = (struct identity){ .kind = CREDENTIAL_PUBLIC_TOKEN,
                                      .account = &world->dev,
                                      .hash = { 1, 2, 3 } };
    *state = world;
    return 0;
}

static int end_world(void **state)
{
    struct world *world = *state;
    rate_limit_destroy(world->rate);
    loop_destroy(world->loop);
    free(world);
    return 0;
}

static struct rate_limit_answer take(struct world *world, const struct identity *who,
                                     bool taken)
{
    struct rate_limit_answer answer;
    assert_int_equal(rate_limit_take(world->rate, who, &answer), taken);
    assert_int_equal(answer.limit, BURST);
    return answer;
}

static void use_up(struct world *world, const struct identity *who)
{
    for (int left = BURST - 1; left >= 0; left--)
        assert_int_equal(take(world, who, true).remaining, left);
}

static void half_of_the_limit_is_available_at_once(void **state)
{
    struct world *world = *state;
    use_up(world, &world->key);
    struct rate_limit_answer answer = take(world, &world->key, false);
    assert_int_equal(answer.remaining, 0);
    assert_true(answer.reset_ms == wall_ms + EACH_MS);
}

static void reported_reset_time_is_correct(void **state)
{
    struct world *world = *state;
    use_up(world, &world->key);
    struct rate_limit_answer answer = take(world, &world->key, false);
    int64_t wait = answer.reset_ms - wall_ms;
    loop_turn(world->loop, wait - 1);
    take(world, &world->key, false);
    loop_turn(world->loop, 1);
    take(world, &world->key, true);
    take(world, &world->key, false);
    loop_turn(world->loop, (int64_t)BURST * EACH_MS);
    use_up(world, &world->key);
}

/* Rejected calls do not count: constant retries do not delay the next accepted one. */
static void requests_per_minute_match_the_limit(void **state)
{
    struct world *world = *state;
    struct rate_limit_answer answer;
    int let_in = 0;
    use_up(world, &world->key);
    for (int at = 0; at < 60 * 1000; at += 10) {
        loop_turn(world->loop, 10);
        let_in += rate_limit_take(world->rate, &world->key, &answer);
    }
    assert_int_equal(let_in, PER_MINUTE);
}

static void environments_and_tokens_have_separate_limits(void **state)
{
    struct world *world = *state;
    struct identity renewed = world->key;
    renewed.hash[0] = 9; /* another key of the same environment */
    use_up(world, &world->key);
    take(world, &renewed, false);
    use_up(world, &world->other_key);
    use_up(world, &world->token);
    take(world, &world->token, false);
}

static void zero_means_no_rate_limit(void **state)
{
    struct world *world = *state;
    assert_null(rate_limit_create(world->loop, 0));
    rate_limit_destroy(NULL);
}

static void limit_of_one_request_per_minute_works(void **state)
{
    struct world *world = *state;
    struct rate_limit_answer answer;
    rate_limit_destroy(world->rate);
    world->rate = rate_limit_create(world->loop, 1);
    assert_true(rate_limit_take(world->rate, &world->key, &answer));
    assert_false(rate_limit_take(world->rate, &world->key, &answer));
    assert_true(answer.reset_ms == wall_ms + 60 * 1000);
}

/* Under ASan: old tokens are neither leaked nor kept. */
static void old_tokens_are_dropped(void **state)
{
    struct world *world = *state;
    struct rate_limit_answer answer;
    for (uint32_t i = 0; i < MANY; i++) {
        memcpy(world->token.hash, &i, sizeof(i));
        assert_true(rate_limit_take(world->rate, &world->token, &answer));
    }
    take(world, &world->token, true);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, make_world, end_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_WORLD(half_of_the_limit_is_available_at_once),
        IN_WORLD(reported_reset_time_is_correct),
        IN_WORLD(requests_per_minute_match_the_limit),
        IN_WORLD(environments_and_tokens_have_separate_limits),
        IN_WORLD(zero_means_no_rate_limit),
        IN_WORLD(limit_of_one_request_per_minute_works),
        IN_WORLD(old_tokens_are_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
