/* floor.c - the cheapest server that could do a gateway's fan-out: the cost of the kernel.
 *
 *   accept ─► upgrade ─► {"op":"sub"}: ok ─► {"op":"start"} from one client
 *   at every instant of the given rate:
 *       build one frame ─► for every connection: send(fd, frame)
 *                          or, with --ring, the same through io_uring, many per system call
 *       or, if start has "one": only for the connection whose turn it is
 *   in the end: {"op":"done","count":sends,"cpu_ns":…} to the client that sent start
 *   any other request: its body is discarded; the response is always the same 1 KiB
 *
 * One thread, epoll, no allocation, no queue, no topics, no durability, no pings: a
 * gateway's additional cost is its own. The same runcast-bench measures both, so the
 * handshake and the frames are those of runs.v1. It accepts only the nonce that
 * runcast-bench sends and must not be used for anything else. */
#include <arpa/inet.h>
#include <errno.h>
#include <liburing.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    FD_MAX = 20000,
    INPUT_MAX = 1024,
    FRAME_MAX = 65536 + 4,
    EVENTS_A_TURN = 512,
    BACKLOG = 4096,
    SENDS_AT_ONCE = 128, /* through the ring */
    ANSWER_BYTES = 1024, /* head and body */
};

static const int64_t NS_PER_S = 1000000000;

static const char ACCEPTED[] = "HTTP/1.1 101 Switching Protocols\r\n"
                               "Upgrade: websocket\r\nConnection: Upgrade\r\n"
                               "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
                               "Sec-WebSocket-Protocol: runs.v1.json\r\n\r\n";

static const char ANSWER_HEAD[] = "HTTP/1.1 200 OK\r\ncontent-length: 984\r\n\r\n";
_Static_assert(sizeof(ANSWER_HEAD) - 1 + 984 == ANSWER_BYTES,
               "the length is that of the rest");

struct connection {
    bool open, upgraded, subscribed;
    size_t place;      /* in floor::listeners */
    size_t body_bytes; /* rest of a request's body, to be discarded */
    size_t len;        /* of input */
    char input[INPUT_MAX + 1];
};

struct floor {
    int epoll, listener;
    struct connection connections[FD_MAX]; /* by descriptor */
    int listeners[FD_MAX];
    size_t listener_count;

    bool rings; /* send through the ring */
    struct io_uring ring;

    int asker; /* the client that sent start; -1: none yet */
    int64_t interval_ns, next_ns, burst, wanted, bytes;
    int64_t ahead;     /* changes that may be made; INT64_MAX: all of them */
    bool one;          /* send each change to the next listener only */
    int64_t made;      /* changes */
    int64_t delivered; /* sends that succeeded completely */
    int64_t cpu_before_ns;
    char frame[FRAME_MAX];
    char answer[ANSWER_BYTES];
};

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

__attribute__((noreturn)) static void give_up(const char *what)
{
    fprintf(stderr, "runcast-floor: cannot %s: %s\n", what, strerror(errno));
    exit(1);
}

static void forget(struct floor *floor, int fd)
{
    struct connection *conn = &floor->connections[fd];
    if (conn->subscribed) {
        int last = floor->listeners[--floor->listener_count];
        floor->listeners[conn->place] = last;
        floor->connections[last].place = conn->place;
    }
    conn->open = conn->upgraded = conn->subscribed = false;
    close(fd);
}

/* Puts the header before a payload at frame + 4; returns the first byte of the frame. */
static char *add_header(char *frame, size_t payload_len, size_t *frame_len)
{
    char *start = payload_len < 126 ? frame + 2 : frame;
    start[0] = (char)0x81; /* final, text */
    if (payload_len < 126) {
        start[1] = (char)payload_len;
    } else {
        start[1] = 126;
        start[2] = (char)(payload_len >> 8);
        start[3] = (char)payload_len;
    }
    *frame_len = payload_len + (size_t)(frame + 4 - start);
    return start;
}

