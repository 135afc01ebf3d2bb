/* Requests and responses over real sockets: what is sent and received, and all failures. */
#include "tests/support/world/unit.h"

#include <unistd.h>

#include "tests/support/world/client_world.h"

#define HELLO "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"

static struct client_world world;
static struct probe probe;

static int open_world(void **state)
{
    (void)state;
    client_world_open(&world);
    probe = (struct probe){ 0 };
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    client_world_close(&world);
    probe_finish(&probe);
    return 0;
}

static void a_request_is_answered(void **state)
{
    struct far far;
    const struct http_header headers[] = { { SLICE("authorization"), SLICE("Bearer tr") } };
    (void)state;
    client_world_fetcher(&world, (struct fetcher_options){ 0 });
    probe.fetch.headers = headers;
    probe.fetch.header_count = 1;
    probe.probe_header = "x-Mark";
    probe_begin(&world, &probe, "/a?b=c");
    far_accept(&world, &far);
    far_await(&world, &far, "\r\n\r\n");
    assert_true(far_has(&far, "GET /a?b=c HTTP/1.1\r\nhost: 127.0.0.1:"));
    assert_true(far_has(&far, "\r\nauthorization: Bearer tr\r\n"));
    assert_false(far_has(&far, "content-length"));
    far_say(&world, &far,
            "HTTP/1.1 201 Made\r\nX-MARK:  m \r\ncontent-length: 2\r\n\r\nok");
    probe_expect(&world, &probe, 201, "ok");
    assert_true(slice_is(buf_slice(&probe.header), "m"));
    far_close(&far);
}

/* Responses of the server, sent whole and byte by byte. */
static const struct row {
    const char *name;
    const char *method;
    const char *bytes;
    bool ends; /* the server closes after them */
    int status;
    const char *body;
    enum err error;
} rows[] = {
#include "tests/unit/net/client/answers.def"
};

static void play(const struct row *row, size_t step)
{
    struct far far;
    struct slice bytes = slice_of(row->bytes);
    client_world_open(&world);
    probe = (struct probe){ .fetch.method = row->method, .fetch.answer_max = 100 };
    client_world_fetcher(&world, (struct fetcher_options){ 0 });
    probe_begin(&world, &probe, "/");
    far_accept(&world, &far);
    far_await(&world, &far, "\r\n\r\n");
    while (bytes.len && !probe.done) {
        struct slice part = { bytes.ptr, bytes.len < step ? bytes.len : step };
        far_send(&world, &far, part);
        bytes = slice_from(bytes, part.len);
    }
    if (row->ends)
        far_close(&far);
    probe_await(&world, &probe);
    if (probe.error != row->error)
        fail_msg("%s: not '%s' but '%s': %s", row->name, errors[row->error].text,
                 errors[probe.error].text, probe.why);
    if (!row->error)
        probe_expect(&world, &probe, row->status, row->body);
    if (!row->ends)
        far_close(&far);
    client_world_close(&world);
    probe_finish(&probe);
}

static void every_response_is_parsed_as_the_rfc_requires(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        play(&rows[i], strlen(rows[i].bytes) + 1);
        play(&rows[i], 1);
    }
}

/* `again` is repeated until the client gives up. */
static void endless_response_is_rejected(void **state)
{
    static const struct {
        const char *begin, *again;
    } endless[] = {
        { "HTTP/1.1 200 OK\r\nA: ",
          "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb" },
        { "HTTP/1.1 200 OK\r\n", "A: b\r\n" },
        { "HTTP/1.1 200 ", "fine, fine, fine, fine, fine, fine, fine, fine, fine, fine, " },
        { "", "HTTP/1.1 100 Continue\r\n\r\n" },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "0000000000000000000" },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;a=",
          "bbbbbbbbbbbbbbbbb" },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "A: b\r\n" },
    };
    (void)state;
    client_world_fetcher(&world, (struct fetcher_options){ 0 });
    for (size_t i = 0; i < sizeof(endless) / sizeof(endless[0]); i++) {
        struct far far;
        struct buf more = { 0 };
        while (more.len < 4096)
            buf_add_text(&more, endless[i].again);
        probe_begin(&world, &probe, "/");
        far_accept(&world, &far);
        far_await(&world, &far, "\r\n\r\n");
        far_say(&world, &far, endless[i].begin);
        for (size_t said = 0; !probe.done && said < 1000000; said += more.len)
            far_send(&world, &far, buf_slice(&more));
        probe_expect_error(&world, &probe, ERR_BAD_ANSWER);
        buf_finish(&more);
        far_close(&far);
    }
}

