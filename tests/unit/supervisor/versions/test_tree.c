/* A folder in which unknown programs have written is sealed. */
#include "tests/support/world/unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/files/folder.h"
#include "supervisor/versions/tree.h"

/* A folder "version" with a file, next to a file of the machine. */
struct scene {
    char top[64];
    int above, folder;
};

static const struct tree_limits plenty = { 1000, 1000 };

static void write_file(int folder, const char *name, mode_t mode)
{
    int file = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    assert_true(file >= 0);
    assert_int_equal(write(file, "text", 4), 4);
    assert_int_equal(fchmod(file, mode), 0);
    close(file);
}

static void scene_begin(struct scene *scene)
{
    snprintf(scene->top, sizeof(scene->top), "/tmp/runcast-test-XXXXXX");
    assert_non_null(mkdtemp(scene->top));
    scene->above = open(scene->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(mkdirat(scene->above, "version", 0777), 0);
    scene->folder = openat(scene->above, "version", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    write_file(scene->folder, "task.mjs", 0666);
    write_file(scene->above, "secret", 0600);
}

static void scene_end(struct scene *scene)
{
    close(scene->folder);
    assert_true(folder_remove(scene->above, "version", NULL));
    assert_int_equal(unlinkat(scene->above, "secret", 0), 0);
    close(scene->above);
    assert_int_equal(rmdir(scene->top), 0); /* no file of the version is left */
}

static mode_t mode_of(int folder, const char *name)
{
    struct stat found;
    assert_int_equal(fstatat(folder, name, &found, AT_SYMLINK_NOFOLLOW), 0);
    return found.st_mode & 07777;
}

static void sealed_folder_is_not_writable_by_others(void **state)
{
    (void)state;
    struct scene scene;
    struct failure why = { 0 };
    uint64_t bytes;
    scene_begin(&scene);
    assert_int_equal(symlinkat("../secret", scene.folder, "link"), 0);
    assert_int_equal(tree_seal(scene.folder, geteuid(), &plenty, NULL, &bytes, &why), OK);
    assert_int_equal(mode_of(scene.folder, "task.mjs"), 0644);
    assert_int_equal(mode_of(scene.above, "version"), 0755);
    assert_int_equal(mode_of(scene.above, "secret"), 0600);
    assert_int_equal(bytes, 4);
    scene_end(&scene);
}

/* Package managers make links to files in their cache, which belongs to the builder too. */
static void only_files_of_the_builder_may_be_hard_links(void **state)
{
    (void)state;
    struct scene scene;
    struct failure why = { 0 };
    uint64_t bytes;
    scene_begin(&scene);
    assert_int_equal(linkat(scene.above, "secret", scene.folder, "mine", 0), 0);
    assert_int_equal(tree_seal(scene.folder, geteuid() + 1, &plenty, NULL, &bytes, &why),
                     ERR_INVALID);
    assert_string_equal(why.text, "\"mine\" is a link to a file outside of the version");
    assert_int_equal(mode_of(scene.above, "secret"), 0600);
    assert_int_equal(tree_seal(scene.folder, geteuid(), &plenty, NULL, &bytes, &why), OK);
    scene_end(&scene);
}

static void too_large_version_is_not_sealed(void **state)
{
    (void)state;
    struct scene scene;
    struct failure why = { 0 };
    uint64_t bytes;
    struct tree_limits limits = { .entries_max = 3, .bytes_max = 8 };
    scene_begin(&scene);
    assert_int_equal(mkdirat(scene.folder, "folder", 0700), 0);
    assert_int_equal(symlinkat("task.mjs", scene.folder, "link"), 0);
    assert_int_equal(tree_seal(scene.folder, geteuid(), &limits, NULL, &bytes, &why), OK);
    limits.entries_max = 2;
    assert_int_equal(tree_seal(scene.folder, geteuid(), &limits, NULL, &bytes, &why),
                     ERR_TOO_LARGE);
    assert_string_equal(
        why.text, "too many files and folders in the version after its build (max 2); make "
                  "it smaller, or raise deploy-files (the limit is ten times that)");
    limits = (struct tree_limits){ .entries_max = 100, .bytes_max = 7 };
    write_file(scene.folder, "other.mjs", 0600);
    assert_int_equal(tree_seal(scene.folder, geteuid(), &limits, NULL, &bytes, &why),
                     ERR_TOO_LARGE);
    assert_string_equal(why.text,
                        "the version is too large after its build (max 7 bytes); make it "
                        "smaller, or raise deploy-unpacked (the limit is ten times that)");
    scene_end(&scene);
}

static void sealing_ends_at_the_next_entry_when_its_job_is_stopped(void **state)
{
    (void)state;
    struct scene scene;
    struct failure why = { 0 };
    uint64_t bytes;
    struct work work = { .kind = WORK_BUILD };
    scene_begin(&scene);
    work_stop(&work);
    assert_int_equal(tree_seal(scene.folder, geteuid(), &plenty, &work, &bytes, &why),
                     ERR_CANCELED);
    assert_int_equal(mode_of(scene.folder, "task.mjs"), 0666);
    scene_end(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(too_large_version_is_not_sealed),
        cmocka_unit_test(sealing_ends_at_the_next_entry_when_its_job_is_stopped),
        cmocka_unit_test(sealed_folder_is_not_writable_by_others),
        cmocka_unit_test(only_files_of_the_builder_may_be_hard_links),
    };
    return cmocka_run_group_tests_name("tree", tests, NULL, NULL);
}
