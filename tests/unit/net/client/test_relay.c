/* Requests that are relayed piece by piece over real sockets; the test plays the server. It
 * covers both directions when either side is slow, cancellation at each step, and everything
 * that a server must not send. */
#include "tests/support/world/unit.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/client/relay.h"
#include "tests/support/world/client_world.h"

enum { LONG = 4 << 20, ENDLESS = 1 << 30 /* more than buffers of sockets hold */ };
static const struct slice filler = { (const char[64 * 1024]){ 0 }, 64 * 1024 };
static struct client_world world;
static struct relay_pool *pool;

/* A request and what its owner got. */
static struct call {
    struct relay relay;
    unsigned ready, heads, ends;
    int status;
    size_t header_count;
    struct buf got;
    enum err error;
    char why[320];
    bool cancels_at_head, cancels_at_piece, pauses_at_piece;
} call, other;

static struct call *of(struct relay *relay)
{
    return container_of(relay, struct call, relay);
}

static void on_ready(struct relay *relay)
{
    of(relay)->ready++;
}

static void on_head(struct relay *relay, int status, const struct http_header *headers,
                    size_t count)
{
    (void)headers;
    of(relay)->heads++;
    of(relay)->status = status;
    of(relay)->header_count = count;
    if (of(relay)->cancels_at_head)
        relay_cancel(relay);
}

static void on_piece(struct relay *relay, struct slice piece)
{
    assert_int_equal(of(relay)->ends, 0);
    buf_add(&of(relay)->got, piece);
    if (of(relay)->cancels_at_piece)
        relay_cancel(relay);
    else if (of(relay)->pauses_at_piece)
        relay_pause(relay, true);
}

static void on_end(struct relay *relay, enum err error, const char *why)
{
    of(relay)->ends++;
    of(relay)->error = error;
    snprintf(of(relay)->why, sizeof(of(relay)->why), "%s", why);
}

static const struct relay_ops ops = { on_ready, on_head, on_piece, on_end, NULL };

static void open_pool(struct relay_pool_options options)
{
    struct failure why;
    options.url = &world.url;
    assert_int_equal(relay_pool_create(world.loop, &options, &pool, &why), OK);
}

static int open_world(void **state)
{
    (void)state;
    client_world_open(&world);
    call = other = (struct call){ 0 };
    open_pool((struct relay_pool_options){ 0 });
    return 0;
}

static void on_pool_closed(void *owner)
{
    *(struct relay_pool **)owner = NULL;
}

static bool pool_is_closed(void *owner)
{
    return !*(struct relay_pool **)owner;
}

static void close_pool(void)
{
    relay_pool_close(pool, on_pool_closed, &pool);
    client_world_until(&world, pool_is_closed, &pool);
}

static int close_world(void **state)
{
    (void)state;
    relay_cancel(&call.relay);
    relay_cancel(&other.relay);
    close_pool();
    client_world_close(&world);
    buf_finish(&call.got);
    buf_finish(&other.got);
    return 0;
}

static void begin(struct call *one, struct relay_request request)
{
    struct failure why;
    request.method = request.method ? request.method : "GET";
    request.target = request.target.ptr ? request.target : SLICE("/");
    if (relay_begin(pool, &one->relay, &request, &ops, &why))
        fail_msg("%s", why.text);
}

/* Begins a request without a body, on a new connection. */
static void begin_get(struct call *one, struct far *far)
{
    begin(one, (struct relay_request){ 0 });
    relay_finish(&one->relay);
    far_accept(&world, far);
    far_await(&world, far, "\r\n\r\n");
}

static bool has_ended(void *owner)
{
    return ((struct call *)owner)->ends > 0;
}

static bool has_head(void *owner)
{
    return ((struct call *)owner)->heads > 0;
}

static void expect(struct call *one, int status, const char *body)
{
    client_world_until(&world, has_ended, one);
    if (one->error)
        fail_msg("%s", one->why);
    assert_int_equal(one->ends, 1);
    assert_int_equal(one->heads, 1);
    assert_int_equal(one->status, status);
    if (!slice_is(buf_slice(&one->got), body))
        fail_msg("not '%s' but '%.*s'", body, SLICE_ARG(buf_slice(&one->got)));
}

