/* A whole build with real children, whose node and npm are scripts. It tests the folder at
 * the end, that a failed build leaves nothing, and that a canceled one stops. */
#include "tests/support/world/unit.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "supervisor/versions/version_folder.h"
#include "tests/support/world/build_scene.h"
#include "tests/support/world/child_world.h"

static const char version_at[] = "versions/deployment_a";
#define IN_VERSION(name) "versions/deployment_a/" name

static void assert_sealed(const struct build_scene *scene, const char *name, mode_t mode)
{
    struct stat found;
    char *path = build_scene_path(scene, name);
    assert_int_equal(lstat(path, &found), 0);
    assert_int_equal(found.st_uid, geteuid());
    assert_int_equal(found.st_mode & 07777, mode);
    free(path);
}

static void assert_says(const struct build_scene *scene, const char *name, const char *part)
{
    struct buf text = build_scene_read(scene, name);
    char *whole =
        *part == '/' ? build_scene_path(scene, part + 1) : mem_text(slice_of(part));
    if (!strstr(text.ptr, whole))
        fail_msg("no '%s' in %s", whole, text.ptr);
    free(whole);
    buf_finish(&text);
}

static void a_version_is_built(void **state)
{
    (void)state;
    struct build_scene scene;
    build_scene_begin(
        &scene, BUILD_STAGE("RUN echo $TOKEN > made.txt\nRUN rm c.mjs && \\\n  echo two\n"),
        build_scene_index);
    build_scene_run(&scene);
    if (!scene.ok)
        fail_msg("%s %s", scene.message, scene.log.ptr);
    assert_string_equal(scene.index, "{\"configPath\":\"/app/c.mjs\",\"tasks\":[]}");
    assert_says(&scene, IN_VERSION("made.txt"), "token-value");
    assert_says(&scene, IN_VERSION("c.mjs"), "config"); /* unpacked again */
    assert_says(&scene, IN_VERSION("node_modules/entry/index.mjs"), "index");
    assert_says(&scene, IN_VERSION("build.json"), "/versions/deployment_a/c.mjs");
    assert_says(&scene, IN_VERSION("index.json"), "/versions/deployment_a/c.mjs");
    assert_says(&scene, IN_VERSION("runcast.json"), scene.job.archive_hash);
    assert_says(&scene, IN_VERSION("runcast.json"), "\"architecture\":\"x64\"");
    assert_sealed(&scene, version_at, geteuid() ? 0755 : 0750);
    assert_sealed(&scene, IN_VERSION("node_modules/ms"), 0755);
    assert_sealed(&scene, IN_VERSION("node_modules/ms/index.js"), 0755);
    assert_sealed(&scene, IN_VERSION("c.mjs"), 0644);
    assert_sealed(&scene, IN_VERSION("index.json"), 0644);
    assert_sealed(&scene, IN_VERSION("outside"), 0777);
    assert_true(build_scene_has(&scene, IN_VERSION("node_modules/.bin/ms")));
    assert_false(build_scene_has(&scene, IN_VERSION("node_modules/pipe")));
    assert_int_equal(build_scene_versions(&scene), 1);
    assert_non_null(strstr(scene.log.ptr, "npm i --no-audit --no-fund --no-save "
                                          "--no-package-lock token-value none\n"));
    assert_non_null(strstr(scene.log.ptr, "$ rm c.mjs &&   echo two\ntwo\n"));
    assert_non_null(strstr(scene.log.ptr, "index build-key deployment_a\n"));
    if (geteuid() == 0)
        assert_non_null(strstr(scene.log.ptr, "12345\n"));

    /* A second build replaces the first one. */
    build_scene_forget(&scene);
    build_scene_run(&scene);
    assert_true(scene.ok);
    assert_int_equal(build_scene_versions(&scene), 1);
    build_scene_end(&scene);
}

static void without_dependencies_and_commands_only_the_index_is_executed(void **state)
{
    (void)state;
    struct build_scene scene;
    build_scene_begin(&scene, BUILD_STAGE(""), build_scene_index);
    build_scene_write(&scene, "bundle/package.json", "{\"dependencies\":{}}", 0644);
    build_scene_folder(&scene, "bundle/node_modules/ms", 0755);
    build_scene_write(&scene, "bundle/node_modules/ms/index.js", "", 0644);
    build_scene_run(&scene);
    assert_true(scene.ok);
    assert_null(strstr(scene.log.ptr, "npm"));
    build_scene_end(&scene);
}

