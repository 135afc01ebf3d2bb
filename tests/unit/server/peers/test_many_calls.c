/* Many calls that begin at a follower at once, each with a connection of its own. */
#include "tests/support/world/unit.h"

#include "server/peers/callers.h"
#include "tests/support/world/peer_pair.h"

enum { MANY = 2 * CALLERS_STRANGERS_MAX };

static struct peer_pair pair;

static struct {
    struct relay relays[MANY + 1];
    unsigned requests, answered, ended, expected;
    unsigned before_last; /* ended so far, when the last of relays ended */
} scene;

/* ---- the leader ---- */

static void on_api_request(void *owner, struct exchange *x)
{
    (void)owner;
    scene.requests++;
    http_reply(x, 200, (struct slice){ 0 }, SLICE("done"));
}

static void on_api_head(void *owner, struct exchange *x)
{
    (void)owner, (void)x;
}

/* ---- the follower ---- */

static void on_ready(struct relay *relay)
{
    (void)relay;
}

static void on_head(struct relay *relay, int status, const struct http_header *headers,
                    size_t count)
{
    (void)relay, (void)headers, (void)count;
    scene.answered += status == 200;
}

static void on_piece(struct relay *relay, struct slice piece)
{
    (void)relay, (void)piece;
}

static void on_end(struct relay *relay, enum err error, const char *why)
{
    (void)error, (void)why;
    if (relay == &scene.relays[MANY])
        scene.before_last = scene.ended;
    scene.ended++;
}

static const struct relay_ops ops = {
    .on_ready = on_ready, .on_head = on_head, .on_piece = on_piece, .on_end = on_end
};

static void begin(struct relay *relay, bool is_brief)
{
    static const struct http_header host = { SLICE("host"), SLICE("runs.example") };
    const struct relay_request request = { .method = "GET",
                                           .target = SLICE("/"),
                                           .headers = &host,
                                           .header_count = 1,
                                           .note = SLICE("::1 --"),
                                           .is_brief = is_brief };
    struct failure why;
    if (relay_begin(forwarder_pool(pair.forwarder), relay, &request, &ops, &why))
        fail_msg("%s", why.text);
    relay_finish(relay);
}

static bool have_ended(void *owner)
{
    (void)owner;
    return scene.ended == scene.expected;
}

static void expect_answers(unsigned count)
{
    scene.expected = count;
    client_world_until(&pair.world, have_ended, NULL);
    assert_int_equal(scene.answered, count);
    assert_int_equal(scene.requests, count);
}

/* ---- setup ---- */

static int open_scene(void **state)
{
    static const struct http_handler calls = { .on_head = on_api_head,
                                               .on_request = on_api_request };
    (void)state;
    memset(&scene, 0, sizeof(scene));
    peer_pair_open(&pair);
    peer_pair_start_leader(&pair, &calls, 0);
    peer_pair_start_follower(&pair, PEER_PAIR_KEY);
    return 0;
}

static int close_scene(void **state)
{
    (void)state;
    peer_pair_close(&pair);
    return 0;
}

/* ---- tests ---- */

/* The leader closes the oldest connection that has proved nothing for each one too many. */
static void calls_that_begin_at_once_all_get_connections(void **state)
{
    (void)state;
    for (size_t i = 0; i < MANY; i++)
        begin(&scene.relays[i], false);
    assert_int_equal(relay_pool_connections(forwarder_pool(pair.forwarder)), MANY);
    expect_answers(MANY);
}

/* A connection that waits for its turn has no socket yet. */
static void calls_that_wait_for_connections_can_be_canceled(void **state)
{
    (void)state;
    for (size_t i = 0; i < MANY; i++)
        begin(&scene.relays[i], false);
    for (size_t i = MANY; i-- > 0;)
        relay_cancel(&scene.relays[i]);
    assert_int_equal(relay_pool_connections(forwarder_pool(pair.forwarder)), 0);
    begin(&scene.relays[MANY], false);
    expect_answers(1);
}

static void brief_calls_get_connections_before_others(void **state)
{
    (void)state;
    for (size_t i = 0; i < MANY; i++)
        begin(&scene.relays[i], false);
    begin(&scene.relays[MANY], true);
    assert_false(scene.relays[MANY].is_muxed);
    expect_answers(MANY + 1);
    assert_in_range(scene.before_last, 0, MANY / 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(calls_that_begin_at_once_all_get_connections),
        TEST(calls_that_wait_for_connections_can_be_canceled),
        TEST(brief_calls_get_connections_before_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
