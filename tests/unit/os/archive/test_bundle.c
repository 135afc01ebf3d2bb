/* Content that a bundle may have or not, each case with an archive made for it. */
#include "tests/support/world/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "os/archive/bundle.h"
#include "tests/support/world/made_archive.h"

static void plain_files_and_folders_are_counted(void **state)
{
    (void)state;
    struct made_archive made = { 0 };
    tar_add(&made.tar, &(struct tar_entry){ .name = "./", .type = '5', .mode = 0755 });
    tar_add_file(&made.tar, "./package.json", "{}");
    tar_add(&made.tar, &(struct tar_entry){ .name = "src/", .type = '5', .mode = 0755 });
    tar_add_file(&made.tar, "src/index.mjs", "export {}");
    tar_add_file(&made.tar, "a/b/..c/...", "");
    tar_add(&made.tar, &(struct tar_entry){ .name = "src", .type = '5' });
    struct bundle_content content = made_assert_fine(&made);
    assert_int_equal(content.files, 3);
    assert_int_equal(content.folders, 4);
    assert_int_equal(content.unpacked, 11);
    assert_true(content.packed > 0);
}

static void long_and_utf8_names_are_read(void **state)
{
    (void)state;
    struct made_archive made = { 0 };
    char name[220] = "long/";
    memset(name + 5, 'n', 200);
    tar_add_gnu_name(&made.tar, name);
    tar_add_file(&made.tar, "short", "gnu");
    tar_add_pax(&made.tar, SLICE("path=gr\xc3\xbc\xc3\x9f/\xe2\x82\xac.txt"));
    tar_add_file(&made.tar, "other", "pax");
    tar_add_file(&made.tar, "\xc3\xa4.txt", "ustar");
    struct bundle *bundle = made_open(&made, &made_limits);
    struct buf text = { 0 };
    struct failure why = { 0 };
    enum err err = bundle_read_file(bundle, slice_of(name), 10, &text, &why);
    assert_int_equal(err, OK);
    err = bundle_read_file(bundle, SLICE("gr\xc3\xbc\xc3\x9f/\xe2\x82\xac.txt"), 10, &text,
                           &why);
    assert_int_equal(err, OK);
    err = bundle_read_file(bundle, SLICE("\xc3\xa4.txt"), 10, &text, &why);
    assert_int_equal(err, OK);
    assert_true(slice_is(buf_slice(&text), "gnupaxustar"));
    buf_finish(&text);
    bundle_close(bundle);
    made_finish(&made);
}

static void links_and_devices_are_rejected(void **state)
{
    (void)state;
    static const struct {
        char type;
        const char *reason;
    } kinds[] = {
        { '1', "\"x\" is a link" },   { '2', "\"x\" is a link" },
        { '3', "\"x\" is a device" }, { '4', "\"x\" is a device" },
        { '6', "\"x\" is a pipe" },
    };
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        struct made_archive made = { 0 };
        tar_add_file(&made.tar, "a", "a");
        tar_add(&made.tar,
                &(struct tar_entry){ .name = "x", .type = kinds[i].type, .link = "a" });
        made_assert_refused(&made, ERR_INVALID, kinds[i].reason);
    }
    struct made_archive made = { 0 };
    tar_add_pax(&made.tar, SLICE("linkpath=/etc/passwd"));
    tar_add(&made.tar, &(struct tar_entry){ .name = "x", .type = '2' });
    made_assert_refused(&made, ERR_INVALID, "\"x\" is a link");
}

