/* Host names with several addresses, or with none yet; the test plays the resolver. */
#include "tests/support/world/unit.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

#include "net/client/lookup.h"
#include "tests/support/world/client_world.h"

static struct client_world world;
static struct probe probe;
static const char *answers[4]; /* of the resolver, in order */
/* The resolver answers for name.example after it. */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint lookups; /* of name.example */

int getaddrinfo(const char *restrict host, const char *restrict port,
                const struct addrinfo *restrict hints, struct addrinfo **restrict found)
{
    struct addrinfo **end = found;
    bool is_gated = !strcmp(host, "name.example");
    (void)hints;
    *found = NULL;
    if (is_gated) {
        lookups++;
        pthread_mutex_lock(&gate);
        pthread_mutex_unlock(&gate);
    }
    for (size_t i = 0; i < 4 && answers[i]; i++) {
        struct sockaddr_in *address = calloc(1, sizeof(*address));
        struct addrinfo *one = calloc(1, sizeof(*one));
        address->sin_family = AF_INET;
        address->sin_port = htons((uint16_t)atoll(port));
        inet_pton(AF_INET, answers[i], &address->sin_addr);
        one->ai_family = AF_INET;
        one->ai_socktype = SOCK_STREAM;
        one->ai_addr = (struct sockaddr *)address;
        one->ai_addrlen = sizeof(*address);
        *end = one;
        end = &one->ai_next;
    }
    return *found ? 0 : EAI_NONAME;
}

void freeaddrinfo(struct addrinfo *found)
{
    while (found) {
        struct addrinfo *next = found->ai_next;
        free(found->ai_addr);
        free(found);
        found = next;
    }
}

static int open_world(void **state)
{
    struct failure why;
    char text[64];
    (void)state;
    memset(answers, 0, sizeof(answers));
    lookups = 0;
    client_world_open(&world);
    probe = (struct probe){ 0 };
    snprintf(text, sizeof(text), "http://name.example:%d", world.port);
    assert_int_equal(url_read(slice_of(text), &world.url, &why), OK);
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    client_world_close(&world);
    probe_finish(&probe);
    return 0;
}