static bool send_text(int fd, const char *text)
{
    char frame[INPUT_MAX];
    size_t len = strlen(text), frame_len;
    memcpy(frame + 4, text, len);
    char *start = add_header(frame, len, &frame_len);
    return send(fd, start, frame_len, MSG_NOSIGNAL) == (ssize_t)frame_len;
}

/* Sends to the listeners from first to before last. */
static void send_to_each(struct floor *floor, size_t first, size_t last, const char *frame,
                         size_t len)
{
    for (size_t i = first; i < last; i++) {
        ssize_t n = send(floor->listeners[i], frame, len, MSG_NOSIGNAL);
        floor->delivered += n == (ssize_t)len;
    }
}

/* Submits the sends; as they do not wait, they are done when it returns. */
static void submit(struct floor *floor, size_t len)
{
    struct io_uring_cqe *cqe;
    unsigned head, count = 0;
    if (io_uring_submit(&floor->ring) < 0)
        give_up("submit");
    io_uring_for_each_cqe(&floor->ring, head, cqe)
    {
        floor->delivered += cqe->res == (int)len;
        count++;
    }
    io_uring_cq_advance(&floor->ring, count);
}

static void send_by_ring(struct floor *floor, size_t first, size_t last, const char *frame,
                         size_t len)
{
    for (size_t i = first; i < last; i++) {
        struct io_uring_sqe *sqe = io_uring_get_sqe(&floor->ring);
        io_uring_prep_send(sqe, floor->listeners[i], frame, len,
                           MSG_NOSIGNAL | MSG_DONTWAIT);
        if ((i - first) % SENDS_AT_ONCE == SENDS_AT_ONCE - 1)
            submit(floor, len);
    }
    submit(floor, len);
}

/* Sends one change: builds the frame once and sends it to each listener, or to one. Numbers
 * are padded with spaces, so that all frames have the requested size. */
static void broadcast(struct floor *floor, int64_t intended_ns)
{
    char *payload = floor->frame + 4;
    size_t count = floor->listener_count, first = 0, last = count;
    long long number = floor->made;
    if (floor->one && count) { /* each of them has its own numbers */
        first = (size_t)floor->made % count;
        last = first + 1;
        number = floor->made / (int64_t)count + 1;
    }
    int len = snprintf(payload, FRAME_MAX - 4,
                       "{\"op\":\"patch\",\"seq\":%8lld,\"rows\":[[\"run_floor\",%8lld,"
                       "{\"metadata\":{\"n\":%lld},\"pad\":\"",
                       number, number, (long long)intended_ns);
    static const char END[] = "\"}]]}";
    size_t at = (size_t)len, end_len = sizeof(END) - 1;
    while (at + end_len < (size_t)floor->bytes)
        payload[at++] = 'x';
    memcpy(payload + at, END, end_len);
    size_t frame_len;
    char *start = add_header(floor->frame, at + end_len, &frame_len);

    if (floor->rings)
        send_by_ring(floor, first, last, start, frame_len);
    else
        send_to_each(floor, first, last, start, frame_len);
}

static void report_done(struct floor *floor)
{
    char text[160];
    int64_t cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - floor->cpu_before_ns;
    snprintf(text, sizeof(text), "{\"op\":\"done\",\"count\":%lld,\"cpu_ns\":%lld}",
             (long long)floor->delivered, (long long)cpu_ns);
    send_text(floor->asker, text);
    floor->asker = -1;
}

static bool may_make(const struct floor *floor)
{
    return floor->asker >= 0 && floor->made < floor->ahead;
}

/* Makes the changes that are due. */
static void deadlines_on_due(struct floor *floor)
{
    while (may_make(floor) && clock_ns(CLOCK_MONOTONIC) >= floor->next_ns) {
        for (int64_t i = 0; i < floor->burst; i++) {
            floor->made++;
            broadcast(floor, floor->next_ns);
        }
        floor->next_ns += floor->interval_ns;
        if (floor->made >= floor->wanted)
            report_done(floor);
    }
}