static void names_outside_of_the_folder_are_rejected(void **state)
{
    (void)state;
    static const struct {
        const char *name, *reason;
    } names[] = {
        { "/etc/passwd", "the name \"/etc/passwd\" is absolute" },
        { "//x", "the name \"//x\" is absolute" },
        { "..", "the name \"..\" has the forbidden part \"..\"" },
        { "../x", "the name \"../x\" has the forbidden part \"..\"" },
        { "./../x", "the name \"../x\" has the forbidden part \"..\"" },
        { "a/../../x", "the name \"a/../../x\" has the forbidden part \"..\"" },
        { "a/..", "the name \"a/..\" has the forbidden part \"..\"" },
        { "a/./x", "the name \"a/./x\" has the forbidden part \".\"" },
        { "a//x", "the name \"a//x\" has the forbidden part \"\"" },
        { "a\nb", "a name has a control character" },
        { "a\x7f", "a name has a control character" },
        { "a\xff", "a name is not UTF-8" },
        { "\xc0\xae\xc0\xae/x", "a name is not UTF-8" },
        { "\xed\xa0\x80", "a name is not UTF-8" },
        { "a\\..\\x", NULL },
        { ".", "a file has the name of a folder" },
        { "", "an entry has no name" },
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        struct made_archive made = { 0 };
        tar_add_file(&made.tar, names[i].name, "x");
        if (names[i].reason)
            made_assert_refused(&made, ERR_INVALID, names[i].reason);
        else
            made_assert_fine(&made); /* an ordinary name here */
    }
}

static void names_in_pax_headers_are_checked_too(void **state)
{
    (void)state;
    static const struct {
        struct slice record;
        const char *reason;
    } records[] = {
        { SLICE("path=../x"), "the name \"../x\" has the forbidden part \"..\"" },
        { SLICE("path=/x"), "the name \"/x\" is absolute" },
        { SLICE("path=a\x01"), "a name has a control character" },
        { SLICE("GNU.sparse.name=../x"), NULL },
    };
    for (size_t i = 0; i < 3; i++) {
        struct made_archive made = { 0 };
        tar_add_pax(&made.tar, records[i].record);
        tar_add_file(&made.tar, "x", "x");
        made_assert_refused(&made, ERR_INVALID, records[i].reason);
    }
    struct made_archive made = { 0 };
    struct failure why = { 0 };
    tar_add_pax(&made.tar, SLICE("path=a\xff\xfe"));
    tar_add_file(&made.tar, "x", "x");
    struct bundle *bundle = made_open(&made, &made_limits);
    assert_int_equal(bundle_check(bundle, NULL, &why), ERR_INVALID);
    bundle_close(bundle);
    made_finish(&made);
}

static void name_with_a_nul_is_rejected(void **state)
{
    (void)state;
    struct made_archive made = { 0 };
    tar_add_pax(&made.tar, SLICE("path=a\0/../../b"));
    tar_add_file(&made.tar, "x", "x");
    made_assert_refused(&made, ERR_INVALID, "a name has a control character");
}

static void too_long_or_deep_names_are_rejected(void **state)
{
    (void)state;
    struct made_archive made = { 0 };
    struct buf record = { 0 };
    buf_add_text(&record, "path=");
    for (int i = 0; i < 1025; i++)
        buf_add_char(&record, i % 200 ? 'n' : 'm');
    tar_add_pax(&made.tar, buf_slice(&record));
    tar_add_file(&made.tar, "x", "x");
    made_assert_refused(&made, ERR_INVALID, "name too long (max 1024 bytes)");

    buf_clear(&record);
    buf_add_text(&record, "path=a/");
    for (int i = 0; i < 255; i++)
        buf_add_char(&record, 'n');
    tar_add_pax(&made.tar, buf_slice(&record));
    tar_add_file(&made.tar, "x", "x");
    made_assert_fine(&made);
    buf_add_char(&record, 'n');
    tar_add_pax(&made.tar, buf_slice(&record));
    tar_add_file(&made.tar, "x", "x");
    made_assert_refused(&made, ERR_INVALID, "part of a name too long (max 255 bytes)");

    buf_clear(&record);
    buf_add_text(&record, "path=");
    for (int i = 0; i < 101; i++)
        buf_add_text(&record, i ? "/a" : "a");
    tar_add_pax(&made.tar, buf_slice(&record));
    tar_add_file(&made.tar, "x", "x");
    struct failure why = { 0 };
    struct bundle *bundle = made_open(&made, &made_limits);
    assert_int_equal(bundle_check(bundle, NULL, &why), ERR_INVALID);
    assert_non_null(strstr(why.text, "too many parts in the name"));
    bundle_close(bundle);
    made_finish(&made);
    buf_finish(&record);
}