static void next_address_is_tried_after_a_failed_one(void **state)
{
    struct far far;
    (void)state;
    answers[0] = "127.0.0.2";       /* connection refused */
    answers[1] = "255.255.255.255"; /* not reachable at all */
    answers[2] = "127.0.0.1";
    client_world_fetcher(&world, (struct fetcher_options){ 0 });
    probe_begin(&world, &probe, "/");
    far_accept(&world, &far);
    far_await(&world, &far, "\r\nhost: name.example:");
    far_say(&world, &far, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    probe_expect(&world, &probe, 200, "ok");
    far_close(&far);
}

static void failure_of_the_last_address_is_reported(void **state)
{
    (void)state;
    answers[0] = "127.0.0.2";
    answers[1] = "127.0.0.3";
    client_world_fetcher(&world, (struct fetcher_options){ 0 });
    probe_begin(&world, &probe, "/");
    probe_expect_error(&world, &probe, ERR_UNREACHABLE);
    assert_non_null(strstr(probe.why, "127.0.0.3 (port "));
    assert_non_null(strstr(probe.why, "refused"));
}

static void a_name_without_addresses_is_unreachable(void **state)
{
    (void)state;
    client_world_fetcher(&world, (struct fetcher_options){ 0 });
    probe_begin(&world, &probe, "/");
    probe_expect_error(&world, &probe, ERR_UNREACHABLE);
    assert_non_null(strstr(probe.why, "name.example:"));
}

static void slow_resolver_blocks_neither_timeout_nor_cancel(void **state)
{
    struct probe second = { 0 };
    (void)state;
    answers[0] = "127.0.0.1";
    client_world_fetcher(&world, (struct fetcher_options){ .connect_ms = 30 });
    pthread_mutex_lock(&gate);
    probe_begin(&world, &probe, "/");
    probe_begin(&world, &second, "/");
    client_world_turn(&world);
    fetch_cancel(&second.fetch);
    probe_expect_error(&world, &second, ERR_CANCELED);
    probe_expect_error(&world, &probe, ERR_UNREACHABLE);
    assert_non_null(strstr(probe.why, "timed out while resolving"));
    pthread_mutex_unlock(&gate); /* its late answer is ignored */
    assert_true(far_is_alone(&world));
}

static bool has_begun(void *owner)
{
    (void)owner;
    return lookups > 0;
}

static void on_closed(void *owner)
{
    *(bool *)owner = true;
}

static bool is_closed(void *owner)
{
    return *(bool *)owner;
}

static void slow_resolver_does_not_delay_a_close(void **state)
{
    bool closed = false;
    (void)state;
    answers[0] = "127.0.0.1";
    client_world_fetcher(&world, (struct fetcher_options){ 0 });
    pthread_mutex_lock(&gate);
    probe_begin(&world, &probe, "/");
    client_world_until(&world, has_begun, NULL);
    fetcher_close(world.fetcher, on_closed, &closed);
    world.fetcher = NULL;
    client_world_until(&world, is_closed, &closed);
    assert_int_equal(probe.error, ERR_CANCELED);
    pthread_mutex_unlock(&gate);
}

static void connections_to_one_slow_name_leave_threads_for_other_names(void **state)
{
    struct probe slow[8] = { 0 };
    struct far far;
    bool closed = false;
    (void)state;
    answers[0] = "127.0.0.1";
    client_world_fetcher(&world, (struct fetcher_options){ 0 });
    struct fetcher *fetcher = world.fetcher;
    pthread_mutex_lock(&gate);
    for (int i = 0; i < 8; i++)
        probe_begin(&world, &slow[i], "/");
    client_world_until(&world, has_begun, NULL);

    snprintf(world.url.host, sizeof(world.url.host), "other.example");
    client_world_fetcher(&world, (struct fetcher_options){ 0 });
    probe_begin(&world, &probe, "/");
    far_accept(&world, &far);
    far_await(&world, &far, "\r\nhost: other.example:");
    far_say(&world, &far, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    probe_expect(&world, &probe, 200, "ok");
    assert_int_equal(lookups, 1);

    fetcher_close(fetcher, on_closed, &closed);
    client_world_until(&world, is_closed, &closed);
    pthread_mutex_unlock(&gate);
    far_close(&far);
    for (int i = 0; i < 8; i++)
        probe_finish(&slow[i]);
}

static void connections_share_the_addresses_of_one_lookup(void **state)
{
    struct probe second = { 0 };
    struct far far;
    (void)state;
    answers[0] = "127.0.0.2"; /* connection refused */
    answers[1] = "127.0.0.1";
    client_world_fetcher(&world, (struct fetcher_options){ 0 });
    pthread_mutex_lock(&gate);
    probe_begin(&world, &probe, "/");
    probe_begin(&world, &second, "/");
    client_world_until(&world, has_begun, NULL);
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < 2; i++) {
        far_accept(&world, &far);
        far_await(&world, &far, "\r\nhost: name.example:");
        far_say(&world, &far,
                "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok");
        far_close(&far);
    }
    probe_expect(&world, &probe, 200, "ok");
    probe_expect(&world, &second, 200, "ok");
    assert_int_equal(lookups, 1);
    probe_finish(&second);
}

static void ignore(struct lookup *lookup, int status, const struct addrinfo *addresses)
{
    (void)lookup;
    (void)status;
    (void)addresses;
    fail();
}

static void slow_resolver_does_not_delay_the_end_of_a_loop(void **state)
{
    struct lookup lookup = { .done = ignore };
    uv_loop_t uv;
    (void)state;
    uv_loop_init(&uv);
    struct loop *loop = loop_create(&uv);
    pthread_mutex_lock(&gate);
    assert_true(lookup_begin(loop, &world.url, &lookup));
    while (!lookups)
        sched_yield();
    lookup_end(&lookup);
    loop_destroy(loop);
    lookup_run_others(&uv);
    assert_int_equal(uv_loop_close(&uv), UV_EBUSY);
    pthread_mutex_unlock(&gate);
    uv_run(&uv, UV_RUN_DEFAULT);
    lookup_run_others(&uv);
    assert_int_equal(uv_loop_close(&uv), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(next_address_is_tried_after_a_failed_one),
        TEST(failure_of_the_last_address_is_reported),
        TEST(a_name_without_addresses_is_unreachable),
        TEST(slow_resolver_blocks_neither_timeout_nor_cancel),
        TEST(slow_resolver_does_not_delay_a_close),
        TEST(connections_to_one_slow_name_leave_threads_for_other_names),
        TEST(connections_share_the_addresses_of_one_lookup),
        TEST(slow_resolver_does_not_delay_the_end_of_a_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