static void install_scripts_are_skipped_if_the_operator_disables_them(void **state)
{
    (void)state;
    struct build_scene scene;
    build_scene_begin(&scene, BUILD_STAGE(""), build_scene_index);
    scene.options.no_scripts = true;
    build_scene_run(&scene);
    assert_true(scene.ok);
    assert_non_null(strstr(scene.log.ptr, "--no-package-lock --ignore-scripts "));
    build_scene_end(&scene);
}

/* This machine executes a version whose index another machine has made. */
static void index_of_another_machine_is_reused(void **state)
{
    (void)state;
    struct build_scene scene;
    build_scene_begin(&scene, BUILD_STAGE(""), "exit 7\n");
    scene.task.index = SLICE("{\"tasks\":[\"/app/t.mjs\"]}");
    build_scene_run(&scene);
    assert_true(scene.ok);
    assert_says(&scene, IN_VERSION("index.json"), "/versions/deployment_a/t.mjs");
    build_scene_end(&scene);
}

static void failed_build_reports_why_and_leaves_nothing(void **state)
{
    (void)state;
    struct build_scene scene;
    build_scene_begin(&scene, BUILD_STAGE(""), "echo task.ts: broken >&2; exit 1\n");
    build_scene_fails(&scene, "indexing failed: it ended with exit code 1",
                      "task.ts: broken");
    build_scene_begin(&scene,
                      BUILD_STAGE("RUN true\nRUN echo out; echo wrong >&2; exit 3\n"),
                      build_scene_index);
    build_scene_fails(
        &scene,
        "the command \"echo out; echo wrong >&2; exit 3\" failed: it ended with exit "
        "code 3",
        "wrong");
    build_scene_begin(&scene, BUILD_STAGE(""), build_scene_index);
    build_scene_write(&scene, "bin/npm", "#!/bin/sh\necho ENOSPC no space >&2\nexit 228\n",
                      0755);
    build_scene_fails(
        &scene, "the disk is full: installing packages failed: it ended with exit code 228",
        "ENOSPC");
    build_scene_begin(&scene, BUILD_STAGE(""), build_scene_index);
    build_scene_write(&scene, "bin/npm",
                      "#!/bin/sh\necho npm error code E404 >&2\nexit 1\n", 0755);
    build_scene_fails(
        &scene,
        "installing packages failed: it ended with exit code 1; a package was not found: "
        "the project's .npmrc is not used; for a private registry, set "
        "NPM_CONFIG_USERCONFIG to a separate file and list that variable in --builder-env",
        "E404");
    build_scene_begin(&scene, BUILD_STAGE(""), "true\n");
    build_scene_fails(&scene, "indexing the bundle produced no index.json", "");
    build_scene_begin(&scene, BUILD_STAGE(""), "ln -s /etc/passwd index.json\n");
    build_scene_fails(&scene, "indexing the bundle produced no index.json", "");
    build_scene_begin(&scene, BUILD_STAGE(""), "echo '[]' > index.json\n");
    build_scene_fails(&scene,
                      "indexing the bundle produced an index.json that is not an object or "
                      "is too large (max 8388608 bytes)",
                      "");
    build_scene_begin(&scene, "FROM x\n", build_scene_index);
    build_scene_fails(
        &scene, "unknown CLI version: cannot find the build commands in its Containerfile",
        "");
    build_scene_begin(&scene, BUILD_STAGE(""), build_scene_index);
    build_scene_write(&scene, "bundle/build.json", "{}", 0644);
    build_scene_fails(
        &scene, "build.json: indexControllerEntryPoint must be a path below /app", "");
}

static void version_that_grew_too_large_is_rejected(void **state)
{
    (void)state;
    struct build_scene scene;
    struct bundle_limits limits = bundle_limits_default;
    limits.files_max = 12;
    build_scene_begin(
        &scene, BUILD_STAGE(""),
        "for i in $(seq 120); do : > file-$i; done\necho '{}' > index.json\n");
    scene.options.limits = &limits;
    build_scene_fails(
        &scene,
        "too many files and folders in the version after its build (max 120); make it "
        "smaller, or raise deploy-files (the limit is ten times that)",
        "");
}