static void name_may_occur_only_once(void **state)
{
    (void)state;
    struct made_archive made = { 0 };
    tar_add_file(&made.tar, "package.json", "{}");
    tar_add_file(&made.tar, "./package.json", "{\"a\":1}");
    made_assert_refused(&made, ERR_INVALID, "\"package.json\" occurs twice");
    tar_add_file(&made.tar, "a", "x");
    tar_add(&made.tar, &(struct tar_entry){ .name = "a/", .type = '5' });
    made_assert_refused(&made, ERR_INVALID, "\"a\" is both a file and a folder");
    tar_add(&made.tar, &(struct tar_entry){ .name = "a/", .type = '5' });
    tar_add_file(&made.tar, "a", "x");
    made_assert_refused(&made, ERR_INVALID, "\"a\" is both a file and a folder");
    tar_add_file(&made.tar, "a", "x");
    tar_add_file(&made.tar, "a/b", "x");
    made_assert_refused(&made, ERR_INVALID, "\"a\" is both a file and a folder");
    tar_add_file(&made.tar, "a/b", "x");
    tar_add_file(&made.tar, "a", "x");
    made_assert_refused(&made, ERR_INVALID, "\"a\" is both a file and a folder");
}

static void number_of_files_and_folders_is_limited(void **state)
{
    (void)state;
    struct made_archive made = { 0 };
    char name[32];
    for (int i = 0; i < 9; i++) {
        snprintf(name, sizeof(name), "a/%d", i);
        tar_add_file(&made.tar, name, "");
    }
    made_assert_fine(&made);
    tar_add_file(&made.tar, "a/b/c/d/e/f/g/h/i/j", "");
    made_assert_fine(&made);
    tar_add_file(&made.tar, "a/b/c/d/e/f/g/h/i/j/k", "");
    made_assert_refused(&made, ERR_TOO_LARGE,
                        "too many files and folders (max 10, setting deploy-files)");
}

static void unpacked_bytes_are_limited(void **state)
{
    (void)state;
    static char zeros[5001];
    struct made_archive made = { 0 };
    struct tar_entry entry = { .name = "a", .content = { zeros, 4000 } };
    tar_add(&made.tar, &entry);
    entry = (struct tar_entry){ .name = "b", .content = { zeros, 1000 } };
    tar_add(&made.tar, &entry);
    made_assert_fine(&made);
    entry = (struct tar_entry){ .name = "a", .content = { zeros, 5001 } };
    tar_add(&made.tar, &entry);
    made_assert_refused(
        &made, ERR_TOO_LARGE,
        "the files together are too large (max 5000 bytes, setting deploy-unpacked)");
    entry = (struct tar_entry){ .name = "a", .content = { zeros, 4000 } };
    tar_add(&made.tar, &entry);
    entry = (struct tar_entry){ .name = "b", .content = { zeros, 1001 } };
    tar_add(&made.tar, &entry);
    made_assert_refused(
        &made, ERR_TOO_LARGE,
        "the files together are too large (max 5000 bytes, setting deploy-unpacked)");
    /* A header that claims a greater size is rejected before the file is read. */
    entry = (struct tar_entry){ .name = "a", .size = UINT64_C(8) << 30 };
    entry.size = 077777777777;
    tar_add(&made.tar, &entry);
    made_assert_refused(
        &made, ERR_TOO_LARGE,
        "the files together are too large (max 5000 bytes, setting deploy-unpacked)");
}

