/* All of HTTP/1.1 as one table: bytes in, statuses out.
 *
 * Every row is sent whole, byte by byte, and in two parts at every offset, over loopback
 * sockets. The response must be the same each time, and none may come before the last byte
 * was sent. With TLS, where each connection costs a handshake, there are fewer cuts. */
#include "tests/support/world/unit.h"

#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/http/http_reply.h"
#include "tests/support/world/net_world.h"

enum { BODY_LIMIT = 32, AT_ONCE = 100, SHORT = 1000 };

struct deferred_reply {
    struct deferred deferred;
    struct exchange *x;
};

struct scene {
    struct net_world world;
};

static void say(struct exchange *x)
{
    static const char *const methods[] = { "GET",   "HEAD",   "POST",    "PUT",
                                           "PATCH", "DELETE", "OPTIONS", "OTHER" };
    struct buf out = { 0 };
    buf_print(&out, "%s %.*s", methods[x->method], SLICE_ARG(x->path));
    if (x->query.ptr)
        buf_print(&out, "?%.*s", SLICE_ARG(x->query));
    buf_print(&out, " host=%.*s body=%.*s x=%.*s", SLICE_ARG(http_header(x, "Host")),
              SLICE_ARG(x->body), SLICE_ARG(http_header(x, "x-one")));
    http_reply(x, 200, SLICE("content-type: text/plain\r\n"), buf_slice(&out));
    buf_finish(&out);
}

static void on_later(struct deferred *deferred)
{
    struct deferred_reply *reply = container_of(deferred, struct deferred_reply, deferred);
    say(reply->x);
    free(reply);
}

static void on_head(void *owner, struct exchange *x)
{
    (void)owner;
    x->body_limit = slice_is(x->path, "/none") ? 0 : BODY_LIMIT;
    x->stream_body = slice_is(x->path, "/pieces");
    if (slice_is(x->path, "/early"))
        http_reply_refusal(x, (struct http_fault){ 401, "who are you?" },
                           (struct slice){ 0 });
}

static void on_body(void *owner, struct exchange *x, struct slice piece)
{
    (void)owner;
    size_t *len = x->call ? x->call : mem_new(size_t);
    x->call = len;
    *len += piece.len;
}

static void reply_pieces(struct exchange *x)
{
    char text[40];
    size_t *len = x->call;
    snprintf(text, sizeof(text), "%zu in pieces", len ? *len : 0);
    free(len);
    http_reply(x, 200, (struct slice){ 0 }, slice_of(text));
}

static void reply_stream(struct exchange *x)
{
    http_stream_begin(x, 200, SLICE("content-type: text/event-stream\r\n"));
    http_stream_write(x, SLICE("one "));
    http_stream_write(x, SLICE("and two"));
    http_stream_end(x);
}

static void on_request(void *owner, struct exchange *x)
{
    struct scene *scene = owner;
    if (slice_is(x->path, "/later")) {
        struct deferred_reply *reply = mem_new(struct deferred_reply);
        reply->x = x;
        reply->deferred.fn = on_later;
        loop_defer(scene->world.loop, &reply->deferred);
    } else if (slice_is(x->path, "/pieces")) {
        reply_pieces(x);
    } else if (slice_is(x->path, "/stream")) {
        reply_stream(x);
    } else if (slice_is(x->path, "/204") || slice_is(x->path, "/304")) {
        http_reply(x, slice_is(x->path, "/204") ? 204 : 304, (struct slice){ 0 },
                   SLICE("never sent"));
    } else {
        say(x);
    }
}

/* Replies to an exchange that the peer has given up. */
static void on_gone(void *owner, struct exchange *x)
{
    (void)owner;
    free(x->call);
    x->call = NULL;
    if (!slice_is(x->path, "/later"))
        http_reply(x, 500, (struct slice){ 0 }, SLICE("nobody reads this"));
}

