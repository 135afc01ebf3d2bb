/* When a client leaves, the searches that it requested are abandoned: the store need not
 * execute them. */
#include "tests/support/world/api_world.h"
#include "tests/support/world/unit.h"

enum { TURNS_MAX = 10000 };

static struct api_world world;
static struct store_ops ops;         /* of the fake store, with searches that wait */
static const struct store_ops *real; /* what they were */
static struct store_read *search;    /* that waits; NULL: none */
static unsigned turns;               /* since it began */
static unsigned abandoned;           /* searches that ended because they were */
static uv_prepare_t each_turn;

static void hold_searches(struct store *store, struct store_read *read)
{
    if (read->kind == READ_LIST || read->kind == READ_COUNT)
        search = read;
    else
        real->read(store, read);
}

/* A search that is not abandoned finishes eventually, because its connection waits for it. */
static void on_turn(uv_prepare_t *prepare)
{
    struct store_read *ended = search;
    (void)prepare;
    bool is_abandoned = ended && store_read_is_abandoned(ended);
    if (!ended || (!is_abandoned && ++turns < TURNS_MAX))
        return;
    search = NULL;
    abandoned += is_abandoned;
    ended->done(ended, STORE_FAILED);
}

static int set_up(void **state)
{
    (void)state;
    api_world_open(&world);
    struct store *store = fake_store_store(world.fake);
    real = store->ops;
    ops = *real;
    ops.read = hold_searches;
    store->ops = &ops;
    search = NULL;
    abandoned = turns = 0;
    uv_prepare_init(&world.net.world.uv, &each_turn);
    uv_prepare_start(&each_turn, on_turn);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fake_store_store(world.fake)->ops = real;
    uv_close((uv_handle_t *)&each_turn, NULL);
    api_world_close(&world);
    return 0;
}

/* Sends the request and closes its connection while the search waits. */
static void assert_abandoned(const char *target)
{
    api_world_ask(&world, API_KEY_DEV, "GET", slice_of(target), (struct slice){ 0 },
                  (struct slice){ 0 }, 0);
    assert_int_equal(world.status, 0);
    assert_int_equal(abandoned, 1);
}

static void list_of_a_client_that_left_is_abandoned(void **state)
{
    (void)state;
    assert_abandoned("/api/v1/runs?filter[tag]=none");
}

static void counts_of_a_client_that_left_are_abandoned(void **state)
{
    (void)state;
    assert_abandoned("/api/v1/runs/counts");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(list_of_a_client_that_left_is_abandoned, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(counts_of_a_client_that_left_are_abandoned, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
