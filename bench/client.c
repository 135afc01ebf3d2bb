/* client.c - thousands of connections that mostly receive, over any transport. */
#include "client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/list.h"
#include "base/mem.h"
#include "peer.h"
#include "secure.h"

enum { INPUT_SIZE = 1 << 18, CLIENTS_AN_ADDRESS = 5000 };

static const struct transport *const transports[] = { &ws_transport, &poll_transport,
                                                      &event_transport };

const struct transport *client_transport(const char *name)
{
    for (size_t i = 0; i < sizeof(transports) / sizeof(transports[0]); i++) {
        if (strcmp(transports[i]->name, name) == 0)
            return transports[i];
    }
    fatal("--transport: '%s' is none of ws, longpoll, sse", name);
}

void client_group_init(struct client_group *group, struct poller *poller,
                       const struct options *options, const struct client_handler *handler)
{
    *group =
        (struct client_group){ .poller = poller, .options = options, .handler = handler };
    group->transport = client_transport(options->transport);
    group->peer = options_has_peer(options) ? peer_find(options->peer) : NULL;
    group->input = mem_alloc(INPUT_SIZE);
    /* Another process uses another net, so it does not meet ports in TIME_WAIT. */
    group->source_net = 1 + (unsigned)getpid() % 0xfffe;
}

void client_group_finish(struct client_group *group)
{
    free(group->input);
}

static void forget_input(struct client *client)
{
    buf_finish(&client->rest);
    buf_finish(&client->line);
    client->rest = client->line = (struct buf){ 0 };
}

void client_fail(struct client *client, unsigned code, struct slice reason)
{
    poller_close(&client->source);
    client->state = CLIENT_CLOSED;
    client->group->handler->on_closed(client, code, reason);
    forget_input(client);
}

void client_send(struct client *client, struct slice bytes)
{
    /* Our messages are small: a full socket buffer means that the server has stopped
     * reading, which the next read or the server's own deadline reports. */
    (void)!secure_send(&client->source, bytes.ptr, bytes.len);
}

void client_close(struct client *client)
{
    const struct transport *transport = client->group->transport;
    if (client->state == CLIENT_OPEN && transport->leave)
        transport->leave(client);
    poller_close(&client->source);
    client->state = CLIENT_CLOSED;
    forget_input(client);
}

/* Takes what is complete and returns its length. */
static size_t take_input(struct client *client, struct slice in, int64_t received_ns)
{
    struct slice rest = in;
    size_t used = 1;
    while (rest.len && used && client->state != CLIENT_CLOSED) {
        used = client->group->transport->take(client, rest, received_ns);
        rest = slice_from(rest, used);
    }
    return in.len - rest.len;
}

static void read_some(struct client *client)
{
    struct client_group *group = client->group;
    ssize_t n = secure_recv(&client->source, group->input, INPUT_SIZE);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0) {
        const char *why = n < 0 ? strerror(errno) : "the server hung up";
        client_fail(client, ABNORMAL, slice_of(why));
        return;
    }
    int64_t received_ns = now_ns();
    struct slice in = { group->input, (size_t)n };
    group->reads++;
    group->bytes += in.len;
    if (client->rest.len == 0) {
        size_t used = take_input(client, in, received_ns);
        if (client->state != CLIENT_CLOSED && used < in.len)
            buf_add(&client->rest, slice_from(in, used));
        return;
    }
    buf_add(&client->rest, in);
    size_t used = take_input(client, buf_slice(&client->rest), received_ns);
    if (client->state == CLIENT_CLOSED)
        return;
    buf_drop(&client->rest, used);
    if (client->rest.len == 0) {
        buf_finish(&client->rest);
        client->rest = (struct buf){ 0 };
    }
}

static void on_ready(struct source *source, uint32_t events)
{
    struct client *client = container_of(source, struct client, source);
    if (client->state != CLIENT_CONNECTING || events & (EPOLLERR | EPOLLHUP)) {
        read_some(client);
        return;
    }
    uint32_t wanted = EPOLLIN;
    if (secure_shake(source, client->group->options, &wanted)) {
        client->state = CLIENT_BEGINNING;
        client->group->transport->connected(client);
    }
    poller_change(client->group->poller, source, wanted);
}

static bool is_loopback(const struct sockaddr_in *address)
{
    return ntohl(address->sin_addr.s_addr) >> 24 == 127;
}

static void bind_source(int fd, const struct client_group *group, size_t number)
{
    int on = 1;
    uint32_t host = 1 + (uint32_t)(number / CLIENTS_AN_ADDRESS);
    struct sockaddr_in source = { .sin_family = AF_INET };
    source.sin_addr.s_addr = htonl(127U << 24 | group->source_net << 8 | host);
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
    if (bind(fd, (struct sockaddr *)&source, sizeof(source)))
        fatal("cannot use a loopback address: %s", strerror(errno));
}

void client_open(struct client *client, struct client_group *group, size_t number,
                 const struct wish *wish)
{
    *client = (struct client){ .group = group, .number = number, .wish = *wish };
    client_come_back(client);
}

void client_come_back(struct client *client)
{
    struct client_group *group = client->group;
    const struct sockaddr_in *address = &group->options->address;
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        fatal("cannot open socket %zu: %s (ulimit -n)", client->number, strerror(errno));
    if (is_loopback(address))
        bind_source(fd, group, client->number);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    client->state = CLIENT_CONNECTING;
    client->source = (struct source){ .fd = fd, .ready = on_ready };
    if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) &&
        errno != EINPROGRESS)
        fatal("cannot connect to %s: %s", group->options->host, strerror(errno));
    poller_add(group->poller, &client->source, EPOLLOUT);
}