static void expect_error(struct call *one, enum err error, const char *why)
{
    client_world_until(&world, has_ended, one);
    assert_int_equal(one->ends, 1);
    if (one->error != error || !strstr(one->why, why))
        fail_msg("not '%s' but '%s': %s", why, errors[one->error].text, one->why);
}

static void a_request_and_its_response_pass_through(void **state)
{
    struct far far;
    const struct http_header headers[] = { { SLICE("Host"), SLICE("runs.example") },
                                           { SLICE("X-Twice"), SLICE("a") },
                                           { SLICE("X-Twice"), SLICE("b\tc") } };
    (void)state;
    begin(&call, (struct relay_request){ .method = "POST",
                                         .target = SLICE("/a?b=c"),
                                         .headers = headers,
                                         .header_count = 3,
                                         .has_length = true,
                                         .length = 5 });
    assert_true(relay_write(&call.relay, SLICE("he")));
    far_accept(&world, &far);
    far_await(&world, &far, "\r\n\r\nhe");
    assert_true(relay_write(&call.relay, SLICE("llo")));
    relay_finish(&call.relay);
    far_await(&world, &far, "hello");
    assert_true(slice_is(buf_slice(&far.got),
                         "POST /a?b=c HTTP/1.1\r\nHost: runs.example\r\n"
                         "X-Twice: a\r\nX-Twice: b\tc\r\n"
                         "content-length: 5\r\n\r\nhello"));
    far_say(&world, &far, "HTTP/1.1 201 Made\r\nA: 1\r\ncontent-length: 4\r\n\r\n");
    client_world_until(&world, has_head, &call);
    assert_int_equal(call.ends, 0);
    far_say(&world, &far, "do");
    far_say(&world, &far, "ne");
    expect(&call, 201, "done");
    assert_int_equal(call.header_count, 2);
    far_close(&far);
}

static void a_body_of_unknown_length_is_sent_in_chunks(void **state)
{
    struct far far;
    (void)state;
    begin(&call, (struct relay_request){ .method = "PUT", .chunked = true });
    relay_write(&call.relay, SLICE("0123456789abcdef!"));
    relay_write(&call.relay, SLICE(""));
    relay_finish(&call.relay);
    relay_finish(&call.relay);
    far_accept(&world, &far);
    far_await(&world, &far, "\r\n\r\n11\r\n0123456789abcdef!\r\n0\r\n\r\n");
    far_say(&world, &far,
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
            "2\r\non\r\n1\r\ne\r\n0\r\n\r\n");
    expect(&call, 200, "one");
    far_close(&far);
}

/* ---- connections ---- */

static void connections_are_reused(void **state)
{
    struct far far;
    (void)state;
    begin_get(&call, &far);
    far_say(&world, &far, "HTTP/1.1 204 No\r\n\r\n");
    expect(&call, 204, "");
    buf_clear(&far.got);
    begin(&other, (struct relay_request){ .method = "HEAD" });
    relay_finish(&other.relay);
    far_await(&world, &far, "HEAD / HTTP/1.1\r\n\r\n");
    far_say(&world, &far, "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n");
    expect(&other, 200, "");
    assert_int_equal(relay_pool_connections(pool), 1);
    assert_true(far_is_alone(&world));
    far_close(&far);
}

static void each_request_in_progress_has_its_own_connection(void **state)
{
    struct far first, second;
    struct failure why;
    struct call third = { 0 };
    (void)state;
    close_pool();
    open_pool((struct relay_pool_options){ .connections_max = 2 });
    begin(&call, (struct relay_request){ 0 });
    begin(&other, (struct relay_request){ 0 });
    const struct relay_request more = { .method = "GET", .target = SLICE("/") };
    assert_int_equal(relay_begin(pool, &third.relay, &more, &ops, &why), ERR_BUSY);
    far_accept(&world, &first);
    far_accept(&world, &second);
    far_await(&world, &first, "\r\n\r\n");
    far_await(&world, &second, "\r\n\r\n");
    far_close(&first);
    far_close(&second);
    expect_error(&call, ERR_LOST, "before the end of the response");
    expect_error(&other, ERR_LOST, "before the end of the response");
}