static void archive_with_another_hash_is_rejected(void **state)
{
    (void)state;
    struct build_scene scene;
    build_scene_begin(&scene, BUILD_STAGE(""), build_scene_index);
    build_scene_pack(&scene);
    build_scene_write(&scene, "archive.tar.gz", "something else", 0600);
    scene.build =
        version_build_begin(&scene.options, &scene.task, build_scene_done, &scene);
    build_scene_wait(&scene);
    assert_false(scene.ok);
    assert_string_equal(scene.message,
                        "the archive differs from the upload: its hash is wrong");
    assert_int_equal(build_scene_versions(&scene), 0);
    build_scene_end(&scene);
}

static void wait_for_log(struct build_scene *scene, const char *text)
{
    for (int i = 0; i < 3000; i++) {
        build_scene_log(scene);
        if (scene->log.len && memmem(scene->log.ptr, scene->log.len, text, strlen(text)))
            return;
        child_world_turn(10);
    }
    fail_msg("never said: %s", text);
}

static void a_canceled_build_leaves_neither_children_nor_folder(void **state)
{
    (void)state;
    struct build_scene scene;
    build_scene_begin(&scene, BUILD_STAGE(""), "sleep 98761 & echo asleep; wait\n");
    build_scene_start(&scene);
    wait_for_log(&scene, "asleep");
    assert_int_equal(version_build_step(scene.build), VERSION_BUILD_BUILDING);
    version_build_cancel(scene.build);
    build_scene_wait(&scene);
    assert_false(scene.ok);
    assert_true(scene.canceled);
    assert_true(child_none_is_left("98761"));
    assert_int_equal(build_scene_versions(&scene), 0);
    build_scene_end(&scene);

    /* Cancels at once, while the archive is read. */
    build_scene_begin(&scene, BUILD_STAGE(""), build_scene_index);
    build_scene_start(&scene);
    version_build_cancel(scene.build);
    build_scene_wait(&scene);
    assert_true(scene.canceled);
    assert_int_equal(build_scene_versions(&scene), 0);
    build_scene_end(&scene);
}

static void a_build_ends_at_its_deadline(void **state)
{
    (void)state;
    struct build_scene scene;
    build_scene_begin(&scene, BUILD_STAGE("RUN sleep 98762\n"), build_scene_index);
    scene.job.deadline_ms = 700;
    build_scene_run(&scene);
    assert_false(scene.ok);
    assert_false(scene.canceled);
    assert_string_equal(scene.error, "TimeoutError");
    assert_true(child_none_is_left("98762"));
    assert_int_equal(build_scene_versions(&scene), 0);
    build_scene_end(&scene);
}

static void files_of_a_killed_build_are_removed_at_start(void **state)
{
    (void)state;
    struct build_scene scene;
    build_scene_begin(&scene, BUILD_STAGE(""), build_scene_index);
    build_scene_folder(&scene, "versions/deployment_b.new", 0555);
    build_scene_folder(&scene, "versions/deployment_c", 0755);
    version_folder_set_unfinished_aside(scene.options.versions);
    assert_true(version_folder_remove_old(scene.options.versions, NULL));
    assert_int_equal(build_scene_versions(&scene), 1);
    assert_true(build_scene_has(&scene, "versions/deployment_c"));
    version_folder_set_aside(scene.options.versions, "deployment_c");
    version_folder_set_aside(scene.options.versions, "deployment_d");
    assert_true(version_folder_remove_old(scene.options.versions, NULL));
    assert_int_equal(build_scene_versions(&scene), 0);
    build_scene_end(&scene);
}

int main(int argc, char **argv)
{
    int status;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_version_is_built),
        cmocka_unit_test(without_dependencies_and_commands_only_the_index_is_executed),
        cmocka_unit_test(install_scripts_are_skipped_if_the_operator_disables_them),
        cmocka_unit_test(index_of_another_machine_is_reused),
        cmocka_unit_test(failed_build_reports_why_and_leaves_nothing),
        cmocka_unit_test(version_that_grew_too_large_is_rejected),
        cmocka_unit_test(archive_with_another_hash_is_rejected),
        cmocka_unit_test(a_canceled_build_leaves_neither_children_nor_folder),
        cmocka_unit_test(a_build_ends_at_its_deadline),
        cmocka_unit_test(files_of_a_killed_build_are_removed_at_start),
    };
    if (child_world_role(argc, argv, &status))
        return status;
    return cmocka_run_group_tests_name("version build", tests, child_world_set_up,
                                       child_world_tear_down);
}
