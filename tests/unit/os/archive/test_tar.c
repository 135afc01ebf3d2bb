/* Headers of gzip and tar that honest programs never write, or rarely. */
#include "tests/support/world/unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/support/world/heap_meter.h"
#include "tests/support/world/made_archive.h"

/* ---- archives that grow in the reader's memory ---- */

enum { LONG = 8 << 20, HEAP_MAX = 1 << 20 };

/* The reader uses less than HEAP_MAX of memory, however long the header is. */
static void assert_refused_at_little_cost(struct made_archive *made, const char *reason)
{
    struct failure why = { 0 };
    struct bundle *bundle = made_open(made, &bundle_limits_default);
    heap_meter_begin();
    enum err err = bundle_check(bundle, NULL, &why);
    size_t peak = heap_meter_peak();
    if (!err || strcmp(why.text, reason) != 0)
        fail_msg("%d '%s' instead of '%s'", err, why.text, reason);
    if (peak > HEAP_MAX)
        fail_msg("%zu bytes for '%s'", peak, reason);
    bundle_close(bundle);
    made_finish(made);
}

static struct buf long_text(const char *piece)
{
    struct buf text = { 0 };
    while (text.len < LONG)
        buf_add_text(&text, piece);
    return text;
}

static void long_sparse_map_is_rejected_before_it_is_read(void **state)
{
    (void)state;
    struct made_archive made = { 0 };
    struct buf map = { 0 };
    buf_print(&map, "%d\n", LONG / 4);
    struct buf pieces = long_text("1\n1\n");
    buf_add(&map, buf_slice(&pieces));
    tar_add_pax(&made.tar, SLICE("GNU.sparse.major=1"));
    tar_add_pax(&made.tar, SLICE("GNU.sparse.minor=0"));
    tar_add(&made.tar, &(struct tar_entry){ .name = "x", .content = buf_slice(&map) });
    assert_refused_at_little_cost(&made, "\"x\" is a file with holes");
    buf_finish(&pieces);
    buf_finish(&map);

    /* An older form of GNU tar: a chain of headers, each of which announces the next. */
    char more[512] = { 0 };
    for (int i = 0; i < 21 * 24; i += 12)
        memcpy(more + i, "00000000001", 11);
    more[504] = 1;
    tar_add(&made.tar, &(struct tar_entry){ .name = "x", .type = 'S', .extended = true });
    while (made.tar.len < LONG)
        buf_add(&made.tar, (struct slice){ more, sizeof(more) });
    assert_refused_at_little_cost(&made, "\"x\" is a file with holes");
}

static void long_headers_are_rejected_before_they_are_read(void **state)
{
    (void)state;
    struct made_archive made = { 0 };
    struct buf text = long_text("n");
    tar_add(&made.tar,
            &(struct tar_entry){ .name = "n", .type = 'L', .content = buf_slice(&text) });
    tar_add_file(&made.tar, "x", "");
    assert_refused_at_little_cost(&made, "name too long (max 1024 bytes)");
    tar_add(&made.tar,
            &(struct tar_entry){ .name = "n", .type = 'K', .content = buf_slice(&text) });
    tar_add_file(&made.tar, "x", "");
    assert_refused_at_little_cost(&made, "name too long (max 1024 bytes)");
    static const char *const types[] = { "x", "X", "g" };
    for (size_t i = 0; i < 3; i++) {
        tar_add(&made.tar, &(struct tar_entry){ .name = "n",
                                                .type = *types[i],
                                                .content = buf_slice(&text) });
        tar_add_file(&made.tar, "x", "");
        assert_refused_at_little_cost(
            &made, "extended header of the archive too large (max 65536 bytes)");
    }
    buf_finish(&text);
}

static void sizes_of_short_headers_add_up(void **state)
{
    (void)state;
    struct made_archive made = { 0 };
    char value[3001] = "comment=";
    memset(value + 8, 'c', sizeof(value) - 8);
    for (int i = 0; i < 2; i++) {
        tar_add_pax(&made.tar, (struct slice){ value, sizeof(value) });
        tar_add_file(&made.tar, i ? "y" : "x", "");
    }
    made_assert_refused(&made, ERR_TOO_LARGE,
                        "the extended headers of the archive together are too large (max "
                        "5000 bytes, setting deploy-unpacked)");
}