static void a_connection_is_not_reused_after(const char *response)
{
    struct far far;
    call = (struct call){ .got = call.got };
    buf_clear(&call.got);
    begin_get(&call, &far);
    far_say(&world, &far, response);
    client_world_until(&world, has_ended, &call);
    far_await_end(&world, &far);
    far_close(&far);
}

static void a_connection_in_doubt_is_closed(void **state)
{
    struct far far;
    (void)state;
    a_connection_is_not_reused_after("HTTP/1.1 204 No\r\nconnection: close\r\n\r\n");
    a_connection_is_not_reused_after("HTTP/1.0 204 No\r\n\r\n");
    a_connection_is_not_reused_after("HTTP/1.1 204 No\r\n\r\nHTTP/1.1 200 OK\r\n\r\n");
    begin(&other, (struct relay_request){ .has_length = true, .length = 9 });
    relay_write(&other.relay, SLICE("begun"));
    far_accept(&world, &far);
    far_await(&world, &far, "begun");
    far_say(&world, &far, "HTTP/1.1 413 No\r\ncontent-length: 0\r\n\r\n");
    expect(&other, 413, "");
    far_await_end(&world, &far);
    far_close(&far);
}

/* Such bytes would become the response to the next request. */
static void bytes_on_an_idle_connection_close_it(void **state)
{
    struct far far, next;
    (void)state;
    begin_get(&call, &far);
    far_say(&world, &far, "HTTP/1.1 204 No\r\n\r\n");
    expect(&call, 204, "");
    far_say(&world, &far, "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwrong");
    far_await_end(&world, &far);
    begin(&other, (struct relay_request){ 0 });
    relay_finish(&other.relay);
    far_accept(&world, &next);
    far_await(&world, &next, "\r\n\r\n");
    far_say(&world, &next, "HTTP/1.1 204 No\r\n\r\n");
    expect(&other, 204, "");
    far_close(&far);
    far_close(&next);
}

/* The end of the connection arrives between relay_begin and the end of that turn. */
static void a_request_on_a_connection_that_has_ended_is_not_sent(void **state)
{
    struct far far;
    (void)state;
    begin_get(&call, &far);
    far_say(&world, &far, "HTTP/1.1 204 No\r\n\r\n");
    expect(&call, 204, "");
    far_close(&far);
    begin(&other, (struct relay_request){ 0 });
    relay_finish(&other.relay);
    expect_error(&other, ERR_LOST, "before the end of the response");
    assert_int_equal(other.heads, 0);
}

static void an_idle_connection_is_closed_in_time(void **state)
{
    struct far far;
    (void)state;
    close_pool();
    open_pool((struct relay_pool_options){ .idle_ms = 20 });
    begin_get(&call, &far);
    far_say(&world, &far, "HTTP/1.1 204 No\r\n\r\n");
    expect(&call, 204, "");
    far_await_end(&world, &far);
    far_close(&far);
}

