/* A folder is removed with all its contents, and nothing outside of it is touched. */
#include "tests/support/world/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/files/folder.h"

enum { NESTED = 250 };

/* A folder "filled" with a file in it, next to a file "secret". */
struct scene {
    char top[64];
    int above;
};

static void write_file(int folder, const char *name)
{
    int file = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    assert_int_equal(write(file, "text", 4), 4);
    close(file);
}

static bool is_there(int folder, const char *name)
{
    struct stat found;
    return fstatat(folder, name, &found, AT_SYMLINK_NOFOLLOW) == 0;
}

static void scene_begin(struct scene *scene)
{
    snprintf(scene->top, sizeof(scene->top), "/tmp/runcast-test-XXXXXX");
    assert_non_null(mkdtemp(scene->top));
    scene->above = open(scene->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(mkdirat(scene->above, "filled", 0700), 0);
    write_file(scene->above, "filled/file");
    write_file(scene->above, "secret");
}

/* Checks that only "secret" is left, and removes it. */
static void scene_end(struct scene *scene)
{
    assert_int_equal(unlinkat(scene->above, "secret", 0), 0);
    assert_true(folder_is_empty(scene->above));
    close(scene->above);
    assert_int_equal(rmdir(scene->top), 0);
}

static void everything_in_a_folder_is_removed(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene);
    assert_int_equal(mkdirat(scene.above, "filled/inner", 0700), 0);
    assert_int_equal(mkdirat(scene.above, "filled/inner/empty", 0700), 0);
    write_file(scene.above, "filled/inner/file");
    assert_int_equal(mkfifoat(scene.above, "filled/inner/pipe", 0600), 0);
    assert_int_equal(fchmodat(scene.above, "filled/inner", 0500, 0), 0);
    assert_int_equal(fchmodat(scene.above, "filled", 0500, 0), 0);
    assert_true(folder_remove(scene.above, "filled", NULL));
    scene_end(&scene);
}

static void links_are_removed_and_their_targets_kept(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene);
    assert_int_equal(mkdirat(scene.above, "outside", 0700), 0);
    write_file(scene.above, "outside/file");
    assert_int_equal(symlinkat("../secret", scene.above, "filled/to_file"), 0);
    assert_int_equal(symlinkat("../outside", scene.above, "filled/to_folder"), 0);
    assert_int_equal(symlinkat("outside", scene.above, "link"), 0);
    assert_true(folder_remove(scene.above, "filled", NULL));
    assert_true(folder_remove(scene.above, "link", NULL));
    assert_false(is_there(scene.above, "link"));
    assert_true(is_there(scene.above, "outside/file"));
    assert_true(is_there(scene.above, "secret"));
    assert_true(folder_remove(scene.above, "outside", NULL));
    scene_end(&scene);
}

static void file_is_removed_by_its_name(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene);
    assert_true(folder_remove(scene.above, "filled/file", NULL));
    assert_false(is_there(scene.above, "filled/file"));
    assert_true(folder_remove(scene.above, "filled", NULL));
    assert_true(folder_remove(scene.above, "filled", NULL)); /* already removed */
    scene_end(&scene);
}

/* A walk has one descriptor open per level, so it does not walk all levels at once. */
static void deeply_nested_folders_are_removed(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene);
    int folder = folder_open(scene.above, "filled");
    for (int i = 0; i < NESTED; i++) {
        assert_int_equal(mkdirat(folder, "inner", 0700), 0);
        write_file(folder, "another file");
        int inner = folder_open(folder, "inner");
        close(folder);
        folder = inner;
    }
    close(folder);
    assert_true(folder_remove(scene.above, "filled", NULL));
    scene_end(&scene);
}

/* A removal may run for a second; this one began long ago. */
static void removal_ends_at_its_time_limit_and_is_continued(void **state)
{
    (void)state;
    struct scene scene;
    struct work late = { .kind = WORK_REMOVAL };
    scene_begin(&scene);
    assert_false(folder_remove(scene.above, "filled", &late));
    assert_true(is_there(scene.above, "filled/file"));
    assert_true(folder_remove(scene.above, "filled", NULL));
    assert_true(folder_remove(scene.above, "filled", &late)); /* already removed */
    scene_end(&scene);
}

static void link_to_a_folder_is_not_opened(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene);
    assert_int_equal(symlinkat("filled", scene.above, "link"), 0);
    assert_int_equal(folder_open(scene.above, "link"), -1);
    assert_int_equal(errno, ENOTDIR);
    int folder = folder_open(scene.above, "filled");
    assert_false(folder_is_empty(folder));
    assert_int_equal(unlinkat(folder, "file", 0), 0);
    assert_true(folder_is_empty(folder));
    assert_true(folder_sync(folder));
    close(folder);
    assert_true(folder_remove(scene.above, "link", NULL));
    assert_true(folder_remove(scene.above, "filled", NULL));
    scene_end(&scene);
}

static void assert_split(const char *path, const char *above, const char *name)
{
    char *found_above, *found_name;
    folder_split(path, &found_above, &found_name);
    assert_string_equal(found_above, above);
    assert_string_equal(found_name, name);
    free(found_above);
    free(found_name);
}

static void path_is_split_before_its_last_name(void **state)
{
    (void)state;
    assert_split("/var/lib/runcast", "/var/lib/", "runcast");
    assert_split("/var/lib/runcast//", "/var/lib/", "runcast");
    assert_split("runcast", ".", "runcast");
    assert_split("/runcast", "/", "runcast");
    char *path = folder_path("/var/lib", "runcast");
    assert_string_equal(path, "/var/lib/runcast");
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_in_a_folder_is_removed),
        cmocka_unit_test(links_are_removed_and_their_targets_kept),
        cmocka_unit_test(file_is_removed_by_its_name),
        cmocka_unit_test(deeply_nested_folders_are_removed),
        cmocka_unit_test(removal_ends_at_its_time_limit_and_is_continued),
        cmocka_unit_test(link_to_a_folder_is_not_opened),
        cmocka_unit_test(path_is_split_before_its_last_name),
    };
    return cmocka_run_group_tests_name("folder", tests, NULL, NULL);
}