/* Whether the connection stays open after the expected statuses. */
enum after { KEPT, CLOSED };

static const struct row {
    const char *name, *bytes, *statuses;
    enum after after;
    const char *text; /* part of the response */
} rows[] = {
#include "tests/unit/net/http/http_requests.def"
};

struct trial {
    struct peer peer;
    const struct row *row;
    struct slice bytes;
    size_t cut; /* length of the first part; 0: byte by byte */
};

/* Removes the dates from the response, because they change every second. */
static void drop_dates(struct buf *answer)
{
    char *at;
    while (answer->len && (at = memmem(answer->ptr, answer->len, "date: ", 6))) {
        size_t place = (size_t)(at - answer->ptr), len = strlen("date:  GMT\r\n") + 25;
        memmove(at, at + len, answer->len - place - len);
        answer->len -= len;
    }
}

static void get_statuses(const struct buf *answer, char out[64])
{
    struct slice rest = buf_slice(answer);
    size_t len = 0;
    const char *at;
    out[0] = 0;
    while ((at = memmem(rest.ptr, rest.len, "HTTP/1.1 ", 9)) && len < 56) {
        if (at[9] >= '1' && at[9] <= '5')
            len += (size_t)snprintf(out + len, 5, len ? " %.3s" : "%.3s", at + 9);
        rest = slice_from(rest, (size_t)(at - rest.ptr) + 9);
    }
}

static bool is_answered(void *owner)
{
    struct trial *trial = owner;
    char statuses[64];
    peer_read(&trial->peer);
    get_statuses(&trial->peer.got, statuses);
    if (trial->row->after == CLOSED)
        return trial->peer.ended;
    return trial->peer.ended || strlen(statuses) >= strlen(trial->row->statuses);
}

static void check_answer(struct net_world *world, struct trial *trial)
{
    const struct row *row = trial->row;
    struct peer *peer = &trial->peer;
    char statuses[64];
    bool answered = net_world_waits(world, is_answered, trial);
    get_statuses(&peer->got, statuses);
    struct slice got = buf_slice(&peer->got);
    if (!answered || strcmp(statuses, row->statuses) != 0 ||
        peer->ended != (row->after == CLOSED) || peer->reset ||
        (row->text && !peer_has(peer, row->text)))
        fail_msg("%s (cut at %zu): '%s'%s\n%.*s", row->name, trial->cut, statuses,
                 peer->reset   ? " reset"
                 : peer->ended ? " closed"
                               : "",
                 SLICE_ARG(got));
    if (row->after == CLOSED && !peer_has(peer, "connection: close\r\n"))
        fail_msg("%s: the end is not announced", row->name);
    if (statuses[0] && strchr("45", statuses[strlen(statuses) - 3]) &&
        !peer_has(peer, "{\"error\":\""))
        fail_msg("%s: no reason is given\n%.*s", row->name, SLICE_ARG(got));
    drop_dates(&peer->got);
}

static void send_trial(struct net_world *world, struct trial *trial)
{
    peer_send(world, &trial->peer, (struct slice){ trial->bytes.ptr, trial->cut });
    net_world_turn(world);
    peer_send(world, &trial->peer, slice_from(trial->bytes, trial->cut));
}

/* Runs several trials at the same time, each on its own connection. */
static void send_in_two(struct net_world *world, struct trial *trials, size_t count)
{
    for (size_t i = 0; i < count; i++)
        peer_open(world, &trials[i].peer);
    for (size_t i = 0; i < count; i++)
        peer_send(world, &trials[i].peer,
                  (struct slice){ trials[i].bytes.ptr, trials[i].cut });
    net_world_turn(world);
    for (size_t i = 0; i < count; i++)
        peer_send(world, &trials[i].peer, slice_from(trials[i].bytes, trials[i].cut));
}

