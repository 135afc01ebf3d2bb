/* Extracting bundles, also where other users have put links; and packing folders. */
#include "tests/support/world/unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/archive/bundle_pack.h"
#include "tests/support/world/tar_maker.h"

enum { STRANGER = 12345 };

static struct {
    char folder[64], outside[64];
    int fd; /* of folder */
    struct buf tar, packed;
} world;

static int set_up(void **state)
{
    (void)state;
    memset(&world, 0, sizeof(world));
    snprintf(world.folder, sizeof(world.folder), "/tmp/runcast-bundle-XXXXXX");
    snprintf(world.outside, sizeof(world.outside), "/tmp/runcast-outside-XXXXXX");
    if (!mkdtemp(world.folder) || !mkdtemp(world.outside))
        return -1;
    world.fd = open(world.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return world.fd < 0;
}

static int on_removed(const char *path, const struct stat *found, int flag,
                      struct FTW *walk)
{
    (void)found;
    (void)flag;
    (void)walk;
    return remove(path);
}

static int tear_down(void **state)
{
    (void)state;
    close(world.fd);
    buf_finish(&world.tar);
    buf_finish(&world.packed);
    return nftw(world.folder, on_removed, 8, FTW_DEPTH | FTW_PHYS) |
           nftw(world.outside, on_removed, 8, FTW_DEPTH | FTW_PHYS);
}

static const char *path_of(const char *name)
{
    static char path[1200];
    snprintf(path, sizeof(path), "%s/%s", world.folder, name);
    return path;
}

static enum err extract(const char *const *names, uid_t uid, struct failure *why)
{
    struct bundle_target target = { world.fd, names, uid, uid };
    struct buf tar = { 0 };
    buf_add(&tar, buf_slice(&world.tar));
    tar_end(&tar);
    buf_clear(&world.packed);
    tar_gzip(buf_slice(&tar), &world.packed);
    buf_finish(&tar);
    struct bundle *bundle = tar_open(buf_slice(&world.packed), &bundle_limits_default);
    enum err err = bundle_extract(bundle, &target, why);
    bundle_close(bundle);
    return err;
}

static void extract_all(void)
{
    struct failure why = { 0 };
    if (extract(NULL, 0, &why))
        fail_msg("%s", why.text);
}

static void assert_content(const char *path, const char *expected)
{
    char text[256] = "";
    FILE *file = fopen(path, "re");
    if (!file)
        fail_msg("there is no %s", path);
    size_t len = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[len] = '\0';
    assert_string_equal(text, expected);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static mode_t mode_of(const char *name)
{
    struct stat found;
    assert_int_equal(lstat(path_of(name), &found), 0);
    return found.st_mode;
}

static void add_sample(void)
{
    tar_add_file(&world.tar, "package.json", "{}");
    tar_add(&world.tar, &(struct tar_entry){ .name = "bin/run",
                                             .content = SLICE("#!/bin/sh\n"),
                                             .mode = 04711 });
    tar_add(&world.tar, &(struct tar_entry){ .name = "empty/", .type = '5', .mode = 0 });
    tar_add(&world.tar, &(struct tar_entry){
                            .name = "a/b/secret", .content = SLICE("s"), .mode = 0666 });
    tar_add_file(&world.tar, "build.json", "[]");
}

static void files_and_folders_have_two_modes(void **state)
{
    (void)state;
    add_sample();
    mode_t before = umask(077);
    extract_all();
    umask(before);
    assert_content(path_of("package.json"), "{}");
    assert_content(path_of("bin/run"), "#!/bin/sh\n");
    assert_int_equal(mode_of("package.json"), S_IFREG | 0644);
    assert_int_equal(mode_of("bin/run"), S_IFREG | 0755);
    assert_int_equal(mode_of("a/b/secret"), S_IFREG | 0644);
    assert_int_equal(mode_of("empty"), S_IFDIR | 0755);
    assert_int_equal(mode_of("a/b"), S_IFDIR | 0755);
}

static void selected_files_are_extracted_first_and_all_later(void **state)
{
    (void)state;
    static const char *const first[] = { "package.json", "build.json", NULL };
    struct failure why = { 0 };
    add_sample();
    assert_int_equal(extract(first, 0, &why), OK);
    assert_content(path_of("package.json"), "{}");
    assert_content(path_of("build.json"), "[]");
    assert_int_equal(access(path_of("bin"), F_OK), -1);
    assert_int_equal(access(path_of("empty"), F_OK), -1);
    write_file(path_of("package.json"), "{\"changed\":true}");
    write_file(path_of("installed"), "by npm");
    extract_all();
    assert_content(path_of("package.json"), "{}");
    assert_content(path_of("installed"), "by npm");
    assert_content(path_of("bin/run"), "#!/bin/sh\n");
}

static void extracted_files_have_the_given_owner(void **state)
{
    (void)state;
    struct failure why = { 0 };
    struct stat found;
    if (geteuid() != 0)
        return; /* only root can change an owner */
    add_sample();
    assert_int_equal(extract(NULL, STRANGER, &why), OK);
    static const char *const names[] = { "package.json", "bin",  "bin/run", "a",
                                         "a/b",          "empty" };
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        assert_int_equal(lstat(path_of(names[i]), &found), 0);
        assert_int_equal(found.st_uid, STRANGER);
        assert_int_equal(found.st_gid, STRANGER);
    }
    assert_int_equal(extract(NULL, STRANGER, &why), OK);
}

static void existing_links_are_replaced(void **state)
{
    (void)state;
    char target[128];
    struct stat found;
    snprintf(target, sizeof(target), "%s/package.json", world.outside);
    write_file(target, "theirs");
    assert_int_equal(symlink(target, path_of("package.json")), 0);
    assert_int_equal(symlink(world.outside, path_of("bin")), 0);
    assert_int_equal(symlink(world.outside, path_of("empty")), 0);
    assert_int_equal(mkdir(path_of("a"), 0755), 0);
    assert_int_equal(symlink("/nowhere/at/all", path_of("a/b")), 0);
    add_sample();
    extract_all();
    assert_content(target, "theirs");
    snprintf(target, sizeof(target), "%s/run", world.outside);
    assert_int_equal(lstat(target, &found), -1);
    assert_content(path_of("package.json"), "{}");
    assert_int_equal(mode_of("package.json"), S_IFREG | 0644);
    assert_int_equal(mode_of("bin"), S_IFDIR | 0755);
    assert_int_equal(mode_of("empty"), S_IFDIR | 0755);
    assert_int_equal(mode_of("a/b"), S_IFDIR | 0755);
}

/* The file outside keeps its content, mode and owner: the name gets a new file. */
static void existing_hard_link_keeps_its_target(void **state)
{
    (void)state;
    char target[128];
    struct stat found;
    snprintf(target, sizeof(target), "%s/file", world.outside);
    write_file(target, "theirs");
    assert_int_equal(chmod(target, 0600), 0);
    if (link(target, path_of("package.json")))
        fail_msg("%s", strerror(errno));
    add_sample();
    extract_all();
    assert_content(target, "theirs");
    assert_int_equal(stat(target, &found), 0);
    assert_int_equal(found.st_mode, S_IFREG | 0600);
    assert_int_equal(found.st_nlink, 1);
}

static void existing_folder_is_not_replaced_by_a_file(void **state)
{
    (void)state;
    struct failure why = { 0 };
    assert_int_equal(mkdir(path_of("package.json"), 0755), 0);
    add_sample();
    assert_int_equal(extract(NULL, 0, &why), ERR_INTERNAL);
    assert_string_equal(why.text, "cannot write \"package.json\": Is a directory");
}

static void existing_file_is_replaced_by_a_folder(void **state)
{
    (void)state;
    write_file(path_of("a"), "no folder");
    add_sample();
    extract_all();
    assert_content(path_of("a/b/secret"), "s");
}

static void rejected_archive_is_not_written(void **state)
{
    (void)state;
    struct failure why = { 0 };
    tar_add_file(&world.tar, "first", "1");
    tar_add_file(&world.tar, "../second", "2");
    assert_int_equal(extract(NULL, 0, &why), ERR_INVALID);
    assert_content(path_of("first"), "1");
    assert_int_equal(access(path_of("../second"), F_OK), -1);
}

/* --- packing --------------------------------------------------------------------------- */

static struct buf pack(const char *folder, enum err expected, struct failure *why)
{
    struct buf packed = { 0 };
    int file = memfd_create("packed", MFD_CLOEXEC);
    enum err err = bundle_pack(folder, file, &bundle_limits_default, why);
    if (err != expected)
        fail_msg("%d %s", err, why->text);
    lseek(file, 0, SEEK_SET);
    for (ssize_t got = 1; got > 0; packed.len += got > 0 ? (size_t)got : 0)
        got = read(file, buf_reserve(&packed, 4096), 4096);
    close(file);
    return packed;
}

static void packed_folder_is_extracted_again(void **state)
{
    (void)state;
    struct failure why = { 0 };
    char longer[256] = "";
    add_sample();
    memset(longer, 'l', 200);
    struct buf record = { 0 };
    buf_print(&record, "path=\xc3\xa4/%s", longer);
    tar_add_pax(&world.tar, buf_slice(&record));
    tar_add_file(&world.tar, "x", "long");
    extract_all();
    struct buf packed = pack(world.folder, OK, &why);
    struct bundle *bundle = tar_open(buf_slice(&packed), &bundle_limits_default);
    struct bundle_content content;
    if (bundle_check(bundle, &content, &why))
        fail_msg("%s", why.text);
    assert_int_equal(content.files, 5);
    assert_int_equal(content.folders, 5);
    struct buf text = { 0 };
    buf_clear(&record);
    buf_print(&record, "\xc3\xa4/%s", longer);
    assert_int_equal(bundle_read_file(bundle, buf_slice(&record), 100, &text, &why), OK);
    assert_true(slice_is(buf_slice(&text), "long"));
    buf_finish(&text);
    buf_finish(&record);

    int outside = open(world.outside, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct bundle_target target = { .folder = outside };
    assert_int_equal(bundle_extract(bundle, &target, &why), OK);
    close(outside);
    bundle_close(bundle);
    struct buf again = pack(world.outside, OK, &why);
    assert_true(slice_equal(buf_slice(&packed), buf_slice(&again)));
    buf_finish(&packed);
    buf_finish(&again);
}

static void a_link_is_not_packed(void **state)
{
    (void)state;
    struct failure why = { 0 };
    assert_int_equal(mkdir(path_of("a"), 0755), 0);
    assert_int_equal(symlink("/etc/passwd", path_of("a/link")), 0);
    struct buf packed = pack(world.folder, ERR_INVALID, &why);
    assert_string_equal(why.text, "\"a/link\" is a link");
    buf_finish(&packed);
    unlink(path_of("a/link"));
    assert_int_equal(mkfifo(path_of("a/pipe"), 0600), 0);
    packed = pack(world.folder, ERR_INVALID, &why);
    assert_string_equal(why.text, "\"a/pipe\" is neither a file nor a folder");
    buf_finish(&packed);
    packed = pack("/no/such/folder", ERR_NOT_FOUND, &why);
    buf_finish(&packed);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(files_and_folders_have_two_modes),
        TEST(selected_files_are_extracted_first_and_all_later),
        TEST(extracted_files_have_the_given_owner),
        TEST(existing_links_are_replaced),
        TEST(existing_hard_link_keeps_its_target),
        TEST(existing_folder_is_not_replaced_by_a_file),
        TEST(existing_file_is_replaced_by_a_folder),
        TEST(rejected_archive_is_not_written),
        TEST(packed_folder_is_extracted_again),
        TEST(a_link_is_not_packed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
