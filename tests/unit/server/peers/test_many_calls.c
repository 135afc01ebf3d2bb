/* Many calls that begin at a follower at once, each with a connection of its own. */
#include "tests/support/world/unit.h"

#include "server/peers/callers.h"
#include "server/peers/forwarder.h"
#include "server/peers/peer_server.h"
#include "tests/support/world/client_world.h"

#define KEY "5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e"

enum { LEADER = 7, FOLLOWER = 8, MANY = 2 * CALLERS_STRANGERS_MAX };

static struct client_world world;

static struct {
    struct vault *vault;
    struct peer_server *server;
    struct forwarder *forwarder;
    struct store_gateway leader; /* as the database names it */
    struct relay relays[MANY + 1];
    unsigned requests, answered, ended, expected;
    unsigned before_last; /* ended so far, when the last of relays ended */
    bool server_closed, forwarder_closed;
} scene;

/* ---- the leader ---- */

static uint64_t leader_id(void *owner)
{
    (void)owner;
    return LEADER;
}

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

static void set_true(void *owner)
{
    *(bool *)owner = true;
}

static void on_server_closed(void *owner)
{
    (void)owner;
    scene.server_closed = true;
}

static void start_leader(void)
{
    const struct listen_options address = { .host = "127.0.0.1" };
    struct failure why = { 0 };
    const struct peer_server_options options = {
        .address = &address,
        .vault = scene.vault,
        .leader_id = leader_id,
        .closed = on_server_closed,
        .calls = { .on_head = on_api_head, .on_request = on_api_request },
    };
    if (peer_server_create(world.loop, &options, &scene.server, &why))
        fail_msg("%s", why.text);
    scene.leader.id = LEADER;
    snprintf(scene.leader.peer_url, sizeof(scene.leader.peer_url), "http://127.0.0.1:%d",
             peer_server_port(scene.server));
}

/* ---- the follower ---- */

static uint64_t me(void *owner)
{
    (void)owner;
    return FOLLOWER;
}

static const struct store_gateway *leader(void *owner)
{
    (void)owner;
    return &scene.leader;
}

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
    if (relay_begin(forwarder_pool(scene.forwarder), relay, &request, &ops, &why))
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
    client_world_until(&world, have_ended, NULL);
    assert_int_equal(scene.answered, count);
    assert_int_equal(scene.requests, count);
}

/* ---- setup ---- */

static int open_scene(void **state)
{
    struct failure why;
    (void)state;
    memset(&scene, 0, sizeof(scene));
    client_world_open(&world);
    assert_int_equal(vault_open(SLICE(KEY), NULL, &scene.vault, &why), OK);
    start_leader();
    const struct forwarder_options options = { .vault = scene.vault,
                                               .me = me,
                                               .leader = leader };
    scene.forwarder = forwarder_create(world.loop, &options);
    return 0;
}

static bool is_true(void *owner)
{
    return *(bool *)owner;
}

static int close_scene(void **state)
{
    (void)state;
    forwarder_close(scene.forwarder, set_true, &scene.forwarder_closed);
    client_world_until(&world, is_true, &scene.forwarder_closed);
    peer_server_close(scene.server);
    client_world_until(&world, is_true, &scene.server_closed);
    vault_close(scene.vault);
    client_world_close(&world);
    return 0;
}

/* ---- tests ---- */

/* The leader closes the oldest connection that has proved nothing for each one too many. */
static void calls_that_begin_at_once_all_get_connections(void **state)
{
    (void)state;
    for (size_t i = 0; i < MANY; i++)
        begin(&scene.relays[i], false);
    assert_int_equal(relay_pool_connections(forwarder_pool(scene.forwarder)), MANY);
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
    assert_int_equal(relay_pool_connections(forwarder_pool(scene.forwarder)), 0);
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