static void header_injection_is_rejected(void **state)
{
    static const struct {
        const char *method;
        struct slice target;
        struct http_header header;
    } bad[] = {
        { "GET", SLICE("/"), { SLICE("a"), SLICE("b\r\nc: d") } },
        { "GET", SLICE("/"), { SLICE("a"), SLICE("b\nc") } },
        { "GET", SLICE("/"), { SLICE("a"), SLICE("b\0c") } },
        { "GET", SLICE("/"), { SLICE("a:b"), SLICE("c") } },
        { "GET", SLICE("/"), { SLICE(""), SLICE("c") } },
        { "GET", SLICE("/"), { SLICE("Content-Length"), SLICE("1") } },
        { "GET", SLICE("/"), { SLICE("Host"), SLICE("a") } },
        { "GET", SLICE("/"), { SLICE("transfer-encoding"), SLICE("chunked") } },
        { "GET / HTTP/1.1\r\n", SLICE("/"), { SLICE("a"), SLICE("c") } },
        { "", SLICE("/"), { SLICE("a"), SLICE("c") } },
        { "GET", SLICE("a"), { SLICE("a"), SLICE("c") } },
        { "GET", SLICE(""), { SLICE("a"), SLICE("c") } },
        { "GET", SLICE("/a b"), { SLICE("a"), SLICE("c") } },
        { "GET", SLICE("/a\r\nb"), { SLICE("a"), SLICE("c") } },
        { "GET", SLICE("/\xc3\xa9"), { SLICE("a"), SLICE("c") } },
        { "GET", SLICE("/#a"), { SLICE("a"), SLICE("c") } },
    };
    (void)state;
    client_world_fetcher(&world, (struct fetcher_options){ 0 });
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct failure why = { 0 };
        probe.fetch.method = bad[i].method;
        probe.fetch.target = bad[i].target;
        probe.fetch.headers = &bad[i].header;
        probe.fetch.header_count = 1;
        assert_int_equal(fetch_begin(world.fetcher, &probe.fetch, &why), ERR_INVALID);
        assert_null(strstr(why.text, "c: d"));
    }
    assert_true(far_is_alone(&world));
}

static void connection_is_reused(void **state)
{
    struct far far;
    (void)state;
    client_world_fetcher(&world, (struct fetcher_options){ 0 });
    probe_begin(&world, &probe, "/1");
    far_accept(&world, &far);
    far_await(&world, &far, "GET /1");
    far_say(&world, &far, HELLO);
    probe_expect(&world, &probe, 200, "hello");
    probe_begin(&world, &probe, "/2");
    far_await(&world, &far, "GET /2");
    far_say(&world, &far, HELLO);
    probe_expect(&world, &probe, 200, "hello");
    assert_true(far_is_alone(&world));
    far_close(&far);
}

static void connection_is_not_reused_after_close_header_or_extra_bytes(void **state)
{
    static const char *const answers[] = {
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 5\r\n\r\nhello",
        "HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\nhello",
        HELLO "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
    };
    (void)state;
    client_world_fetcher(&world, (struct fetcher_options){ 0 });
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        struct far far;
        probe_begin(&world, &probe, "/1");
        far_accept(&world, &far);
        far_await(&world, &far, "\r\n\r\n");
        far_say(&world, &far, answers[i]);
        probe_expect(&world, &probe, 200, "hello");
        far_await_end(&world, &far);
        far_close(&far);
    }
}

