/* Long bodies and files, sent and received. */
#include "tests/support/world/unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/rope.h"
#include "tests/support/world/client_world.h"

#define HELLO "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"

enum { ENDLESS = 1 << 30 }; /* more bytes than the buffers of sockets hold */

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

static void early_response_ends_a_long_request(void **state)
{
    struct far far;
    struct bytes *body = bytes_create_empty(32 << 20);
    (void)state;
    memset(body->data, '-', body->len);
    client_world_fetcher(&world, (struct fetcher_options){ 0 });
    probe.fetch.method = "POST";
    probe.fetch.body = body;
    probe_begin(&world, &probe, "/");
    bytes_unref(body);
    far_accept(&world, &far);
    client_world_turn(&world);
    far_say(&world, &far, "HTTP/1.1 413 No\r\ncontent-length: 3\r\n\r\nbig");
    probe_expect(&world, &probe, 413, "big");
    far_await_end(&world, &far);
    far_close(&far);
}

static void body_in_parts_is_received(void **state)
{
    struct far far;
    struct rope rope = { 0 };
    struct bytes *quoted = bytes_create_empty(ROPE_LONG), *body;
    (void)state;
    memset(quoted->data, '"', quoted->len);
    rope_clear(&rope);
    rope_add_json(&rope.text, quoted, bytes_slice(quoted));
    body = rope_join(SLICE("["), &rope, SLICE("]end"));
    client_world_fetcher(&world, (struct fetcher_options){ 0 });
    probe.fetch.method = "PUT";
    probe.fetch.body = body;
    probe_begin(&world, &probe, "/");
    size_t len = body->len;
    bytes_unref(body);
    bytes_unref(quoted);
    rope_finish(&rope);
    far_accept(&world, &far);
    far_await(&world, &far, "]end");
    assert_true(far_has(&far, "\r\n\r\n[\"\\\"\\\""));
    const char *begin = memmem(far.got.ptr, far.got.len, "\r\n\r\n", 4);
    assert_int_equal(far.got.ptr + far.got.len - (begin + 4), len);
    far_say(&world, &far, HELLO);
    probe_expect(&world, &probe, 200, "hello");
    far_close(&far);
}

static int open_file(void)
{
    char name[] = "/tmp/test_fetch.XXXXXX";
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    unlink(name);
    return fd;
}

static void files_are_sent_and_received(void **state)
{
    enum { LEN = 3000000 };
    struct far far;
    int fd = open_file(), copy = open_file();
    char *bytes = malloc(LEN), *got = malloc(LEN);
    (void)state;
    for (size_t i = 0; i < LEN; i++)
        bytes[i] = (char)(i * 7 + i / 1000);
    assert_int_equal(write(fd, bytes, LEN), LEN);
    client_world_fetcher(&world, (struct fetcher_options){ 0 });
    probe.fetch.method = "POST";
    probe.fetch.upload = (struct fetch_file){ true, fd, LEN };
    probe.fetch.download = (struct fetch_file){ true, copy, 0 };
    probe_begin(&world, &probe, "/");
    far_accept(&world, &far);
    far_await(&world, &far, "content-length: 3000000\r\n\r\n");
    while (far.got.len < LEN) {
        client_world_turn(&world);
        far_read(&far);
    }
    const char *begin = (const char *)memmem(far.got.ptr, far.got.len, "\r\n\r\n", 4) + 4;
    while (far.got.ptr + far.got.len - begin < LEN) {
        client_world_turn(&world);
        far_read(&far);
        begin = (const char *)memmem(far.got.ptr, far.got.len, "\r\n\r\n", 4) + 4;
    }
    assert_memory_equal(begin, bytes, LEN);
    far_say(&world, &far, "HTTP/1.1 200 OK\r\ncontent-length: 3000000\r\n\r\n");
    far_send(&world, &far, (struct slice){ bytes, LEN });
    probe_expect(&world, &probe, 200, "");
    assert_int_equal(probe.fetch.answer_len, LEN);
    assert_int_equal(pread(copy, got, LEN, 0), LEN);
    assert_memory_equal(got, bytes, LEN);
    far_close(&far);
    close(fd);
    close(copy);
    free(bytes);
    free(got);
}

/* The time limit does not run while a piece is read from the disk, but does after that. */
static void a_server_that_stops_reading_a_file_ends_the_request(void **state)
{
    struct far far;
    int fd = open_file();
    (void)state;
    assert_int_equal(ftruncate(fd, ENDLESS), 0);
    client_world_fetcher(&world, (struct fetcher_options){ 0 });
    probe.fetch.method = "PUT";
    probe.fetch.upload = (struct fetch_file){ true, fd, ENDLESS };
    probe.fetch.silence_ms = 50;
    probe_begin(&world, &probe, "/");
    far_accept(&world, &far);
    far_await(&world, &far, "\r\n\r\n");
    probe_expect_error(&world, &probe, ERR_NO_ANSWER);
    far_close(&far);
    close(fd);
}

static void error_response_is_kept_in_memory_instead_of_the_file(void **state)
{
    struct far far;
    int fd = open_file();
    (void)state;
    client_world_fetcher(&world, (struct fetcher_options){ 0 });
    probe.fetch.download = (struct fetch_file){ true, fd, 0 };
    probe_begin(&world, &probe, "/");
    far_accept(&world, &far);
    far_await(&world, &far, "\r\n\r\n");
    far_say(&world, &far, "HTTP/1.1 404 No\r\ncontent-length: 4\r\n\r\nnone");
    probe_expect(&world, &probe, 404, "none");
    assert_int_equal(lseek(fd, 0, SEEK_END), 0);
    far_close(&far);
    close(fd);
}

static void file_error_is_reported_as_a_file_error(void **state)
{
    struct far far;
    int fd = open_file(), full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    (void)state;
    assert_int_equal(write(fd, "abc", 3), 3);
    client_world_fetcher(&world, (struct fetcher_options){ 0 });
    probe.fetch.method = "PUT";
    probe.fetch.upload = (struct fetch_file){ true, fd, 10 };
    probe_begin(&world, &probe, "/");
    far_accept(&world, &far);
    probe_expect_error(&world, &probe, ERR_STORE);
    far_close(&far);

    probe.fetch.method = "GET";
    probe.fetch.upload = (struct fetch_file){ 0 };
    probe.fetch.download = (struct fetch_file){ true, full, 0 };
    probe_begin(&world, &probe, "/");
    far_accept(&world, &far);
    far_await(&world, &far, "\r\n\r\n");
    far_say(&world, &far, HELLO);
    probe_expect_error(&world, &probe, ERR_STORE_FULL);
    far_close(&far);
    close(fd);
    close(full);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(early_response_ends_a_long_request),
        TEST(body_in_parts_is_received),
        TEST(files_are_sent_and_received),
        TEST(a_server_that_stops_reading_a_file_ends_the_request),
        TEST(error_response_is_kept_in_memory_instead_of_the_file),
        TEST(file_error_is_reported_as_a_file_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
