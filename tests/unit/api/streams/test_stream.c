/* A stream keeps its newest chunks, a set its budget, and readers learn of lost chunks. */
#include "tests/support/world/unit.h"

#include <stdio.h>

#include "api/streams/stream.h"
#include "base/mem.h"
#include "base/metrics.h"

enum { STREAM_BYTES = 1 << 20, CHUNK = 1000 };

static const struct slice run = { "run_1", 5 };

static struct stream *use(struct stream_set *set, const char *key)
{
    return stream_use(set, STREAM_OUTPUT, run, slice_of(key));
}

/* Appends a frame of len bytes that contains its own number. */
static void append(struct stream_set *set, struct stream *stream, size_t len, int64_t at_ms)
{
    struct bytes *frame = bytes_create_empty(len);
    snprintf(frame->data, len + 1, "%llu", (unsigned long long)stream->next);
    stream_append(set, stream, frame, at_ms);
}

static void append_many(struct stream_set *set, struct stream *stream, int count)
{
    for (int i = 0; i < count; i++)
        append(set, stream, CHUNK, 1000 + i);
}

static size_t bytes_of_all(const struct stream_set *set)
{
    size_t bytes = 0, at = 0;
    const struct stream *stream;
    while ((stream = table_next(&set->table, &at)))
        bytes += stream->bytes;
    return bytes;
}

static int create_set(void **state)
{
    struct stream_set *set = mem_new(struct stream_set);
    stream_set_init(set, 64 << 20, STREAM_BYTES, 500);
    *state = set;
    return 0;
}

static int destroy_set(void **state)
{
    struct stream_set *set = *state;
    stream_set_finish(set);
    assert_int_equal(metrics[M_STREAMS], 0);
    assert_int_equal(metrics[M_STREAM_BYTES], 0);
    free(set);
    return 0;
}

static void each_reader_reads_chunks_in_order(void **state)
{
    struct stream_set *set = *state;
    struct stream *stream = use(set, "k");
    uint64_t first = 0, second = 0;
    assert_null(stream_read(stream, &first));
    append_many(set, stream, 3);
    for (int i = 0; i < 3; i++) {
        char number[16];
        snprintf(number, sizeof(number), "%d", i);
        assert_string_equal(stream_read(stream, &first)->data, number);
    }
    assert_null(stream_read(stream, &first));
    assert_string_equal(stream_read(stream, &second)->data, "0");
    assert_int_equal(first, 3);
    stream_release(set, stream);
}

static void full_stream_drops_oldest_chunks_and_reports_their_number(void **state)
{
    struct stream_set *set = *state;
    struct stream *stream = use(set, "k");
    append_many(set, stream, 2000);
    uint64_t place = 5, kept = stream->next - stream->first;
    assert_in_range(kept, STREAM_BYTES / (CHUNK + 200), STREAM_BYTES / CHUNK);
    assert_true(stream->bytes <= STREAM_BYTES);
    assert_int_equal(stream_missed(stream, place), 2000 - kept - 5);
    for (uint64_t i = 2000 - kept; i < 2000; i++) {
        char number[24];
        snprintf(number, sizeof(number), "%llu", (unsigned long long)i);
        assert_string_equal(stream_read(stream, &place)->data, number);
        assert_int_equal(stream_missed(stream, place), 0);
    }
    assert_int_equal(set->bytes, bytes_of_all(set));
    stream_release(set, stream);
}

/* Many short chunks may stay as well as a few long ones. */
static void short_chunks_are_limited_by_their_bytes_alone(void **state)
{
    struct stream_set *set = *state;
    struct stream *stream = use(set, "k");
    uint64_t place = 0;
    for (int i = 0; i < 5000; i++)
        append(set, stream, 10, 1000);
    assert_int_equal(stream->first, 0);
    assert_string_equal(stream_read(stream, &place)->data, "0");
    append(set, stream, STREAM_BYTES, 1000);
    assert_int_equal(stream->next - stream->first, 1);
    assert_in_range(stream->capacity, 1, 16); /* the ring shrinks with its chunks */
    stream_release(set, stream);
}

static void newest_chunk_is_kept_however_long(void **state)
{
    struct stream_set *set = *state;
    struct stream *stream = use(set, "k");
    append(set, stream, 10, 1);
    append(set, stream, 2 * STREAM_BYTES, 1);
    assert_int_equal(stream->next - stream->first, 1);
    stream_release(set, stream);
}

/* A writer counts on from chunks before a restart; these do not count as lost. */
static void stream_that_begins_later_has_lost_no_chunks(void **state)
{
    struct stream_set *set = *state;
    struct stream *stream = use(set, "k");
    stream_start_at(stream, 7);
    append(set, stream, 10, 1);
    assert_int_equal(stream_missed(stream, 0), 0);
    append(set, stream, 2 * STREAM_BYTES, 1);
    assert_int_equal(stream_missed(stream, 0), 1);
    stream_release(set, stream);
}

static void set_knows_since_when_it_has_dropped_no_stream(void **state)
{
    struct stream_set *set = *state;
    struct stream *old = use(set, "old"), *stream = use(set, "new");
    assert_int_equal(set->whole_since, 500);
    append(set, old, 10, 1000);
    stream_release(set, old);
    append(set, stream, 10, 2000);
    assert_int_equal(set->whole_since, 500);
    stream_set_drop(set);
    assert_int_equal(set->whole_since, 1000);
    stream_release(set, stream);
}