static void connections_are_limited_and_requests_wait(void **state)
{
    struct far first, second;
    struct probe probes[3] = { 0 };
    struct failure why;
    struct fetch more = { .target = SLICE("/") };
    (void)state;
    client_world_fetcher(
        &world, (struct fetcher_options){ .connections_max = 2, .waiting_max = 3 });
    for (int i = 0; i < 3; i++)
        probe_begin(&world, &probes[i], "/");
    assert_int_equal(fetch_begin(world.fetcher, &more, &why), ERR_BUSY);
    far_accept(&world, &first);
    far_accept(&world, &second);
    assert_true(far_is_alone(&world));
    assert_int_equal(fetcher_connections(world.fetcher), 2);
    far_await(&world, &second, "\r\n\r\n");
    far_say(&world, &second, HELLO);
    buf_clear(&second.got);
    far_await(&world, &second, "\r\n\r\n");
    far_say(&world, &second, HELLO);
    far_say(&world, &first, HELLO);
    for (int i = 0; i < 3; i++) {
        probe_expect(&world, &probes[i], 200, "hello");
        probe_finish(&probes[i]);
    }
    far_close(&first);
    far_close(&second);
}

static bool has_no_connection(void *owner)
{
    struct client_world *of = owner;
    return fetcher_connections(of->fetcher) == 0;
}

static void an_idle_connection_is_closed(void **state)
{
    struct far far;
    (void)state;
    client_world_fetcher(&world, (struct fetcher_options){ .idle_ms = 20 });
    probe_begin(&world, &probe, "/");
    far_accept(&world, &far);
    far_await(&world, &far, "\r\n\r\n");
    far_say(&world, &far, HELLO);
    probe_expect(&world, &probe, 200, "hello");
    far_await_end(&world, &far);
    client_world_until(&world, has_no_connection, &world);
    far_close(&far);
}

/* Answers one request, so that the connection counts as used. */
static void use_once(struct far *far)
{
    struct probe first = { 0 };
    probe_begin(&world, &first, "/first");
    far_accept(&world, far);
    far_await(&world, far, "\r\n\r\n");
    far_say(&world, far, HELLO);
    probe_expect(&world, &first, 200, "hello");
    probe_finish(&first);
    buf_clear(&far->got);
}

static void reused_connection_that_closes_is_replaced_once(void **state)
{
    struct far old, new;
    (void)state;
    client_world_fetcher(&world, (struct fetcher_options){ 0 });
    use_once(&old);
    probe_begin(&world, &probe, "/again");
    far_await(&world, &old, "GET /again");
    far_close(&old);
    far_accept(&world, &new);
    far_await(&world, &new, "GET /again");
    far_say(&world, &new, HELLO);
    probe_expect(&world, &probe, 200, "hello");

    probe_begin(&world, &probe, "/twice"); /* on the second connection, now used too */
    far_await(&world, &new, "GET /twice");
    far_break(&new);
    far_accept(&world, &new);
    far_await(&world, &new, "GET /twice");
    far_close(&new);
    probe_expect_error(&world, &probe, ERR_LOST);
    assert_true(far_is_alone(&world));
}

static void request_that_is_not_idempotent_is_not_sent_twice(void **state)
{
    struct far old;
    (void)state;
    client_world_fetcher(&world, (struct fetcher_options){ 0 });
    use_once(&old);
    probe.fetch.method = "POST";
    probe_begin(&world, &probe, "/");
    far_await(&world, &old, "POST /");
    far_close(&old);
    probe_expect_error(&world, &probe, ERR_LOST);
    assert_true(far_is_alone(&world));
}

