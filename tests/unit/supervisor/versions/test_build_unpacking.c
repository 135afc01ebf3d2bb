/* Build steps that unpack the archive, each in a child: errors, deaths, false answers. */
#include "tests/support/world/unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "supervisor/versions/unpacker.h"
#include "tests/support/world/build_scene.h"
#include "tests/support/world/child_world.h"

/* Starts a build; its first child is the unpacker. */
static void scene_start_unpacking(struct build_scene *scene)
{
    build_scene_start(scene);
    for (int i = 0; !scene->begun && i < 3000; i++)
        child_world_turn(10);
    assert_int_equal(scene->begun, 1);
    assert_false(scene->done);
}

static void archive_beyond_limits_fails_build_with_a_reason(void **state)
{
    (void)state;
    struct build_scene scene;
    struct bundle_limits limits = bundle_limits_default;
    limits.unpacked_max = 100;
    build_scene_begin(&scene, BUILD_STAGE(""), build_scene_index);
    scene.options.limits = &limits;
    build_scene_fails(
        &scene, "the files together are too large (max 100 bytes, setting deploy-unpacked)",
        "");
}

static void canceled_build_kills_its_unpacker(void **state)
{
    (void)state;
    struct build_scene scene;
    build_scene_begin(&scene, BUILD_STAGE(""), build_scene_index);
    scene_start_unpacking(&scene);
    version_build_cancel(scene.build);
    build_scene_wait(&scene);
    assert_true(scene.canceled);
    assert_int_equal(scene.begun, 1);
    assert_int_equal(kill(scene.last, 0), -1);
    assert_int_equal(build_scene_versions(&scene), 0);
    build_scene_end(&scene);
}

static void killed_unpacker_fails_build_with_a_reason(void **state)
{
    (void)state;
    struct build_scene scene;
    build_scene_begin(&scene, BUILD_STAGE(""), build_scene_index);
    scene_start_unpacking(&scene);
    assert_int_equal(kill(scene.last, SIGKILL), 0);
    build_scene_wait(&scene);
    assert_false(scene.ok || scene.canceled);
    assert_string_equal(scene.error, "BuildError");
    assert_string_equal(scene.message,
                        "unpacking the archive failed: it was ended by signal 9 (Killed)");
    assert_int_equal(kill(scene.last, 0), -1);
    assert_int_equal(build_scene_versions(&scene), 0);
    build_scene_end(&scene);
}

/* Returns the process that entered the cgroup; 0: none, or not written yet. */
static long entered_group(const struct build_scene *scene)
{
    static const char name[] = "groups/build-deployment_a/cgroup.procs";
    struct buf text = { 0 };
    if (build_scene_has(scene, name))
        text = build_scene_read(scene, name);
    long pid = text.len ? strtol(text.ptr, NULL, 10) : 0;
    buf_finish(&text);
    return pid;
}

/* A plain folder stands in for the cgroup file system, and shows which process entered. */
static void unpacker_is_in_the_cgroup_of_the_build(void **state)
{
    (void)state;
    struct build_scene scene;
    build_scene_begin(&scene, BUILD_STAGE(""), build_scene_index);
    build_scene_folder(&scene, "groups", 0755);
    char *groups = build_scene_path(&scene, "groups");
    scene.options.cgroup = groups;
    scene_start_unpacking(&scene);
    for (int i = 0; entered_group(&scene) != scene.last && i < 3000; i++)
        child_world_turn(1);
    assert_int_equal(scene.begun, 1);
    assert_int_equal(entered_group(&scene), scene.last);
    version_build_cancel(scene.build);
    build_scene_wait(&scene);
    free(groups);
    build_scene_end(&scene);
}

/* Replaces the unpacker by a process under the archive's control that gives this answer. */
static void assert_fails_by_answer(const char *answer, const char *message)
{
    struct build_scene scene;
    build_scene_begin(&scene, BUILD_STAGE(""), build_scene_index);
    build_scene_write(&scene, "answer", answer, 0644);
    build_scene_fails(&scene, message, "");
}

static void false_answers_of_the_unpacker_are_rejected(void **state)
{
    (void)state;
    assert_fails_by_answer("done 0\n", "the archive has no build.json");
    assert_fails_by_answer("build.json 2\n[]done 0\n", "build.json is not a JSON object");
    assert_fails_by_answer("refused 10\nno archive", "no archive");
    assert_fails_by_answer("full 9\ncannot ..", "the disk is full: cannot ..");
    assert_fails_by_answer("", "unpacking the archive failed: its response is invalid");
    assert_fails_by_answer("root 0\ndone 0\n",
                           "unpacking the archive failed: its response is invalid");
}

/* base/mem.h aborts with these words when the unpacker exceeds its memory limit. */
static void unpacker_out_of_memory_is_reported(void **state)
{
    (void)state;
    struct build_scene scene;
    build_scene_begin(&scene, BUILD_STAGE(""), build_scene_index);
    build_scene_write(&scene, "exhausted", "", 0644);
    build_scene_fails(
        &scene,
        "unpacking the archive failed: it was ended by signal 6 (Aborted); unpacking needs "
        "more memory than archives within the limits do (max 88 MiB)",
        "runcast: out of memory");
}

/* Plays the unpacker with the scene's file "answer". Returns false if there is none. */
static bool plays_unpacker(int argc, char **argv)
{
    char text[256];
    if (!unpacker_is_asked_for(argc, argv))
        return false;
    if (access("../../exhausted", F_OK) == 0)
        mem_exhausted();
    int file = open("../../answer", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    ssize_t len = read(file, text, sizeof(text));
    return write(STDOUT_FILENO, text, (size_t)len) == len;
}

int main(int argc, char **argv)
{
    int status;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(archive_beyond_limits_fails_build_with_a_reason),
        cmocka_unit_test(canceled_build_kills_its_unpacker),
        cmocka_unit_test(killed_unpacker_fails_build_with_a_reason),
        cmocka_unit_test(unpacker_is_in_the_cgroup_of_the_build),
        cmocka_unit_test(false_answers_of_the_unpacker_are_rejected),
        cmocka_unit_test(unpacker_out_of_memory_is_reported),
    };
    if (plays_unpacker(argc, argv))
        return 0;
    if (child_world_role(argc, argv, &status))
        return status;
    return cmocka_run_group_tests_name("unpacking of a build", tests, child_world_set_up,
                                       child_world_tear_down);
}
