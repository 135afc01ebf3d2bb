/* Requests per minute: half of them at once, then evenly, each party on its own. */
#include "tests/support/world/unit.h"

#include <stdlib.h>

#include "api/router/rate_limit.h"
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

static void half_a_minutes_worth_is_there_at_once(void **state)
{
    struct world *world = *state;
    use_up(world, &world->key);
    struct rate_limit_answer answer = take(world, &world->key, false);
    assert_int_equal(answer.remaining, 0);
    assert_true(answer.reset_ms == wall_ms + EACH_MS);
}

static void what_is_told_about_the_reset_is_true(void **state)
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
static void a_minute_lets_a_minutes_worth_in(void **state)
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

static void environments_and_tokens_have_shares_of_their_own(void **state)
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

static void without_a_limit_there_is_none(void **state)
{
    struct world *world = *state;
    assert_null(rate_limit_create(world->loop, 0));
    rate_limit_destroy(NULL);
}

static void one_request_a_minute_is_a_limit_too(void **state)
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
static void many_tokens_do_not_pile_up(void **state)
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
        IN_WORLD(half_a_minutes_worth_is_there_at_once),
        IN_WORLD(what_is_told_about_the_reset_is_true),
        IN_WORLD(a_minute_lets_a_minutes_worth_in),
        IN_WORLD(environments_and_tokens_have_shares_of_their_own),
        IN_WORLD(without_a_limit_there_is_none),
        IN_WORLD(one_request_a_minute_is_a_limit_too),
        IN_WORLD(many_tokens_do_not_pile_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