static void requests_in_progress_outlive_the_close_of_their_pool(void **state)
{
    struct far far;
    struct failure why;
    const struct relay_request more = { .method = "GET", .target = SLICE("/") };
    (void)state;
    begin_get(&call, &far);
    relay_pool_close(pool, on_pool_closed, &pool);
    assert_int_equal(relay_begin(pool, &other.relay, &more, &ops, &why), ERR_DRAINING);
    client_world_turn(&world);
    assert_non_null(pool);
    far_say(&world, &far, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    expect(&call, 200, "ok");
    client_world_until(&world, pool_is_closed, &pool);
    far_close(&far);
    open_pool((struct relay_pool_options){ 0 });
}

/* ---- back-pressure ---- */

static void a_server_that_reads_slowly_holds_back_the_body(void **state)
{
    struct far far;
    size_t written = 0;
    (void)state;
    begin(&call, (struct relay_request){ .has_length = true, .length = LONG });
    far_accept(&world, &far);
    far_await(&world, &far, "\r\n\r\n");
    while (written < LONG) {
        bool takes_more = relay_write(&call.relay, filler);
        written += filler.len;
        client_world_turn(&world);
        if (takes_more)
            continue;
        assert_int_equal(call.ready, 0);
        assert_true(call.relay.out.len - call.relay.sent <=
                    RELAY_UNSENT_MAX + filler.len + 200);
        while (!call.ready) {
            far_read(&far);
            client_world_turn(&world);
        }
        call.ready = 0;
    }
    relay_finish(&call.relay);
    while (far.got.len < LONG) {
        far_read(&far);
        client_world_turn(&world);
    }
    far_say(&world, &far, "HTTP/1.1 204 No\r\n\r\n");
    expect(&call, 204, "");
    far_close(&far);
}

/* is_filled: the system takes no byte of the body. */
static void send_endless(bool is_filled)
{
    struct far far;
    close_pool();
    open_pool((struct relay_pool_options){ .stall_ms = 50 });
    begin(&call, (struct relay_request){ .has_length = true, .length = ENDLESS });
    far_accept(&world, &far);
    far_await(&world, &far, "\r\n\r\n");
    if (is_filled)
        far_fill(&world, &far);
    while (!call.ends) {
        if (!call.relay.is_full)
            relay_write(&call.relay, filler);
        client_world_turn(&world);
    }
    expect_error(&call, ERR_NO_ANSWER, "does not read");
    assert_true(call.relay.was_sent);
    far_close(&far);
}

static void a_server_that_reads_nothing_ends_the_request(void **state)
{
    (void)state;
    send_endless(false);
    call = (struct call){ 0 };
    send_endless(true);
}

static void an_owner_that_pauses_holds_back_the_server(void **state)
{
    struct far far;
    size_t sent = 0;
    (void)state;
    call.pauses_at_piece = true;
    begin_get(&call, &far);
    far_say(&world, &far, "HTTP/1.1 200 OK\r\n\r\n");
    for (unsigned fails = 0; fails < 3;) {
        ssize_t len = send(far.fd, filler.ptr, filler.len, MSG_DONTWAIT | MSG_NOSIGNAL);
        sent += len > 0 ? (size_t)len : 0;
        fails += len <= 0;
        client_world_turn(&world);
    }
    assert_true(call.got.len <= 32 * 1024);
    assert_true(call.got.len < sent);
    call.pauses_at_piece = false;
    relay_pause(&call.relay, false);
    far_close(&far);
    client_world_until(&world, has_ended, &call);
    assert_int_equal(call.error, OK);
    assert_int_equal(call.got.len, sent);
}

/* Both sides have ended the connection while bytes of the response are still unread. */
static void a_paused_response_outlives_its_connection(void **state)
{
    struct far far;
    (void)state;
    call.pauses_at_piece = true;
    begin(&call, (struct relay_request){ 0 });
    relay_finish(&call.relay);
    relay_leave(&call.relay);
    far_accept(&world, &far);
    far_await_end(&world, &far);
    struct buf sent = { 0 };
    buf_add_text(&sent, "HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n");
    memset(buf_reserve(&sent, 100000), 'a', 100000);
    sent.len += 100000;
    assert_int_equal(send(far.fd, sent.ptr, sent.len, MSG_NOSIGNAL), sent.len);
    far_close(&far);
    while (!call.got.len)
        client_world_turn(&world);
    client_world_turn(&world);
    assert_int_equal(call.ends, 0);
    call.pauses_at_piece = false;
    relay_pause(&call.relay, false);
    client_world_until(&world, has_ended, &call);
    assert_int_equal(call.error, OK);
    assert_int_equal(call.got.len, 100000);
    buf_finish(&sent);
}

/* ---- tunnels ---- */

static void a_switched_protocol_is_a_tunnel(void **state)
{
    struct far far;
    const struct http_header headers[] = { { SLICE("connection"), SLICE("Upgrade") },
                                           { SLICE("upgrade"), SLICE("websocket") } };
    (void)state;
    begin(&call, (struct relay_request){
                     .headers = headers, .header_count = 2, .upgrades = true });
    relay_finish(&call.relay);
    far_accept(&world, &far);
    far_await(&world, &far, "\r\n\r\n");
    far_say(&world, &far, "HTTP/1.1 101 Go\r\nupgrade: websocket\r\n\r\n\1\2");
    client_world_until(&world, has_head, &call);
    assert_true(call.relay.is_tunnel);
    assert_true(relay_write(&call.relay, SLICE("\x81\x80")));
    assert_true(relay_write(&call.relay, SLICE("raw")));
    far_await(&world, &far, "\r\n\r\n\x81\x80raw");
    far_say(&world, &far, "\3");
    far_close(&far);
    expect(&call, 101, "\1\2\3");
}

/* ---- failures ---- */

static const struct row {
    const char *bytes;
    enum err error;
    const char *why;
    unsigned heads;
} rows[] = {
    { "", ERR_LOST, "before the end of the response", 0 },
    { "HTTP/1.1 200", ERR_LOST, "before the end of the response", 0 },
    { "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nab", ERR_LOST, "before the end", 1 },
    { "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab", ERR_LOST, "", 1 },
    { "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nx\r\n", ERR_BAD_ANSWER,
      "malformed chunks", 1 },
    { "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\na", ERR_BAD_ANSWER,
      "malformed response header", 0 },
    { "SSH-2.0-OpenSSH\r\n", ERR_BAD_ANSWER, "not HTTP", 0 },
    { "HTTP/1.1 101 Go\r\nupgrade: websocket\r\n\r\n", ERR_BAD_ANSWER,
      "switches the protocol", 0 },
};

static void malformed_responses_end_the_request(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct far far;
        call = (struct call){ .got = call.got };
        begin(&call, (struct relay_request){ 0 });
        relay_finish(&call.relay);
        far_accept(&world, &far);
        far_await(&world, &far, "\r\n\r\n");
        far_say(&world, &far, rows[i].bytes);
        far_close(&far);
        expect_error(&call, rows[i].error, rows[i].why);
        assert_int_equal(call.heads, rows[i].heads);
    }
}