static void check_same(struct net_world *world, struct trial *trial,
                       const struct buf *whole)
{
    check_answer(world, trial);
    if (!slice_equal(buf_slice(&trial->peer.got), buf_slice(whole)))
        fail_msg("%s (cut at %zu) is answered in another way:\n%.*s\nnot\n%.*s",
                 trial->row->name, trial->cut, SLICE_ARG(buf_slice(&trial->peer.got)),
                 SLICE_ARG(buf_slice(whole)));
    peer_close(&trial->peer);
}

static struct trial trial_of(const struct row *row, struct slice bytes)
{
    return (struct trial){ .row = row, .bytes = bytes, .cut = bytes.len };
}

static void check_cuts(struct net_world *world, const struct row *row, struct slice bytes,
                       const struct buf *whole)
{
    static struct trial trials[AT_ONCE];
    size_t step = bytes.len / (net_world_is_secure() ? 20 : 400) + 1, count = 0;
    for (size_t cut = 1; cut < bytes.len; cut += step) {
        trials[count] = trial_of(row, bytes);
        trials[count++].cut = cut;
        if (count < AT_ONCE && cut + step < bytes.len)
            continue;
        send_in_two(world, trials, count);
        for (size_t i = 0; i < count; i++)
            check_same(world, &trials[i], whole);
        count = 0;
    }
}

static void check_octets(struct net_world *world, const struct row *row, struct slice bytes,
                         const struct buf *whole)
{
    struct trial trial = trial_of(row, bytes);
    trial.cut = 0;
    peer_open(world, &trial.peer);
    for (size_t i = 0; i < bytes.len; i++) {
        peer_send(world, &trial.peer, (struct slice){ bytes.ptr + i, 1 });
        uv_run(&world->uv, UV_RUN_NOWAIT);
        if (row->after == KEPT && !strchr(row->statuses, ' ') && i + 1 < bytes.len &&
            peer_has(&trial.peer, "H"))
            fail_msg("%s is answered after %zu bytes", row->name, i + 1);
    }
    check_same(world, &trial, whole);
}

static void check_row(struct net_world *world, const struct row *row, struct slice bytes)
{
    struct trial whole = trial_of(row, bytes);
    peer_open(world, &whole.peer);
    send_trial(world, &whole);
    check_answer(world, &whole);
    check_cuts(world, row, bytes, &whole.peer.got);
    if (!net_world_is_secure() || bytes.len <= SHORT)
        check_octets(world, row, bytes, &whole.peer.got);
    peer_close(&whole.peer);
}

static void open_scene(struct scene *scene)
{
    net_world_open(&scene->world, (struct server_options){
                                      .handler = { .on_head = on_head,
                                                   .on_body = on_body,
                                                   .on_request = on_request,
                                                   .on_gone = on_gone },
                                      .owner = scene,
                                  });
}

static void every_request_gets_the_same_answer_however_it_is_cut(void **state)
{
    struct scene scene;
    (void)state;
    open_scene(&scene);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check_row(&scene.world, &rows[i], slice_of(rows[i].bytes));
    net_world_close(&scene.world);
}

static struct slice repeat(struct buf *out, const char *head, const char *part,
                           size_t count, const char *tail)
{
    buf_clear(out);
    buf_add_text(out, head);
    for (size_t i = 0; i < count; i++)
        buf_add_text(out, part);
    buf_add_text(out, tail);
    return buf_slice(out);
}

