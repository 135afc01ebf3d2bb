/* peer_pair.c - a leader and a follower with the same key, or another one. */
#include "tests/support/world/unit.h"

#include "tests/support/world/peer_pair.h"

static struct vault *open_vault(const char *key)
{
    struct vault *vault;
    struct failure why;
    assert_int_equal(vault_open(slice_of(key), NULL, &vault, &why), OK);
    return vault;
}

void peer_pair_open(struct peer_pair *pair)
{
    memset(pair, 0, sizeof(*pair));
    client_world_open(&pair->world);
    pair->vault = open_vault(PEER_PAIR_KEY);
    pair->id = PEER_PAIR_LEADER;
}

/* ---- the leader ---- */

static uint64_t leader_id(void *owner)
{
    return ((struct peer_pair *)owner)->id;
}

static void on_server_closed(void *owner)
{
    ((struct peer_pair *)owner)->server_closed = true;
}

void peer_pair_start_leader(struct peer_pair *pair, const struct http_handler *calls,
                            unsigned callers_max)
{
    const struct listen_options address = { .host = "127.0.0.1" };
    struct failure why = { 0 };
    const struct peer_server_options options = { .address = &address,
                                                 .vault = pair->vault,
                                                 .callers_max = callers_max,
                                                 .leader_id = leader_id,
                                                 .closed = on_server_closed,
                                                 .owner = pair,
                                                 .calls = *calls,
                                                 .calls_owner = pair };
    if (peer_server_create(pair->world.loop, &options, &pair->server, &why))
        fail_msg("%s", why.text);
    pair->server_closed = false;
    pair->leader.id = PEER_PAIR_LEADER;
    snprintf(pair->leader.peer_url, sizeof(pair->leader.peer_url), "http://127.0.0.1:%d",
             peer_server_port(pair->server));
}

static bool is_true(void *owner)
{
    return *(bool *)owner;
}

void peer_pair_stop_leader(struct peer_pair *pair)
{
    peer_server_close(pair->server);
    client_world_until(&pair->world, is_true, &pair->server_closed);
}

/* ---- the follower ---- */

static uint64_t me(void *owner)
{
    (void)owner;
    return PEER_PAIR_FOLLOWER;
}

static const struct store_gateway *leader(void *owner)
{
    const struct peer_pair *pair = owner;
    return pair->leader.id ? &pair->leader : NULL;
}

static void on_forwarder_closed(void *owner)
{
    ((struct peer_pair *)owner)->forwarder_closed = true;
}

void peer_pair_start_follower(struct peer_pair *pair, const char *key)
{
    pair->follower_vault = open_vault(key);
    const struct forwarder_options options = {
        .vault = pair->follower_vault, .me = me, .leader = leader, .owner = pair
    };
    pair->forwarder = forwarder_create(pair->world.loop, &options);
}

void peer_pair_close(struct peer_pair *pair)
{
    if (pair->forwarder) {
        forwarder_close(pair->forwarder, on_forwarder_closed, pair);
        client_world_until(&pair->world, is_true, &pair->forwarder_closed);
    }
    peer_pair_stop_leader(pair);
    vault_close(pair->vault);
    vault_close(pair->follower_vault);
    client_world_close(&pair->world);
}