static int64_t number_after(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    return at ? strtoll(at + strlen(key), NULL, 10) : 0;
}

static void start(struct floor *floor, int fd, const char *text)
{
    floor->interval_ns = number_after(text, "\"interval_ns\":");
    floor->burst = number_after(text, "\"burst\":");
    floor->wanted = number_after(text, "\"count\":");
    floor->bytes = number_after(text, "\"bytes\":");
    floor->ahead = number_after(text, "\"ahead\":");
    floor->one = number_after(text, "\"one\":");
    if (!floor->ahead)
        floor->ahead = INT64_MAX;
    if (floor->interval_ns < 1 || floor->burst < 1 || floor->bytes > FRAME_MAX - 4) {
        forget(floor, fd);
        return;
    }
    floor->asker = fd;
    floor->made = floor->delivered = 0;
    floor->next_ns = clock_ns(CLOCK_MONOTONIC) + floor->interval_ns;
    floor->cpu_before_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static void take_text(struct floor *floor, int fd, const char *text)
{
    struct connection *conn = &floor->connections[fd];
    if (strstr(text, "\"op\":\"start\"")) {
        start(floor, fd, text);
    } else if (strstr(text, "\"op\":\"next\"")) {
        floor->ahead++;
    } else if (strstr(text, "\"op\":\"sub\"") && !conn->subscribed) {
        conn->subscribed = true;
        conn->place = floor->listener_count;
        floor->listeners[floor->listener_count++] = fd;
        send_text(fd, "{\"op\":\"ok\",\"id\":1,\"mode\":\"snapshot\",\"count\":0}");
    }
}

/* Takes one masked frame from the front of the input; returns its length, or 0 if
 * incomplete. */
static size_t take_frame(struct floor *floor, int fd)
{
    struct connection *conn = &floor->connections[fd];
    const unsigned char *in = (const unsigned char *)conn->input;
    char text[INPUT_MAX];
    if (conn->len < 6)
        return 0;
    size_t len = in[1] & 127, at = 2;
    if (len == 126) {
        len = (size_t)in[2] << 8 | in[3];
        at = 4;
    }
    if (len >= sizeof(text) || conn->len < at + 4 + len)
        return 0;
    for (size_t i = 0; i < len; i++)
        text[i] = (char)(in[at + 4 + i] ^ in[at + i % 4]);
    text[len] = 0;
    if ((in[0] & 15) == 1)
        take_text(floor, fd, text);
    return at + 4 + len;
}

static void answer(struct floor *floor, int fd)
{
    (void)!send(fd, floor->answer, sizeof(floor->answer), MSG_NOSIGNAL);
}

static const char LENGTH[] = "\r\ncontent-length:";

/* Takes the head of a request; returns its length, or 0 if incomplete. */
static size_t take_head(struct floor *floor, int fd)
{
    struct connection *conn = &floor->connections[fd];
    conn->input[conn->len] = '\0';
    const char *end = strstr(conn->input, "\r\n\r\n");
    if (!end)
        return 0;
    const char *upgrade = strstr(conn->input, "\r\nUpgrade:");
    if (upgrade && upgrade < end) {
        conn->upgraded = true;
        (void)!send(fd, ACCEPTED, sizeof(ACCEPTED) - 1, MSG_NOSIGNAL);
    } else {
        const char *length = strcasestr(conn->input, LENGTH);
        bool has_body = length && length < end;
        conn->body_bytes = has_body ? strtoul(length + sizeof(LENGTH) - 1, NULL, 10) : 0;
        if (!conn->body_bytes)
            answer(floor, fd);
    }
    return (size_t)(end - conn->input) + 4;
}

static size_t take_body(struct floor *floor, int fd)
{
    struct connection *conn = &floor->connections[fd];
    size_t used = conn->len < conn->body_bytes ? conn->len : conn->body_bytes;
    conn->body_bytes -= used;
    if (!conn->body_bytes)
        answer(floor, fd);
    return used;
}

static size_t take_some(struct floor *floor, int fd)
{
    const struct connection *conn = &floor->connections[fd];
    if (conn->upgraded)
        return take_frame(floor, fd);
    return conn->body_bytes ? take_body(floor, fd) : take_head(floor, fd);
}

static void read_some(struct floor *floor, int fd)
{
    struct connection *conn = &floor->connections[fd];
    ssize_t n = recv(fd, conn->input + conn->len, INPUT_MAX - conn->len, 0);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0) {
        forget(floor, fd);
        return;
    }
    conn->len += (size_t)n;
    size_t used = 1;
    while (conn->open && used && conn->len) {
        used = take_some(floor, fd);
        conn->len -= used;
        memmove(conn->input, conn->input + used, conn->len);
    }
}

