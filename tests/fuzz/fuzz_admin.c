/* fuzz_admin - input of operators: lines at the socket of subcommands, or an admin request.
 *
 *   byte 0   0: lines, one connection each; 1: a request, unchanged
 *   byte 1   how a line or the request is cut
 *
 * Every line is answered with a text or "error: …", and then the connection closes. A line
 * without a newline is not answered. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/list.h"
#include "net/http/server_state.h"
#include "server/operator/admin_socket.h"
#include "server/operator/operator_call.h"
#include "server/subcommands.h"
#include "server/upkeep/key_rotation.h"
#include "tests/fuzz/judge.h"
#include "tests/support/world/api_world.h"

enum {
    INPUT_MAX = 64 * 1024,
    LINES_MAX = 8,
    LINE_LEN = 4095,
    ANSWER_MS = 30000 /* for a rotation, the longest command, on a slow machine */
};

struct office {
    struct api_world world;
    struct operators *operators;
    struct admin *admin;
    struct rotate *rotate;
    char folder[64], path[80];
};

static void office_open(struct office *office)
{
    struct failure why;
    struct api_world *world = &office->world;
    api_world_open(world);
    snprintf(office->folder, sizeof(office->folder), "/tmp/fuzz_admin.XXXXXX");
    assert(mkdtemp(office->folder));
    snprintf(office->path, sizeof(office->path), "%s/admin.sock", office->folder);
    struct operators_options options = { .commands = subcommands,
                                         .accounts = world->accounts,
                                         .writer = world->writer,
                                         .name = "fuzzed",
                                         .url = "http://127.0.0.1:3030" };
    office->operators = operators_create(&options);
    enum err refused = admin_create(&world->net.world.uv, office->path, office->operators,
                                    &office->admin, &why);
    assert(!refused);
    operators_lead(office->operators);
    office->rotate = rotate_create(world->engine, world->accounts);
    operators_serve(office->operators, office->rotate, NULL);
}

static void office_close(struct office *office)
{
    for (int i = 0; rotate_busy(office->rotate); i++) {
        assert(i < ANSWER_MS);
        poll(NULL, 0, 1); /* threads work on it */
        api_world_settle(&office->world);
    }
    admin_destroy(office->admin);
    operators_destroy(office->operators);
    rotate_destroy(office->rotate);
    api_world_settle(&office->world);
    api_world_close(&office->world);
    rmdir(office->folder);
}

static void send_all(struct office *office, int fd, struct slice bytes, size_t piece)
{
    while (bytes.len) {
        size_t most = piece && piece < bytes.len ? piece : bytes.len;
        ssize_t len = send(fd, bytes.ptr, most, MSG_NOSIGNAL);
        api_world_settle(&office->world);
        if (len < 0 && errno != EAGAIN)
            return; /* too long a line is answered before its end */
        bytes = slice_from(bytes, len > 0 ? (size_t)len : 0);
    }
}

/* Returns true if the other end has read all that was sent, and so has begun its work. */
static bool is_read(int fd)
{
    int unread = 0;
    int code = ioctl(fd, SIOCOUTQ, &unread);
    assert(!code);
    return !unread;
}

/* Returns true if the connection has closed, which it must do after a response. An
 * unanswered line must not close it once all of the line was read. */
static bool read_answer(struct office *office, int fd, bool answered, struct buf *answer)
{
    struct pollfd readable = { .fd = fd, .events = POLLIN };
    for (int i = 0; i < ANSWER_MS; i++) {
        bool all = is_read(fd) && !rotate_busy(office->rotate);
        api_world_settle(&office->world);
        char *place = buf_reserve(answer, 4096);
        ssize_t len = recv(fd, place, 4096, 0);
        if (len == 0 || (len < 0 && errno == ECONNRESET))
            return true;
        if (len > 0)
            answer->len += (size_t)len;
        else if (all && !answered)
            return false;
        else
            poll(&readable, 1, 1);
    }
    return false;
}

static void say(struct office *office, struct slice line, bool ends, size_t piece)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct buf text = { 0 }, answer = { 0 };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", office->path);
    int code = connect(fd, (struct sockaddr *)&address, sizeof(address));
    assert(fd >= 0 && !code);
    buf_add(&text, line);
    if (ends)
        buf_add_char(&text, '\n');
    send_all(office, fd, buf_slice(&text), piece);
    bool answered = ends || line.len >= LINE_LEN;
    bool ended = read_answer(office, fd, answered, &answer);
    assert(ended == answered);
    assert(ended == (answer.len > 0) || line.len >= LINE_LEN);
    close(fd);
    api_world_settle(&office->world);
    buf_finish(&text);
    buf_finish(&answer);
}

static void say_lines(struct office *office, struct slice lines, size_t piece)
{
    struct slice line;
    for (int i = 0; i < LINES_MAX && slice_split(&lines, '\n', &line); i++)
        say(office, line, lines.ptr, piece);
}

static void ask(struct office *office, struct slice request, size_t piece)
{
    struct api_world *world = &office->world;
    world->net.world.server->listeners[0].options.admin = true;
    net_fuzz_begin(&world->net);
    net_fuzz_send(&world->net, request, piece);
    if (!world->net.ended)
        api_world_settle(world);
    net_fuzz_end(&world->net);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct office office = { 0 };
    if (size < 2 || size > INPUT_MAX)
        return 0;
    struct slice rest = { (const char *)data + 2, size - 2 };
    size_t piece = data[1] ? size / 16 + data[1] : 0;
    judge_pause();
    office_open(&office);
    judge_resume();
    if (data[0] & 1)
        ask(&office, rest, piece);
    else
        say_lines(&office, rest, piece);
    judge_pause();
    office_close(&office);
    judge_resume();
    return 0;
}