static void decompression_bomb_is_rejected_while_it_is_read(void **state)
{
    (void)state;
    enum { LEN = 40 << 20 };
    struct made_archive made = { 0 };
    char *zeros = calloc(1, LEN);
    struct tar_entry entry = { .name = "a", .content = { zeros, LEN } };
    struct failure why = { 0 };
    tar_add(&made.tar, &entry);
    struct bundle *bundle = made_open(&made, &bundle_limits_default);
    assert_int_equal(bundle_check(bundle, NULL, &why), ERR_TOO_LARGE);
    assert_string_equal(why.text,
                        "the files are too large for the archive (max 200 times its size)");
    bundle_close(bundle);
    made_finish(&made);
    free(zeros);
}

static void sparse_files_are_rejected(void **state)
{
    (void)state;
    static const struct slice records[] = {
        SLICE("GNU.sparse.map=0,1,3000,1"),
        SLICE("GNU.sparse.major=1"),
        SLICE("SCHILY.realsize=3001"),
        SLICE("SUN.holesdata= 0 1 3000"),
    };
    struct made_archive made = { 0 };
    for (size_t i = 0; i < sizeof(records) / sizeof(*records); i++) {
        tar_add_pax(&made.tar, records[i]);
        tar_add_file(&made.tar, "x", "ab");
        made_assert_refused(&made, ERR_INVALID, "\"x\" is a file with holes");
    }
    tar_add(&made.tar, &(struct tar_entry){ .name = "x", .type = 'S' });
    made_assert_refused(&made, ERR_INVALID, "\"x\" is a file with holes");
}

static void archive_that_is_not_tar_in_gzip_is_rejected(void **state)
{
    (void)state;
    struct made_archive made = { 0 };
    struct buf packed = { 0 };
    struct failure why = { 0 };
    tar_add_file(&made.tar, "package.json", "{}");
    tar_end(&made.tar);
    assert_int_equal(made_check_bytes(buf_slice(&made.tar), &why), ERR_INVALID);
    assert_string_equal(why.text, "the archive is not a tar archive in gzip");
    assert_int_equal(made_check_bytes(SLICE(""), &why), ERR_INVALID);
    assert_int_equal(made_check_bytes(SLICE("PK\003\004 not ours"), &why), ERR_INVALID);
    tar_gzip(SLICE("this is no tar archive"), &packed);
    assert_int_equal(made_check_bytes(buf_slice(&packed), &why), ERR_INVALID);
    buf_clear(&packed);
    tar_gzip(buf_slice(&made.tar), &packed);
    tar_gzip(buf_slice(&packed), &made.packed); /* gzip in gzip */
    assert_int_equal(made_check_bytes(buf_slice(&made.packed), &why), ERR_INVALID);
    assert_string_equal(why.text, "the archive is not a tar archive in gzip");
    buf_finish(&packed);
    made_finish(&made);
}

static void truncated_archive_is_rejected(void **state)
{
    (void)state;
    struct made_archive made = { 0 };
    struct failure why = { 0 };
    char noise[3000];
    for (size_t i = 0; i < sizeof(noise); i++)
        noise[i] = (char)(i * i * 7919 >> 3);
    struct tar_entry entry = { .name = "a", .content = { noise, sizeof(noise) } };
    tar_add(&made.tar, &entry);
    bundle_close(made_open(&made, &made_limits));
    for (size_t len = 0; len < made.packed.len - 8; len += 37) {
        enum err err = made_check_bytes((struct slice){ made.packed.ptr, len }, &why);
        if (err != ERR_INVALID && len < made.packed.len / 2)
            fail_msg("cut at %zu: %d", len, err);
    }
    made_finish(&made);
}

