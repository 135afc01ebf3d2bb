/* Options that connections inherit from the listening socket. */
#include "tests/support/world/unit.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/http/connection.h"
#include "net/http/server_state.h"
#include "tests/support/world/net_world.h"

static bool has_connection(void *owner)
{
    return !list_empty(&((struct net_world *)owner)->server->connections);
}

static void assert_sends_at_once(struct net_world *world)
{
    int at_once = 0;
    socklen_t len = sizeof(at_once);
    net_world_until(world, has_connection, world);
    struct list *first = world->server->connections.next;
    int fd = container_of(first, struct connection, link)->watch.fd;
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &at_once, &len), 0);
    assert_true(at_once);
}

static void small_answers_are_sent_without_delay(void **state)
{
    struct net_world world;
    struct peer peer;
    (void)state;
    net_world_open(&world, (struct server_options){ .owner = &world });
    peer_open(&world, &peer);
    assert_sends_at_once(&world);
    peer_close(&peer);
    net_world_close(&world);
}

/* The client had connected before the listener's options could be set. */
static void small_answers_to_earlier_connections_are_sent_without_delay(void **state)
{
    struct sockaddr_in any = { .sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof(any);
    int listener = socket(AF_INET, SOCK_STREAM, 0), early = socket(AF_INET, SOCK_STREAM, 0);
    struct net_world world;
    (void)state;
    assert_int_equal(bind(listener, (struct sockaddr *)&any, len), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&any, &len), 0);
    assert_int_equal(connect(early, (struct sockaddr *)&any, len), 0);
    struct listen_options handed = { .host = "127.0.0.1",
                                     .port = ntohs(any.sin_port),
                                     .handed = listener };
    net_world_open(&world, (struct server_options){ .owner = &world,
                                                    .listeners = &handed,
                                                    .listener_count = 1 });
    server_accept(world.server);
    assert_sends_at_once(&world);
    close(early);
    net_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_answers_are_sent_without_delay),
        cmocka_unit_test(small_answers_to_earlier_connections_are_sent_without_delay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