static void entries_without_a_name_count_too(void **state)
{
    (void)state;
    struct made_archive made = { 0 };
    for (int i = 0; i < 56; i++)
        tar_add(&made.tar, &(struct tar_entry){ .name = "./", .type = '5' });
    made_assert_refused(&made, ERR_TOO_LARGE,
                        "too many headers in the archive (max 56, which is 4 for each file "
                        "of the setting deploy-files)");
    for (int i = 0; i < 55; i++)
        tar_add(&made.tar, &(struct tar_entry){ .name = "./", .type = '5' });
    made_assert_fine(&made);
}

static void global_pax_header_changes_no_file(void **state)
{
    (void)state;
    static const struct slice records[] = { SLICE("14 path=other\n"), SLICE("9 size=1\n") };
    struct made_archive made = { 0 };
    struct tar_entry header = { .name = "g", .type = 'g' };
    for (size_t i = 0; i < 2; i++) {
        header.content = records[i];
        tar_add(&made.tar, &header);
        tar_add_file(&made.tar, "x", "x");
        made_assert_refused(
            &made, ERR_INVALID,
            "cannot read the archive: a global pax header has the name or size of a file");
    }
    header.content = SLICE("19 comment=0123456\n");
    tar_add(&made.tar, &header);
    tar_add_file(&made.tar, "x", "x");
    assert_int_equal(made_assert_fine(&made).files, 1);
}

static void sizes_are_read_from_pax_headers_and_in_base_256(void **state)
{
    (void)state;
    struct made_archive made = { 0 };
    struct tar_entry entry = { .name = "x", .content = SLICE("abc"), .size = 1 };
    tar_add_pax(&made.tar, SLICE("size=3"));
    tar_add(&made.tar, &entry);
    tar_add_file(&made.tar, "y", "de");
    assert_int_equal(made_assert_fine(&made).unpacked, 5);
    entry = (struct tar_entry){ .name = "x", .content = SLICE("abc"), .binary_size = true };
    tar_add(&made.tar, &entry);
    assert_int_equal(made_assert_fine(&made).unpacked, 3);
    entry.size = UINT64_C(1) << 62;
    tar_add(&made.tar, &entry);
    made_assert_refused(
        &made, ERR_TOO_LARGE,
        "the files together are too large (max 5000 bytes, setting deploy-unpacked)");
    entry.size = UINT64_MAX; /* a negative size */
    tar_add(&made.tar, &entry);
    made_assert_refused(&made, ERR_INVALID, "cannot read the archive: a header is damaged");
}

/* ---- gzip ---- */

static void assert_packed(struct slice packed, const char *reason)
{
    struct failure why = { 0 };
    enum err err = made_check_bytes(packed, &why);
    if (!reason && err)
        fail_msg("%s", why.text);
    if (reason && (err != ERR_INVALID || strcmp(why.text, reason) != 0))
        fail_msg("%d '%s' instead of '%s'", err, why.text, reason);
}

static void endless_gzip_header_is_rejected(void **state)
{
    (void)state;
    struct buf packed = { 0 };
    for (unsigned char flag = 8; flag <= 16; flag += 8) { /* a name, a comment */
        buf_clear(&packed);
        buf_add(&packed, (struct slice){ "\x1f\x8b\x08", 3 });
        buf_add_char(&packed, (char)flag);
        while (packed.len < 5000)
            buf_add_char(&packed, 'n');
        assert_packed(buf_slice(&packed), "gzip header too long (max 4096 bytes)");
    }
    buf_finish(&packed);
}

static void consecutive_gzip_members_are_one_archive(void **state)
{
    (void)state;
    struct made_archive made = { 0 };
    struct buf packed = { 0 };
    tar_add_file(&made.tar, "package.json", "{}");
    tar_end(&made.tar);
    tar_gzip((struct slice){ made.tar.ptr, 700 }, &packed);
    tar_gzip(SLICE(""), &packed);
    tar_gzip(slice_from(buf_slice(&made.tar), 700), &packed);
    assert_packed(buf_slice(&packed), NULL);
    buf_clear(&packed);
    while (packed.len < (2 << 20))
        tar_gzip(SLICE(""), &packed);
    assert_packed(buf_slice(&packed), "too many gzip members in the archive (max 65536)");
    buf_finish(&packed);
    made_finish(&made);
}