static void request_with_idempotency_key_may_be_sent_twice(void **state)
{
    struct far old, new;
    struct bytes *body = bytes_create(SLICE("{\"a\":1}"));
    (void)state;
    client_world_fetcher(&world, (struct fetcher_options){ 0 });
    use_once(&old);
    probe.fetch.method = "POST";
    probe.fetch.body = body;
    probe.fetch.idempotent = true;
    probe_begin(&world, &probe, "/");
    bytes_unref(body); /* the request has its own reference */
    far_await(&world, &old, "{\"a\":1}");
    far_close(&old);
    far_accept(&world, &new);
    far_await(&world, &new, "content-length: 7\r\n\r\n{\"a\":1}");
    far_say(&world, &new, HELLO);
    probe_expect(&world, &probe, 200, "hello");
    far_close(&new);
}

static void new_connection_that_closes_is_not_replaced(void **state)
{
    struct far far;
    (void)state;
    client_world_fetcher(&world, (struct fetcher_options){ 0 });
    probe_begin(&world, &probe, "/");
    far_accept(&world, &far);
    far_await(&world, &far, "\r\n\r\n");
    far_close(&far);
    probe_expect_error(&world, &probe, ERR_LOST);
    assert_true(far_is_alone(&world));
}

static void refused_connection_is_unreachable(void **state)
{
    (void)state;
    close(world.listener);
    world.listener = -1;
    client_world_fetcher(&world, (struct fetcher_options){ 0 });
    probe_begin(&world, &probe, "/");
    probe_expect_error(&world, &probe, ERR_UNREACHABLE);
    assert_non_null(strstr(probe.why, "127.0.0.1"));
}

static void a_name_is_resolved_and_each_address_is_tried(void **state)
{
    struct far far;
    struct failure why;
    char text[64];
    (void)state;
    snprintf(text, sizeof(text), "http://localhost:%d/prefix/", world.port);
    assert_int_equal(url_read(slice_of(text), &world.url, &why), OK);
    client_world_fetcher(&world, (struct fetcher_options){ 0 });
    probe_begin(&world, &probe, "/x"); /* where ::1 comes first, it is refused */
    far_accept(&world, &far);
    far_await(&world, &far, "GET /prefix/x HTTP/1.1\r\nhost: localhost:");
    far_say(&world, &far, HELLO);
    probe_expect(&world, &probe, 200, "hello");
    far_close(&far);
}

static void unknown_host_is_unreachable(void **state)
{
    struct failure why;
    (void)state;
    assert_int_equal(url_read(SLICE("http://nobody.invalid"), &world.url, &why), OK);
    client_world_fetcher(&world, (struct fetcher_options){ .connect_ms = 20000 });
    probe_begin(&world, &probe, "/");
    probe_expect_error(&world, &probe, ERR_UNREACHABLE);
    assert_non_null(strstr(probe.why, "nobody.invalid: "));
}

static void request_times_out_before_and_during_a_response(void **state)
{
    struct far far;
    (void)state;
    client_world_fetcher(&world, (struct fetcher_options){ 0 });
    probe.fetch.first_byte_ms = 20;
    probe_begin(&world, &probe, "/");
    far_accept(&world, &far);
    probe_expect_error(&world, &probe, ERR_NO_ANSWER);
    far_await_end(&world, &far);
    far_close(&far);

    probe.fetch.first_byte_ms = 0;
    probe.fetch.silence_ms = 20;
    probe_begin(&world, &probe, "/");
    far_accept(&world, &far);
    far_await(&world, &far, "\r\n\r\n");
    far_say(&world, &far, "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhe");
    probe_expect_error(&world, &probe, ERR_NO_ANSWER);
    far_close(&far);

    /* On a connection that exists, since its opening counts, too. */
    probe.fetch.silence_ms = 0;
    probe_begin(&world, &probe, "/");
    far_accept(&world, &far);
    far_await(&world, &far, "\r\n\r\n");
    far_say(&world, &far, HELLO);
    probe_expect(&world, &probe, 200, "hello");
    probe.fetch.total_ms = 20;
    probe_begin(&world, &probe, "/");
    probe_expect_error(&world, &probe, ERR_NO_ANSWER);
    far_close(&far);
}