static void a_silent_server_ends_the_request(void **state)
{
    struct far far;
    (void)state;
    close_pool();
    open_pool((struct relay_pool_options){ .first_byte_ms = 20 });
    begin_get(&call, &far);
    expect_error(&call, ERR_NO_ANSWER, "waiting for the response");
    far_await_end(&world, &far);
    far_close(&far);
}

static void an_unreachable_server_gets_nothing(void **state)
{
    (void)state;
    close(world.listener);
    world.listener = -1;
    begin(&call, (struct relay_request){ 0 });
    relay_finish(&call.relay);
    expect_error(&call, ERR_UNREACHABLE, "refused");
    assert_false(call.relay.was_sent);
}

static void malformed_requests_are_refused(void **state)
{
    struct failure why;
    const struct http_header split = { SLICE("a"), SLICE("b\r\nc: d") };
    const struct http_header unnamed = { SLICE("a b"), SLICE("c") };
    const struct relay_request requests[] = {
        { .method = "GET", .target = SLICE("/"), .headers = &split, .header_count = 1 },
        { .method = "GET", .target = SLICE("/"), .headers = &unnamed, .header_count = 1 },
        { .method = "GET", .target = SLICE("/ HTTP/1.1") },
        { .method = "GET", .target = SLICE("a") },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
        assert_int_equal(relay_begin(pool, &call.relay, &requests[i], &ops, &why),
                         ERR_INVALID);
    assert_true(far_is_alone(&world));
}

/* ---- cancellation ---- */

static void expect_nothing_after_cancellation(struct far *far)
{
    far_await_end(&world, far);
    client_world_turn(&world);
    assert_int_equal(call.ends, 0);
    far_close(far);
}

static void a_request_can_be_canceled_at_any_step(void **state)
{
    struct far far;
    (void)state;
    begin(&call, (struct relay_request){ 0 });
    relay_cancel(&call.relay);
    relay_cancel(&call.relay);
    client_world_turn(&world);
    begin(&call, (struct relay_request){ .chunked = true });
    far_accept(&world, &far);
    far_await(&world, &far, "\r\n\r\n");
    relay_write(&call.relay, SLICE("unsent"));
    relay_cancel(&call.relay);
    assert_false(relay_write(&call.relay, SLICE("ignored")));
    expect_nothing_after_cancellation(&far);
    begin_get(&call, &far);
    relay_cancel(&call.relay);
    expect_nothing_after_cancellation(&far);
}

static void a_client_that_leaves_may_still_get_its_response(void **state)
{
    struct far far;
    (void)state;
    begin(&call, (struct relay_request){ .has_length = true, .length = 4 });
    relay_write(&call.relay, SLICE("body"));
    relay_finish(&call.relay);
    relay_leave(&call.relay);
    far_accept(&world, &far);
    far_await_end(&world, &far);
    assert_true(far_has(&far, "\r\n\r\nbody"));
    far_say(&world, &far, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    expect(&call, 200, "ok");
    client_world_turn(&world);
    assert_int_equal(relay_pool_connections(pool), 0);
    far_close(&far);
}

static void a_callback_can_cancel(void **state)
{
    struct far far;
    (void)state;
    for (int i = 0; i < 2; i++) {
        call = (struct call){ .got = call.got,
                              .cancels_at_head = i == 0,
                              .cancels_at_piece = i == 1 };
        buf_clear(&call.got);
        begin(&call, (struct relay_request){ 0 });
        relay_finish(&call.relay);
        far_accept(&world, &far);
        far_await(&world, &far, "\r\n\r\n");
        far_say(&world, &far,
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
                "1\r\na\r\n1\r\nb\r\n0\r\n\r\n");
        assert_int_equal(call.heads, 1);
        assert_int_equal(call.got.len, i);
        expect_nothing_after_cancellation(&far);
    }
}

/* ---- greetings ---- */

static struct {
    unsigned made, freed, signs;
    bool refuses;
} greetings;

static void *create_greeting(void *owner)
{
    assert_ptr_equal(owner, &greetings);
    greetings.made++;
    return mem_alloc(1);
}

static void destroy_greeting(void *greeting)
{
    greetings.freed++;
    free(greeting);
}

static enum relay_greet next_greeting(void *greeting, int status, struct slice answer,
                                      struct buf *body, const char **why)
{
    (void)greeting;
    *why = "it is a stranger";
    if (status && (status != 200 || greetings.refuses))
        return RELAY_GREET_REFUSED;
    if (slice_is(answer, "well"))
        return RELAY_GREET_DONE;
    buf_add(body, status ? answer : SLICE("who"));
    return RELAY_GREET_SEND;
}

static void sign(void *greeting, struct slice head, struct slice note, struct buf *line)
{
    (void)greeting;
    greetings.signs++;
    buf_print(line, "x-signed: %zu %.*s\r\n", head.len, SLICE_ARG(note));
}

static const struct relay_greeter greeter = { .target = "/hello",
                                              .create = create_greeting,
                                              .destroy = destroy_greeting,
                                              .next = next_greeting,
                                              .sign = sign };

static void begin_with_greeting(struct far *far, bool refuses)
{
    close_pool();
    memset(&greetings, 0, sizeof(greetings));
    greetings.refuses = refuses;
    open_pool((struct relay_pool_options){
        .greeter = &greeter, .owner = &greetings, .connect_ms = 20 * 1000 });
    begin(&call, (struct relay_request){ .target = SLICE("/secret"),
                                         .note = SLICE("for 1.2.3.4") });
    relay_write(&call.relay, SLICE("body"));
    relay_finish(&call.relay);
    far_accept(&world, far);
    far_await(&world, far, "who");
    assert_true(far_has(far, "POST /hello HTTP/1.1\r\nhost: 127.0.0.1"));
    assert_false(far_has(far, "secret"));
}

static void a_connection_introduces_itself_before_requests(void **state)
{
    struct far far;
    (void)state;
    begin_with_greeting(&far, false);
    far_say(&world, &far, "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nyou");
    far_await(&world, &far, "content-length: 3\r\n\r\nyou");
    assert_false(far_has(&far, "secret"));
    buf_clear(&far.got);
    far_say(&world, &far, "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nwell");
    far_await(&world, &far, "body");
    assert_true(slice_is(buf_slice(&far.got),
                         "GET /secret HTTP/1.1\r\nx-signed: 22 for 1.2.3.4\r\n\r\nbody"));
    far_say(&world, &far, "HTTP/1.1 204 No\r\n\r\n");
    expect(&call, 204, "");
    begin(&other, (struct relay_request){ 0 });
    relay_finish(&other.relay);
    far_await(&world, &far, "x-signed: 16 \r\n\r\n");
    assert_int_equal(greetings.made, 1);
    assert_int_equal(greetings.signs, 2);
    far_close(&far);
    expect_error(&other, ERR_LOST, "");
    client_world_turn(&world);
    assert_int_equal(greetings.freed, 1);
}

static void a_stranger_gets_nothing(void **state)
{
    static const char *const responses[] = {
        "HTTP/1.1 403 No\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nyou",
    };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct far far;
        call = (struct call){ .got = call.got };
        begin_with_greeting(&far, true);
        far_say(&world, &far, responses[i]);
        expect_error(&call, ERR_UNTRUSTED, "it is a stranger");
        assert_false(call.relay.was_sent);
        far_await_end(&world, &far);
        assert_false(far_has(&far, "secret"));
        far_close(&far);
    }
}

static void a_greeting_has_limits(void **state)
{
    struct far far;
    char text[RELAY_GREETING_MAX + 200];
    (void)state;
    begin_with_greeting(&far, false);
    int len =
        snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n");
    memset(text + len, 'a', RELAY_GREETING_MAX + 1);
    far_send(&world, &far, (struct slice){ text, (size_t)len + RELAY_GREETING_MAX + 1 });
    expect_error(&call, ERR_BAD_ANSWER, "too long");
    far_close(&far);
    call = (struct call){ .got = call.got };
    begin_with_greeting(&far, false);
    far_say(&world, &far,
            "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nyouHTTP/1.1 200 OK\r\n");
    expect_error(&call, ERR_BAD_ANSWER, "more than its response");
    far_close(&far);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_request_and_its_response_pass_through),
        TEST(a_body_of_unknown_length_is_sent_in_chunks),
        TEST(connections_are_reused),
        TEST(each_request_in_progress_has_its_own_connection),
        TEST(a_connection_in_doubt_is_closed),
        TEST(bytes_on_an_idle_connection_close_it),
        TEST(a_request_on_a_connection_that_has_ended_is_not_sent),
        TEST(an_idle_connection_is_closed_in_time),
        TEST(requests_in_progress_outlive_the_close_of_their_pool),
        TEST(a_server_that_reads_slowly_holds_back_the_body),
        TEST(a_server_that_reads_nothing_ends_the_request),
        TEST(an_owner_that_pauses_holds_back_the_server),
        TEST(a_paused_response_outlives_its_connection),
        TEST(a_switched_protocol_is_a_tunnel),
        TEST(malformed_responses_end_the_request),
        TEST(a_silent_server_ends_the_request),
        TEST(an_unreachable_server_gets_nothing),
        TEST(malformed_requests_are_refused),
        TEST(a_request_can_be_canceled_at_any_step),
        TEST(a_client_that_leaves_may_still_get_its_response),
        TEST(a_callback_can_cancel),
        TEST(a_connection_introduces_itself_before_requests),
        TEST(a_stranger_gets_nothing),
        TEST(a_greeting_has_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
