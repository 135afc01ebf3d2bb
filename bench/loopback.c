/* loopback.c - measures how long this machine takes to send a message to many receivers. */
#include "loopback.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/list.h"
#include "base/mem.h"
#include "poller.h"

enum { MESSAGE_SIZE = 512 }; /* like a poll and its response */

static const int64_t PATIENCE_NS = 5000000000;

struct loopback {
    struct poller poller;
    size_t count;
    struct end *ends;
    size_t whole; /* ends that have this round's message */
};

struct end {
    struct source source;
    struct loopback *loopback;
    size_t received; /* bytes of this round */
};

static bool move_all(int fd, bool sending, char *bytes)
{
    for (size_t done = 0; done < MESSAGE_SIZE;) {
        size_t left = MESSAGE_SIZE - done;
        ssize_t n = sending ? send(fd, bytes + done, left, MSG_NOSIGNAL)
                            : recv(fd, bytes + done, left, 0);
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

/* The child: echoes until the first connection closes. */
__attribute__((noreturn)) static void echo(const struct options *options, int listener,
                                           size_t count)
{
    int *fds = mem_new_array(int, count), on = 1;
    char message[MESSAGE_SIZE] = { 0 };
    cpu_set_t processors;
    if (options->pid &&
        sched_getaffinity((pid_t)options->pid, sizeof(processors), &processors) == 0)
        sched_setaffinity(0, sizeof(processors), &processors);
    for (size_t i = 0; i < count; i++) {
        fds[i] = accept(listener, NULL, NULL);
        setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    }
    while (move_all(fds[0], false, message)) {
        for (size_t i = 0; i < count; i++)
            move_all(fds[i], true, message);
    }
    _exit(0);
}

static void on_ready(struct source *source, uint32_t events)
{
    struct end *end = container_of(source, struct end, source);
    char bytes[MESSAGE_SIZE];
    (void)events;
    ssize_t n = recv(source->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0)
        fatal("the echo has ended: %s", n ? strerror(errno) : "hung up");
    end->received += (size_t)n;
    if (end->received == MESSAGE_SIZE)
        end->loopback->whole++;
}

static int listen_somewhere(struct sockaddr_in *address)
{
    socklen_t len = sizeof(*address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *address = (struct sockaddr_in){ .sin_family = AF_INET };
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || bind(fd, (struct sockaddr *)address, sizeof(*address)) ||
        listen(fd, SOMAXCONN) || getsockname(fd, (struct sockaddr *)address, &len))
        fatal("cannot listen on loopback: %s", strerror(errno));
    return fd;
}

static void connect_end(struct loopback *loopback, struct end *end,
                        const struct sockaddr_in *address)
{
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)address, sizeof(*address)))
        fatal("cannot connect to the echo: %s", strerror(errno));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    end->loopback = loopback;
    end->source = (struct source){ .fd = fd, .ready = on_ready };
    poller_add(&loopback->poller, &end->source, EPOLLIN);
}

static void run_round(struct loopback *loopback, struct histogram *histogram)
{
    char message[MESSAGE_SIZE] = { 0 };
    for (size_t i = 0; i < loopback->count; i++)
        loopback->ends[i].received = 0;
    loopback->whole = 0;
    int64_t start_ns = now_ns();
    move_all(loopback->ends[0].source.fd, true, message);
    while (loopback->whole < loopback->count) {
        poller_wait(&loopback->poller, start_ns + PATIENCE_NS);
        if (now_ns() - start_ns > PATIENCE_NS)
            fatal("the echo does not answer");
    }
    histogram_record(histogram, now_ns() - start_ns);
}

void loopback_measure(const struct options *options, size_t connections, size_t rounds,
                      struct histogram *histogram)
{
    struct loopback loopback = { .count = connections };
    struct sockaddr_in address;
    int listener = listen_somewhere(&address);
    pid_t child = fork();
    if (child < 0)
        fatal("cannot start the echo: %s", strerror(errno));
    if (child == 0)
        echo(options, listener, connections);
    close(listener);
    poller_init(&loopback.poller);
    loopback.ends = mem_new_array(struct end, connections);
    for (size_t i = 0; i < connections; i++)
        connect_end(&loopback, &loopback.ends[i], &address);
    histogram_clear(histogram);
    for (size_t i = 0; i < rounds; i++)
        run_round(&loopback, histogram);
    for (size_t i = 0; i < connections; i++)
        poller_close(&loopback.ends[i].source);
    poller_finish(&loopback.poller);
    free(loopback.ends);
    waitpid(child, NULL, 0);
}