static void full_set_drops_the_least_recently_written_stream(void **state)
{
    struct stream_set *set = *state;
    struct stream *old = use(set, "old"), *busy = use(set, "busy");
    uint64_t place = 0;
    set->budget = 100 << 10;
    append(set, old, 10 << 10, 1);
    append(set, busy, 10 << 10, 2);
    append(set, old, 10 << 10, 3);
    for (int i = 0; i < 7; i++)
        append(set, busy, 10 << 10, 4);
    assert_int_equal(old->next - old->first, 1);
    assert_string_equal(stream_read(old, &place)->data, "1");
    append(set, busy, 10 << 10, 5);
    assert_int_equal(old->next - old->first, 0);
    assert_int_equal(busy->next - busy->first, 9);
    append(set, busy, 200 << 10, 6);
    assert_int_equal(busy->next - busy->first, 1);
    stream_release(set, old);
    stream_release(set, busy);
    assert_null(stream_find(set, STREAM_OUTPUT, run, SLICE("old")));
    assert_ptr_equal(stream_find(set, STREAM_OUTPUT, run, SLICE("busy")), busy);
}

static void unused_empty_stream_is_freed(void **state)
{
    struct stream_set *set = *state;
    struct stream *stream = use(set, "k");
    assert_ptr_equal(use(set, "k"), stream);
    stream_release(set, stream);
    assert_int_equal(set->table.count, 1);
    stream_release(set, stream);
    assert_int_equal(set->table.count, 0);
    assert_int_equal(set->bytes, 0);
}

static void streams_of_kinds_runs_and_keys_are_separate(void **state)
{
    struct stream_set *set = *state;
    static const struct {
        enum stream_kind kind;
        const char *run, *key;
    } names[] = {
        { STREAM_OUTPUT, "run_1", "k" },
        { STREAM_INPUT, "run_1", "k" },
        { STREAM_OUTPUT, "run_2", "k" },
        { STREAM_OUTPUT, "run_1", "/k" },
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct stream *stream =
            stream_use(set, names[i].kind, slice_of(names[i].run), slice_of(names[i].key));
        assert_int_equal(stream->next, 0);
        append_many(set, stream, 1);
        stream_release(set, stream);
    }
    assert_int_equal(set->table.count, 4);
}

static void stream_is_dropped_after_a_day(void **state)
{
    struct stream_set *set = *state;
    struct stream *old = use(set, "old"), *stream = use(set, "new");
    append(set, old, 10, 1000);
    stream_release(set, old);
    append(set, stream, 10, 1000 + STREAM_KEPT_MS - 1);
    assert_int_equal(set->table.count, 2);
    append(set, stream, 10, 1000 + STREAM_KEPT_MS);
    assert_int_equal(set->table.count, 1);
    stream_release(set, stream);
}

static void reader_resumes_after_its_last_chunk(void **state)
{
    struct stream_set *set = *state;
    struct stream *stream = use(set, "k");
    append_many(set, stream, 1010); /* from 1000 ms on */
    assert_true(stream->first > 0);
    static const struct {
        int64_t at_ms;
        uint64_t index, place;
    } cases[] = {
        { 1500, 500, 501 }, { -1, 500, 501 }, { 2009, 1009, 1010 },
        { 1003, 3, 4 },     { -1, 3, 4 },     { 999, 500, 0 }, /* before a restart */
        { 5000, 1010, 0 },  { -1, 5000, 0 },  { -1, UINT64_MAX, 0 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(stream_after(stream, cases[i].at_ms, cases[i].index),
                         cases[i].place);
    stream_release(set, stream);
}

static void times_in_a_stream_never_decrease(void **state)
{
    struct stream_set *set = *state;
    struct stream *stream = use(set, "k");
    assert_int_equal(stream_time(stream, 500), 500);
    append(set, stream, 10, 500);
    assert_int_equal(stream_time(stream, 499), 500);
    assert_int_equal(stream_time(stream, 501), 501);
    stream_release(set, stream);
}

static void newest_writers_are_remembered(void **state)
{
    struct stream_set *set = *state;
    struct stream *stream = use(set, "k");
    struct stream_clients *clients = &stream->clients;
    char name[16];
    assert_int_equal(stream_client_last(clients, SLICE("w0")), -1);
    for (uint64_t i = 0; i < STREAM_CLIENTS_MAX; i++) {
        snprintf(name, sizeof(name), "w%d", (int)i);
        stream_client_wrote(clients, slice_of(name), i);
    }
    stream_client_wrote(clients, SLICE("w0"), 100);
    stream_client_wrote(clients, SLICE("new"), 7);
    assert_int_equal(stream_client_last(clients, SLICE("w0")), 100);
    assert_int_equal(stream_client_last(clients, SLICE("w1")), -1);
    assert_int_equal(stream_client_last(clients, SLICE("w2")), 2);
    assert_int_equal(stream_client_last(clients, SLICE("new")), 7);
    assert_int_equal(clients->count, STREAM_CLIENTS_MAX);
    stream_release(set, stream);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, create_set, destroy_set)
    const struct CMUnitTest tests[] = {
        TEST(each_reader_reads_chunks_in_order),
        TEST(full_stream_drops_oldest_chunks_and_reports_their_number),
        TEST(short_chunks_are_limited_by_their_bytes_alone),
        TEST(newest_chunk_is_kept_however_long),
        TEST(stream_that_begins_later_has_lost_no_chunks),
        TEST(set_knows_since_when_it_has_dropped_no_stream),
        TEST(full_set_drops_the_least_recently_written_stream),
        TEST(unused_empty_stream_is_freed),
        TEST(streams_of_kinds_runs_and_keys_are_separate),
        TEST(stream_is_dropped_after_a_day),
        TEST(reader_resumes_after_its_last_chunk),
        TEST(times_in_a_stream_never_decrease),
        TEST(newest_writers_are_remembered),
    };
    return cmocka_run_group_tests_name("stream", tests, NULL, NULL);
}
