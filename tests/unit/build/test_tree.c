/* The end of a folder that strangers have written in: sealed, or gone. */
#include "tests/support/world/unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "build/tree.h"

/* A folder "version" with a file, and beside it a file of the machine's. */
struct scene {
    char top[64];
    int above, folder;
};

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
    tree_remove(scene->above, "version");
    assert_int_equal(unlinkat(scene->above, "secret", 0), 0);
    close(scene->above);
    assert_int_equal(rmdir(scene->top), 0); /* nothing of the version is left */
}

static mode_t mode_of(int folder, const char *name)
{
    struct stat found;
    assert_int_equal(fstatat(folder, name, &found, AT_SYMLINK_NOFOLLOW), 0);
    return found.st_mode & 07777;
}

static void what_is_sealed_nobody_else_writes(void **state)
{
    (void)state;
    struct scene scene;
    struct failure why = { 0 };
    uint64_t bytes;
    scene_begin(&scene);
    assert_int_equal(symlinkat("../secret", scene.folder, "link"), 0);
    assert_int_equal(tree_seal(scene.folder, geteuid(), &bytes, &why), OK);
    assert_int_equal(mode_of(scene.folder, "task.mjs"), 0644);
    assert_int_equal(mode_of(scene.above, "version"), 0755);
    assert_int_equal(mode_of(scene.above, "secret"), 0600);
    assert_int_equal(bytes, 4);
    scene_end(&scene);
}

/* Package managers link to what they have kept, which is the builder's as well. */
static void only_files_of_the_builder_have_other_names(void **state)
{
    (void)state;
    struct scene scene;
    struct failure why = { 0 };
    uint64_t bytes;
    scene_begin(&scene);
    assert_int_equal(linkat(scene.above, "secret", scene.folder, "mine", 0), 0);
    assert_int_equal(tree_seal(scene.folder, geteuid() + 1, &bytes, &why), ERR_INVALID);
    assert_string_equal(why.text, "'mine' is a link to a file outside");
    assert_int_equal(mode_of(scene.above, "secret"), 0600);
    assert_int_equal(tree_seal(scene.folder, geteuid(), &bytes, &why), OK);
    scene_end(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_sealed_nobody_else_writes),
        cmocka_unit_test(only_files_of_the_builder_have_other_names),
    };
    return cmocka_run_group_tests_name("tree", tests, NULL, NULL);
}