static void one_file_is_read_up_to_a_limit(void **state)
{
    (void)state;
    struct made_archive made = { 0 };
    struct buf text = { 0 };
    struct failure why = { 0 };
    tar_add_file(&made.tar, "other", "other");
    tar_add_file(&made.tar, "./build.json", "{\"a\":1}");
    struct bundle *bundle = made_open(&made, &made_limits);
    buf_add_text(&text, "before ");
    assert_int_equal(bundle_read_file(bundle, SLICE("build.json"), 7, &text, &why), OK);
    assert_true(slice_is(buf_slice(&text), "before {\"a\":1}"));
    assert_int_equal(bundle_read_file(bundle, SLICE("build.json"), 6, &text, &why),
                     ERR_TOO_LARGE);
    assert_string_equal(why.text, "\"build.json\" is too large (max 6 bytes)");
    assert_int_equal(text.len, 14);
    assert_int_equal(bundle_read_file(bundle, SLICE("no.json"), 6, &text, &why),
                     ERR_NOT_FOUND);
    assert_string_equal(why.text, "\"no.json\" is missing in the archive");
    bundle_close(bundle);
    buf_finish(&text);
    made_finish(&made);
}

static void hash_matches_the_file(void **state)
{
    (void)state;
    unsigned char hash[BUNDLE_HASH_LEN];
    char text[2 * BUNDLE_HASH_LEN + 1];
    struct failure why;
    struct bundle *bundle = tar_open(SLICE("abc"), &made_limits);
    assert_int_equal(bundle_hash(bundle, hash, &why), OK);
    text_to_hex(hash, sizeof(hash), text);
    assert_string_equal(text,
                        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    bundle_close(bundle);
}

static void canceled_check_ends(void **state)
{
    (void)state;
    struct made_archive made = { 0 };
    unsigned char hash[BUNDLE_HASH_LEN];
    struct failure why;
    tar_add_file(&made.tar, "a", "a");
    struct bundle *bundle = made_open(&made, &made_limits);
    bundle_cancel(bundle);
    assert_int_equal(bundle_check(bundle, NULL, &why), ERR_CANCELED);
    assert_int_equal(bundle_hash(bundle, hash, &why), ERR_CANCELED);
    bundle_close(bundle);
    made_finish(&made);
}

static void only_regular_files_are_opened(void **state)
{
    (void)state;
    struct bundle *bundle = NULL;
    struct failure why;
    assert_int_equal(bundle_open("/no/such/file", &made_limits, &bundle, &why),
                     ERR_NOT_FOUND);
    assert_string_equal(why.text, "cannot open the archive: No such file or directory");
    assert_int_equal(bundle_open("/tmp", &made_limits, &bundle, &why), ERR_INVALID);
    assert_string_equal(why.text, "the archive is not a file");
    assert_int_equal(bundle_open_fd(-1, &made_limits, &bundle, &why), ERR_INTERNAL);
    assert_null(bundle);
    bundle_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_files_and_folders_are_counted),
        cmocka_unit_test(long_and_utf8_names_are_read),
        cmocka_unit_test(links_and_devices_are_rejected),
        cmocka_unit_test(names_outside_of_the_folder_are_rejected),
        cmocka_unit_test(names_in_pax_headers_are_checked_too),
        cmocka_unit_test(name_with_a_nul_is_rejected),
        cmocka_unit_test(too_long_or_deep_names_are_rejected),
        cmocka_unit_test(name_may_occur_only_once),
        cmocka_unit_test(number_of_files_and_folders_is_limited),
        cmocka_unit_test(unpacked_bytes_are_limited),
        cmocka_unit_test(decompression_bomb_is_rejected_while_it_is_read),
        cmocka_unit_test(sparse_files_are_rejected),
        cmocka_unit_test(archive_that_is_not_tar_in_gzip_is_rejected),
        cmocka_unit_test(truncated_archive_is_rejected),
        cmocka_unit_test(one_file_is_read_up_to_a_limit),
        cmocka_unit_test(hash_matches_the_file),
        cmocka_unit_test(canceled_check_ends),
        cmocka_unit_test(only_regular_files_are_opened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