static void request_can_be_canceled_in_each_state(void **state)
{
    static const char *const said[] = { NULL, NULL, "", "HTTP/1.1 200",
                                        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhe" };
    (void)state;
    client_world_fetcher(&world, (struct fetcher_options){ 0 });
    for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
        struct far far = { .fd = -1 };
        probe_begin(&world, &probe, "/");
        if (i > 0)
            client_world_turn(&world);
        if (said[i]) {
            far_accept(&world, &far);
            far_await(&world, &far, "\r\n\r\n");
            far_say(&world, &far, said[i]);
        }
        fetch_cancel(&probe.fetch);
        assert_int_equal(probe.done, 0);
        probe_expect_error(&world, &probe, ERR_CANCELED);
        if (!said[i])
            far_is_alone(&world); /* removes it from the backlog, if it got that far */
        if (far.fd >= 0)
            far_close(&far);
        client_world_until(&world, has_no_connection, &world);
    }
}

static void closing_cancels_requests_in_flight_and_pending_ones(void **state)
{
    struct far far;
    struct probe second = { 0 };
    (void)state;
    client_world_fetcher(&world, (struct fetcher_options){ .connections_max = 1 });
    probe_begin(&world, &probe, "/");
    probe_begin(&world, &second, "/");
    far_accept(&world, &far);
    far_await(&world, &far, "\r\n\r\n");
    client_world_close(&world);
    assert_int_equal(probe.error, ERR_CANCELED);
    assert_int_equal(second.error, ERR_CANCELED);
    assert_int_equal(probe.done + second.done, 2);
    far_close(&far);
    client_world_open(&world);
}

static void from_done_another_begins(struct fetch *fetch);

static struct fetch chain = { .target = SLICE("/"), .done = from_done_another_begins };
static unsigned chained;

static void from_done_another_begins(struct fetch *fetch)
{
    struct failure why;
    assert_ptr_equal(fetch, &chain);
    if (++chained < 3)
        assert_int_equal(fetch_begin(world.fetcher, fetch, &why), OK);
}

static bool has_chained(void *owner)
{
    (void)owner;
    return chained == 3;
}

static void callback_may_begin_another_request(void **state)
{
    struct far far;
    struct failure why;
    (void)state;
    client_world_fetcher(&world, (struct fetcher_options){ 0 });
    assert_int_equal(fetch_begin(world.fetcher, &chain, &why), OK);
    far_accept(&world, &far);
    for (int i = 0; i < 3; i++) {
        far_await(&world, &far, "\r\n\r\n");
        buf_clear(&far.got);
        far_say(&world, &far, HELLO);
    }
    client_world_until(&world, has_chained, NULL);
    far_close(&far);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_request_is_answered),
        cmocka_unit_test(every_response_is_parsed_as_the_rfc_requires),
        TEST(endless_response_is_rejected),
        TEST(header_injection_is_rejected),
        TEST(connection_is_reused),
        TEST(connection_is_not_reused_after_close_header_or_extra_bytes),
        TEST(connections_are_limited_and_requests_wait),
        TEST(an_idle_connection_is_closed),
        TEST(reused_connection_that_closes_is_replaced_once),
        TEST(request_that_is_not_idempotent_is_not_sent_twice),
        TEST(request_with_idempotency_key_may_be_sent_twice),
        TEST(new_connection_that_closes_is_not_replaced),
        TEST(refused_connection_is_unreachable),
        TEST(a_name_is_resolved_and_each_address_is_tried),
        TEST(unknown_host_is_unreachable),
        TEST(request_times_out_before_and_during_a_response),
        TEST(request_can_be_canceled_in_each_state),
        TEST(closing_cancels_requests_in_flight_and_pending_ones),
        TEST(callback_may_begin_another_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
