/* A body is compressed once for all clients that get it, even with other bodies in
 * between. */
#include "tests/support/world/unit.h"

#include <zlib.h>

#include "api/realtime/gzip.h"

/* Makes text with some redundancy, different for each seed. */
static struct bytes *make_body(size_t len, unsigned seed)
{
    struct bytes *body = bytes_create_empty(len);
    for (size_t i = 0; i < len; i++)
        body->data[i] = (char)('a' + (i * (seed + 7) + i / 13) % 17);
    return body;
}

static void compressed_body_unpacks_to_the_original(void **state)
{
    struct bytes *body = make_body(50000, 0), *packed = gzip_shared(body);
    static unsigned char room[60000];
    z_stream stream = { 0 };
    (void)state;
    assert_non_null(packed);
    assert_true(packed->len < body->len);
    assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
    stream.next_in = (unsigned char *)packed->data;
    stream.avail_in = packed->len;
    stream.next_out = room;
    stream.avail_out = sizeof(room);
    assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
    assert_int_equal(stream.total_out, body->len);
    assert_memory_equal(room, body->data, body->len);
    inflateEnd(&stream);
    bytes_unref(packed);
    bytes_unref(body);
    gzip_forget();
}

static void each_of_several_bodies_is_compressed_once(void **state)
{
    struct bytes *bodies[32], *packed[32];
    (void)state;
    for (unsigned i = 0; i < 32; i++) {
        bodies[i] = make_body(4000, i);
        packed[i] = gzip_shared(bodies[i]);
    }
    for (unsigned round = 0; round < 3; round++)
        for (unsigned i = 0; i < 32; i++) {
            struct bytes *again = gzip_shared(bodies[i]);
            assert_ptr_equal(again, packed[i]);
            bytes_unref(again);
        }
    for (unsigned i = 0; i < 32; i++) {
        bytes_unref(bodies[i]);
        bytes_unref(packed[i]);
    }
    gzip_forget();
}

static void oldest_results_are_forgotten(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 200; i++) {
        struct bytes *body = make_body(GZIP_MOST, i);
        bytes_unref(gzip_shared(body));
        bytes_unref(body);
    }
    gzip_forget(); /* the sanitizer reports leaks */
}

static void too_small_and_too_large_bodies_are_not_compressed(void **state)
{
    static const size_t sizes[] = { 0, 1, GZIP_WORTH - 1, GZIP_MOST + 1, 4 << 20 };
    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct bytes *body = make_body(sizes[i], 0);
        assert_null(gzip_shared(body));
        bytes_unref(body);
    }
}

static void body_that_would_not_shrink_is_not_compressed(void **state)
{
    struct bytes *body = bytes_create_empty(2000);
    uint32_t noise = 1;
    (void)state;
    for (size_t i = 0; i < body->len; i++) {
        noise = noise * 1664525 + 1013904223;
        body->data[i] = (char)(noise >> 24);
    }
    assert_null(gzip_shared(body));
    assert_null(gzip_shared(body));
    bytes_unref(body);
    gzip_forget();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compressed_body_unpacks_to_the_original),
        cmocka_unit_test(each_of_several_bodies_is_compressed_once),
        cmocka_unit_test(oldest_results_are_forgotten),
        cmocka_unit_test(too_small_and_too_large_bodies_are_not_compressed),
        cmocka_unit_test(body_that_would_not_shrink_is_not_compressed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