static void accept_all(struct floor *floor)
{
    int fd, on = 1;
    while ((fd = accept4(floor->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        if (fd >= FD_MAX) {
            close(fd);
            continue;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        struct connection *conn = &floor->connections[fd];
        conn->open = true;
        conn->upgraded = conn->subscribed = false;
        conn->len = conn->body_bytes = 0;
        struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };
        if (epoll_ctl(floor->epoll, EPOLL_CTL_ADD, fd, &event))
            give_up("watch a connection");
    }
}

static void wait_and_serve(struct floor *floor)
{
    struct epoll_event events[EVENTS_A_TURN];
    struct timespec left = { .tv_sec = 3600 };
    if (may_make(floor)) {
        int64_t left_ns = floor->next_ns - clock_ns(CLOCK_MONOTONIC);
        left_ns = left_ns < 0 ? 0 : left_ns;
        left = (struct timespec){ left_ns / NS_PER_S, left_ns % NS_PER_S };
    }
    int count = epoll_pwait2(floor->epoll, events, EVENTS_A_TURN, &left, NULL);
    for (int i = 0; i < count; i++) {
        int fd = events[i].data.fd;
        if (fd == floor->listener)
            accept_all(floor);
        else if (floor->connections[fd].open)
            read_some(floor, fd);
    }
    deadlines_on_due(floor);
}

static void listen_on(struct floor *floor, uint16_t port)
{
    int on = 1;
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    floor->epoll = epoll_create1(EPOLL_CLOEXEC);
    floor->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (floor->epoll < 0 || floor->listener < 0)
        give_up("open a socket");
    setsockopt(floor->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(floor->listener, (struct sockaddr *)&address, sizeof(address)) ||
        listen(floor->listener, BACKLOG))
        give_up("listen");
    struct epoll_event event = { .events = EPOLLIN, .data.fd = floor->listener };
    if (epoll_ctl(floor->epoll, EPOLL_CTL_ADD, floor->listener, &event))
        give_up("watch the listener");
}

int main(int argc, char **argv)
{
    static struct floor floor = { .asker = -1 };
    floor.rings = argc == 4 && strcmp(argv[3], "--ring") == 0;
    bool is_call = (argc == 3 || floor.rings) && strcmp(argv[1], "--port") == 0;
    long port = is_call ? strtol(argv[2], NULL, 10) : 0;
    if (port < 1 || port > 65535) {
        fputs("usage: runcast-floor --port N [--ring]\n", stderr);
        return 2;
    }
    unsigned flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
    if (floor.rings && (errno = -io_uring_queue_init(SENDS_AT_ONCE, &floor.ring, flags)))
        give_up("make a ring");
    memset(floor.answer, 'x', sizeof(floor.answer));
    memcpy(floor.answer, ANSWER_HEAD, sizeof(ANSWER_HEAD) - 1);
    listen_on(&floor, (uint16_t)port);
    printf("runcast-floor listens on 127.0.0.1:%ld\n", port);
    fflush(stdout);
    for (;;)
        wait_and_serve(&floor);
}