static const struct {
    struct row row;
    const char *head, *part;
    size_t count;
    const char *tail;
} large[] = {
    { { "a target of 8 KiB", NULL, "200", KEPT, NULL },
      "GET /",
      "a",
      8191,
      " HTTP/1.1\r\n" H E },
    { { "a longer target", NULL, "414", CLOSED, "too long" },
      "GET /",
      "a",
      8192,
      " HTTP/1.1\r\n" H E },
    { { "a target of 64 KiB", NULL, "414", CLOSED, "too long" },
      "GET /",
      "a",
      30000,
      " HTTP/1.1\r\n" H E },
    { { "100 headers", NULL, "200", KEPT, NULL }, GET, "x: y\r\n", 99, E },
    { { "101 headers", NULL, "431", CLOSED, "fewer" }, GET, "x: y\r\n", 100, E },
    { { "10,000 headers", NULL, "431", CLOSED, "fewer" }, GET, "x:\r\n", 5000, E },
    { { "a head of 16 KiB", NULL, "200", KEPT, NULL },
      GET "X: ",
      "a",
      16384 - sizeof(GET "X: \r\n" E) + 1,
      "\r\n" E },
    { { "a larger head", NULL, "431", CLOSED, "too large" },
      GET "X: ",
      "a",
      16384 - sizeof(GET "X: \r\n" E) + 2,
      "\r\n" E },
    { { "a header of 30 KB", NULL, "431", CLOSED, "too large" },
      GET "X: ",
      "a",
      30000,
      "\r\n" E },
    { { "a chunk extension of 30 KB", NULL, "400", CLOSED, "extensions" },
      CHUNKED "1;",
      "a",
      30000,
      "\r\n" },
    { { "trailers of 30 KB", NULL, "400", CLOSED, "trailers" },
      CHUNKED "0\r\n",
      "abcdefg: hijklmnop\r\n",
      1500,
      "\r\n" },
};

static void large_heads_are_rejected_at_their_limits(void **state)
{
    struct scene scene;
    struct buf bytes = { 0 };
    (void)state;
    open_scene(&scene);
    for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++)
        check_row(
            &scene.world, &large[i].row,
            repeat(&bytes, large[i].head, large[i].part, large[i].count, large[i].tail));
    buf_finish(&bytes);
    net_world_close(&scene.world);
}

static void nul_bytes_are_rejected(void **state)
{
    static const struct {
        struct row row;
        struct slice bytes;
    } zeros[] = {
        { { "in a value", NULL, "400", CLOSED, NULL }, SLICE(GET "X: \0\r\n" E) },
        { { "in a name", NULL, "400", CLOSED, NULL }, SLICE(GET "X\0: 1\r\n" E) },
        { { "in the target", NULL, "400", CLOSED, NULL },
          SLICE("GET /\0 HTTP/1.1\r\n" H E) },
        { { "in front", NULL, "400", CLOSED, NULL }, SLICE("\0" GET E) },
        { { "in a length", NULL, "400", CLOSED, NULL },
          SLICE(POST "Content-Length: 1\0\r\n") },
    };
    struct scene scene;
    (void)state;
    open_scene(&scene);
    for (size_t i = 0; i < sizeof(zeros) / sizeof(zeros[0]); i++)
        check_row(&scene.world, &zeros[i].row, zeros[i].bytes);
    net_world_close(&scene.world);
}

/* The received part of a request that never ends is freed with its connection. */
static void unfinished_request_is_freed_with_its_connection(void **state)
{
    static const char *const parts[] = { "G", "GET / HTTP/1.1\r\nHost: ",
                                         POST "Content-Length: 5\r\n" E "hell",
                                         CHUNKED "5\r\nhello\r\n0\r\n" };
    struct scene scene;
    (void)state;
    open_scene(&scene);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        struct peer peer;
        peer_open(&scene.world, &peer);
        peer_send(&scene.world, &peer, slice_of(parts[i]));
        net_world_turn(&scene.world);
        assert_false(peer_has(&peer, "H"));
        assert_false(peer.ended);
        peer_close(&peer);
        net_world_turn(&scene.world);
    }
    assert_true(server_is_idle(scene.world.server));
    net_world_close(&scene.world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_request_gets_the_same_answer_however_it_is_cut),
        cmocka_unit_test(large_heads_are_rejected_at_their_limits),
        cmocka_unit_test(nul_bytes_are_rejected),
        cmocka_unit_test(unfinished_request_is_freed_with_its_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