static void a_gzip_header_may_have_a_name_a_comment_and_more(void **state)
{
    (void)state;
    static const char header[] = "\x1f\x8b\x08\x1e\0\0\0\0\0\x03\x02\0ab"
                                 "name\0comment\0\0";
    struct made_archive made = { 0 };
    struct buf packed = { 0 };
    tar_add_file(&made.tar, "package.json", "{}");
    bundle_close(made_open(&made, &made_limits));
    buf_add(&packed, (struct slice){ header, sizeof(header) });
    buf_add(&packed, slice_from(buf_slice(&made.packed), 10));
    assert_packed(buf_slice(&packed), NULL);
    packed.ptr[3] = (char)0xff;
    assert_packed(buf_slice(&packed), "the archive is not a tar archive in gzip");
    buf_finish(&packed);
    made_finish(&made);
}

static void damaged_gzip_is_rejected(void **state)
{
    (void)state;
    struct made_archive made = { 0 };
    tar_add_file(&made.tar, "package.json", "{}");
    struct buf packed = { 0 };
    tar_gzip(buf_slice(&made.tar), &packed);
    packed.ptr[packed.len - 1] ^= 1;
    assert_packed(buf_slice(&packed),
                  "cannot read the archive: its checksum does not match its content");
    packed.ptr[packed.len - 1] ^= 1;
    packed.ptr[10] = 7; /* an unknown block type */
    assert_packed(buf_slice(&packed),
                  "cannot read the archive: its compressed bytes are damaged");
    buf_finish(&packed);
    made_finish(&made);
}

static void add_end(struct made_archive *made, struct buf *packed)
{
    buf_clear(packed);
    buf_clear(&made->tar);
    tar_add_file(&made->tar, "package.json", "{}");
    tar_end(&made->tar);
    tar_gzip(buf_slice(&made->tar), packed);
}

/* tar has seen its end before the gzip trailer is read. */
static void damaged_or_missing_gzip_trailer_is_rejected(void **state)
{
    (void)state;
    struct made_archive made = { 0 };
    struct buf packed = { 0 };
    add_end(&made, &packed);
    assert_packed(buf_slice(&packed), NULL);
    for (size_t at = packed.len - 8; at < packed.len; at++) { /* checksum and size */
        packed.ptr[at] ^= 1;
        assert_packed(buf_slice(&packed),
                      "cannot read the archive: its checksum does not match its content");
        packed.ptr[at] ^= 1;
    }
    for (size_t len = packed.len - 8; len < packed.len; len++)
        assert_packed((struct slice){ packed.ptr, len },
                      "cannot read the archive: it ends too early");
    buf_add_text(&packed, "more");
    assert_packed(buf_slice(&packed), "the archive is not a tar archive in gzip");
    buf_finish(&packed);
    made_finish(&made);
}

static void only_zeros_may_follow_the_end_of_the_archive(void **state)
{
    (void)state;
    struct made_archive made = { 0 };
    struct buf packed = { 0 };
    struct failure why = { 0 };
    char *zeros = calloc(1, 1 << 20);
    add_end(&made, &packed);
    tar_gzip((struct slice){ zeros, 10240 }, &packed);
    assert_packed(buf_slice(&packed), NULL);
    zeros[10239] = 1;
    tar_gzip((struct slice){ zeros, 10240 }, &packed);
    assert_packed(buf_slice(&packed), "cannot read the archive: data follows its end");
    zeros[10239] = 0;
    add_end(&made, &packed);
    for (int i = 0; i < 17; i++)
        tar_gzip((struct slice){ zeros, 1 << 20 }, &packed);
    assert_int_equal(made_check_bytes(buf_slice(&packed), &why), ERR_TOO_LARGE);
    assert_string_equal(why.text,
                        "too many zeros follow the end of the archive (max 16777216)");
    free(zeros);
    buf_finish(&packed);
    made_finish(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_sparse_map_is_rejected_before_it_is_read),
        cmocka_unit_test(long_headers_are_rejected_before_they_are_read),
        cmocka_unit_test(sizes_of_short_headers_add_up),
        cmocka_unit_test(entries_without_a_name_count_too),
        cmocka_unit_test(global_pax_header_changes_no_file),
        cmocka_unit_test(sizes_are_read_from_pax_headers_and_in_base_256),
        cmocka_unit_test(endless_gzip_header_is_rejected),
        cmocka_unit_test(consecutive_gzip_members_are_one_archive),
        cmocka_unit_test(a_gzip_header_may_have_a_name_a_comment_and_more),
        cmocka_unit_test(damaged_gzip_is_rejected),
        cmocka_unit_test(damaged_or_missing_gzip_trailer_is_rejected),
        cmocka_unit_test(only_zeros_may_follow_the_end_of_the_archive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
