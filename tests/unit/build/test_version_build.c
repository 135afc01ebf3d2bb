/* A whole build with real children, whose node and npm are scripts: what is in the folder at the
 * end, what is left behind by none that fails, and that nothing goes on when it was canceled. */
#include "tests/support/world/unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/bundle_pack.h"
#include "base/mem.h"
#include "build/version_build.h"
#include "build/version_folder.h"
#include "tests/support/world/child_world.h"
#include "json/scan.h"

enum { STRANGER = 12345 };

#define ENTRY "\":\"/app/node_modules/entry/"
static const char manifest_text[] =
    "{\"cliPackageVersion\":\"4.8.3\",\"contentHash\":\"cafe\",\"runtime\":\"node-22\","
    "\"configPath\":\"/app/c.mjs\",\"outputPath\":\"/app/\",\"files\":[{\"out\":"
    "\"/app/t.mjs\"}],\"indexControllerEntryPoint" ENTRY "index.mjs\","
    "\"runControllerEntryPoint" ENTRY "run.mjs\",\"indexWorkerEntryPoint" ENTRY
    "iw.mjs\",\"runWorkerEntryPoint" ENTRY "rw.mjs\"}";
#define COPY "COPY --chown=node:node"
#define STAGE(commands)                                                                    \
    "FROM x AS build\n" COPY " package.json ./\n"                                          \
    "RUN npm i --no-audit --no-fund --no-save --no-package-lock\n" COPY                    \
    " . .\n" commands COPY " . .\nRUN mkdir -p node_modules\nFROM scratch AS code\n"

/* npm deletes what it does not know, and installs one package, which others may write in. */
static const char npm_script[] =
    "#!/bin/sh\nset -e\ntest -f package.json; test -f build.json; test ! -e c.mjs\n"
    "echo npm \"$@\" \"$TOKEN\" \"${TRIGGER_SECRET_KEY-none}\"\n"
    "mkdir -p node_modules/ms node_modules/.bin\necho ms > node_modules/ms/index.js\n"
    "chmod 6777 node_modules/ms/index.js; chmod 777 node_modules/ms\n"
    "ln -s ../ms/index.js node_modules/.bin/ms; ln -s /etc/passwd outside\n"
    "mkfifo node_modules/pipe\n";

/* node: the index, which is told apart by what it is given. */
static const char node_script[] =
    "#!/bin/sh\nset -e\nif [ \"$1\" = --version ]; then echo v22.1.0; exit 0; fi\n"
    "case \"$1\" in --max_old_space_size=*) ;; *) exit 9;; esac\n"
    "test -f \"$2\"; grep -q \"$PWD/c.mjs\" build.json\n"
    "test -f node_modules/ms/index.js; test -z \"$TOKEN\"\n"
    "echo index \"$TRIGGER_SECRET_KEY\" \"$TRIGGER_DEPLOYMENT_ID\"\nid -u >&2\n"
    ". ./index.sh\n";

struct scene {
    char *top;
    struct version_build_options options;
    struct build_job job;
    struct version_build_task task;
    char *archive, *scratch;
    struct version_build *build;
    bool done;
    bool ok, canceled;
    char *error, *message, *errors, *index;
    struct build_output output;
    struct buf log;
    int children; /* that are there */
};

static char *path_of(const struct scene *scene, const char *name)
{
    struct buf path = { 0 };
    buf_print(&path, "%s/%s", scene->top, name);
    char *text = mem_text(buf_slice(&path));
    buf_finish(&path);
    return text;
}

static void make_folder(const struct scene *scene, const char *name, mode_t mode)
{
    char *path = path_of(scene, name);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(chmod(path, mode), 0);
    free(path);
}

static void write_text(const struct scene *scene, const char *name, const char *text,
                       mode_t mode)
{
    char *path = path_of(scene, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(chmod(path, mode), 0);
    free(path);
}

static enum err find_program(void *owner, struct slice runtime, char **program,
                             struct failure *why)
{
    struct scene *scene = owner;
    if (!slice_is(runtime, "node-22"))
        return explain(why, ERR_RULE, "no %.*s here", SLICE_ARG(runtime));
    *program = path_of(scene, "bin/node");
    return OK;
}

static void on_child(void *owner, pid_t pid, bool begins)
{
    struct scene *scene = owner;
    assert_true(pid > 1);
    scene->children += begins ? 1 : -1;
}

static const char job_text[] =
    "{\"deployment\":{\"id\":\"deployment_a\",\"version\":\"20260102.3\",\"contentHash\":"
    "\"cafe\"},\"environment\":{\"id\":\"env\"},\"project\":{\"id\":\"p\",\"ref\":\"proj\"}"
    ","
    "\"archive\":{\"bytes\":1,\"sha256\":"
    "\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"},"
    "\"buildEnvVars\":{\"TOKEN\":\"token-value\"},\"key\":\"build-key\",\"apiUrl\":"
    "\"http://127.0.0.1:1\",\"deadlineMs\":60000}";

static char *one_path[] = { "PATH=/usr/bin:/bin", NULL };

static void scene_begin(struct scene *scene, const char *containerfile, const char *index)
{
    char top[] = "/tmp/version-build-XXXXXX";
    struct failure why = { 0 };
    *scene = (struct scene){ 0 };
    assert_non_null(mkdtemp(top));
    scene->top = mem_text(slice_of(top));
    assert_int_equal(chmod(top, 0711), 0);
    make_folder(scene, "bin", 0755);
    make_folder(scene, "versions", 0711);
    make_folder(scene, "scratch", 0777);
    make_folder(scene, "bundle", 0755);
    make_folder(scene, "bundle/node_modules", 0755);
    make_folder(scene, "bundle/node_modules/entry", 0755);
    write_text(scene, "bin/npm", npm_script, 0755);
    write_text(scene, "bin/node", node_script, 0755);
    write_text(scene, "bundle/build.json", manifest_text, 0644);
    write_text(scene, "bundle/package.json", "{\"dependencies\":{\"ms\":\"2.1.3\"}}", 0644);
    write_text(scene, "bundle/Containerfile", containerfile, 0644);
    write_text(scene, "bundle/c.mjs", "config", 0644);
    write_text(scene, "bundle/index.sh", index, 0644);
    write_text(scene, "bundle/node_modules/entry/index.mjs", "index", 0644);
    scene->archive = path_of(scene, "archive.tar.gz");
    scene->scratch = path_of(scene, "scratch");
    char *versions = path_of(scene, "versions");
    scene->options = (struct version_build_options){ .loop = child_world.loop,
                                                     .limits = &bundle_limits_default,
                                                     .processes = child_world.processes,
                                                     .versions = versions,
                                                     .architecture = "x64",
                                                     .libc = "glibc",
                                                     .image = { .packages = "" },
                                                     .passed = "",
                                                     .outer = one_path,
                                                     .memory = 512u << 20,
                                                     .find_program = find_program,
                                                     .on_child = on_child,
                                                     .owner = scene };
    assert_int_equal(build_job_read(slice_of(job_text), &scene->job, &why), OK);
    scene->task = (struct version_build_task){ .job = &scene->job,
                                               .archive = scene->archive,
                                               .scratch = scene->scratch,
                                               .output = &scene->output };
    build_output_init(&scene->output);
    if (geteuid() == 0)
        scene->task.user = (struct process_user){ STRANGER, STRANGER };
}

static void scene_pack(struct scene *scene)
{
    unsigned char hash[BUNDLE_HASH_LEN];
    struct failure why = { 0 };
    struct bundle *bundle;
    char *folder = path_of(scene, "bundle");
    int file = open(scene->archive, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (bundle_pack(folder, file, &bundle_limits_default, &why) ||
        bundle_open(scene->archive, &bundle_limits_default, &bundle, &why) ||
        bundle_hash(bundle, hash, &why))
        fail_msg("%s", why.text);
    for (size_t i = 0; i < BUNDLE_HASH_LEN; i++)
        snprintf(scene->job.archive_hash + 2 * i, 3, "%02x", hash[i]);
    bundle_close(bundle);
    close(file);
    free(folder);
}

static char *copy(struct slice text)
{
    return mem_text(text.ptr ? text : SLICE(""));
}

static void take_log(struct scene *scene)
{
    struct bytes *piece = build_output_take(&scene->output);
    if (piece)
        buf_add(&scene->log, bytes_slice(piece));
    bytes_unref(piece);
}

static void on_done(void *owner, const struct version_outcome *outcome)
{
    struct scene *scene = owner;
    assert_false(scene->done);
    assert_int_equal(scene->children, 0);
    scene->done = true;
    scene->ok = outcome->ok;
    scene->canceled = outcome->canceled;
    scene->error = copy(slice_of(outcome->error));
    scene->message = copy(slice_of(outcome->message));
    scene->errors = copy(outcome->errors);
    scene->index = copy(outcome->index);
    take_log(scene);
    buf_add_char(&scene->log, '\0');
}

static void scene_start(struct scene *scene)
{
    scene_pack(scene);
    scene->build = version_build_begin(&scene->options, &scene->task, on_done, scene);
    assert_false(scene->done);
}

static void scene_wait(struct scene *scene)
{
    for (int i = 0; !scene->done && i < 3000; i++)
        child_world_turn(10);
    assert_true(scene->done);
}

static void scene_run(struct scene *scene)
{
    scene_start(scene);
    scene_wait(scene);
}

static void scene_forget(struct scene *scene)
{
    free(scene->error);
    free(scene->message);
    free(scene->errors);
    free(scene->index);
    buf_finish(&scene->log);
    scene->error = scene->message = scene->errors = scene->index = NULL;
    scene->log = (struct buf){ 0 };
    scene->done = false;
}

static void scene_end(struct scene *scene)
{
    char command[256];
    scene_forget(scene);
    build_output_finish(&scene->output);
    snprintf(command, sizeof(command), "rm -rf %s", scene->top);
    assert_int_equal(system(command), 0);
    build_job_finish(&scene->job);
    free(scene->archive);
    free(scene->scratch);
    free((char *)scene->options.versions);
    free(scene->top);
}

static struct buf read_text(const struct scene *scene, const char *name)
{
    struct buf text = { 0 };
    char *path = path_of(scene, name);
    FILE *file = fopen(path, "re");
    if (!file)
        fail_msg("%s is not there", path);
    text.len = fread(buf_reserve(&text, 65536), 1, 65536, file);
    buf_add_char(&text, '\0');
    fclose(file);
    free(path);
    return text;
}

static unsigned count_versions(const struct scene *scene)
{
    unsigned count = 0;
    DIR *all = opendir(scene->options.versions);
    while (readdir(all))
        count++;
    closedir(all);
    return count - 2;
}

static void assert_says(const struct scene *scene, const char *name, const char *part)
{
    struct buf text = read_text(scene, name);
    char *whole = *part == '/' ? path_of(scene, part + 1) : mem_text(slice_of(part));
    if (!strstr(text.ptr, whole))
        fail_msg("no '%s' in %s", whole, text.ptr);
    free(whole);
    buf_finish(&text);
}

static const char index_of_tasks[] =
    "echo \"{\\\"configPath\\\": \\\"$PWD/c.mjs\\\", \\\"tasks\\\": []}\" > index.json\n";

static const char version_at[] = "versions/deployment_a";
#define IN_VERSION(name) "versions/deployment_a/" name

static void assert_sealed(const struct scene *scene, const char *name, mode_t mode)
{
    struct stat found;
    char *path = path_of(scene, name);
    assert_int_equal(lstat(path, &found), 0);
    assert_int_equal(found.st_uid, geteuid());
    assert_int_equal(found.st_mode & 07777, mode);
    free(path);
}

static bool is_there(const struct scene *scene, const char *name)
{
    struct stat found;
    char *path = path_of(scene, name);
    bool there = lstat(path, &found) == 0;
    free(path);
    return there;
}

static void a_version_is_built(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene,
                STAGE("RUN echo $TOKEN > made.txt\nRUN rm c.mjs && \\\n  echo two\n"),
                index_of_tasks);
    scene_run(&scene);
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
    assert_true(is_there(&scene, IN_VERSION("node_modules/.bin/ms")));
    assert_false(is_there(&scene, IN_VERSION("node_modules/pipe")));
    assert_int_equal(count_versions(&scene), 1);
    assert_non_null(strstr(scene.log.ptr, "npm i --no-audit --no-fund --no-save "
                                          "--no-package-lock token-value none\n"));
    assert_non_null(strstr(scene.log.ptr, "$ rm c.mjs &&   echo two\ntwo\n"));
    assert_non_null(strstr(scene.log.ptr, "index build-key deployment_a\n"));
    if (geteuid() == 0)
        assert_non_null(strstr(scene.log.ptr, "12345\n"));

    /* The same once more: it takes the place of the one before. */
    scene_forget(&scene);
    scene_run(&scene);
    assert_true(scene.ok);
    assert_int_equal(count_versions(&scene), 1);
    scene_end(&scene);
}

static void without_dependencies_and_commands_only_the_index_is_executed(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene, STAGE(""), index_of_tasks);
    write_text(&scene, "bundle/package.json", "{\"dependencies\":{}}", 0644);
    make_folder(&scene, "bundle/node_modules/ms", 0755);
    write_text(&scene, "bundle/node_modules/ms/index.js", "", 0644);
    scene_run(&scene);
    assert_true(scene.ok);
    assert_null(strstr(scene.log.ptr, "npm"));
    scene_end(&scene);
}

static void scripts_of_packages_are_left_out_where_the_operator_says_so(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene, STAGE(""), index_of_tasks);
    scene.options.no_scripts = true;
    scene_run(&scene);
    assert_true(scene.ok);
    assert_non_null(strstr(scene.log.ptr, "--no-package-lock --ignore-scripts "));
    scene_end(&scene);
}

/* A machine that executes what another one has built. */
static void with_an_index_of_another_machine_none_is_made(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene, STAGE(""), "exit 7\n");
    scene.task.index = SLICE("{\"tasks\":[\"/app/t.mjs\"]}");
    scene_run(&scene);
    assert_true(scene.ok);
    assert_says(&scene, IN_VERSION("index.json"), "/versions/deployment_a/t.mjs");
    scene_end(&scene);
}

static void assert_failed(struct scene *scene, const char *message, const char *errors_part)
{
    scene_run(scene);
    assert_false(scene->ok);
    assert_false(scene->canceled);
    assert_string_equal(scene->error, "BuildError");
    assert_string_equal(scene->message, message);
    if (!strstr(scene->errors, errors_part))
        fail_msg("%s", scene->errors);
    assert_int_equal(count_versions(scene), 0);
    scene_end(scene);
}

static void what_fails_is_said_and_leaves_nothing(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene, STAGE(""), "echo task.ts: broken >&2; exit 1\n");
    assert_failed(&scene, "indexing failed: it ended with exit code 1", "task.ts: broken");
    scene_begin(&scene, STAGE("RUN true\nRUN echo out; echo wrong >&2; exit 3\n"),
                index_of_tasks);
    assert_failed(
        &scene,
        "the command 'echo out; echo wrong >&2; exit 3' failed: it ended with exit "
        "code 3",
        "wrong");
    scene_begin(&scene, STAGE(""), index_of_tasks);
    write_text(&scene, "bin/npm", "#!/bin/sh\necho ENOSPC no space >&2\nexit 228\n", 0755);
    assert_failed(
        &scene, "the disk is full: installing packages failed: it ended with exit code 228",
        "ENOSPC");
    scene_begin(&scene, STAGE(""), index_of_tasks);
    write_text(&scene, "bin/npm", "#!/bin/sh\necho npm error code E404 >&2\nexit 1\n",
               0755);
    assert_failed(
        &scene,
        "installing packages failed: it ended with exit code 1; a package was not "
        "found: the project's .npmrc is not used here; for a private registry set "
        "NPM_CONFIG_USERCONFIG to a file of its own, and name that variable in "
        "--builder-env",
        "E404");
    scene_begin(&scene, STAGE(""), "true\n");
    assert_failed(&scene, "the index of the bundle has written no index.json", "");
    scene_begin(&scene, STAGE(""), "ln -s /etc/passwd index.json\n");
    assert_failed(&scene, "the index of the bundle has written no index.json", "");
    scene_begin(&scene, STAGE(""), "echo '[]' > index.json\n");
    assert_failed(
        &scene,
        "the index of the bundle has written an index.json that is not an object of "
        "at most 8388608 bytes",
        "");
    scene_begin(&scene, "FROM x\n", index_of_tasks);
    assert_failed(
        &scene,
        "unknown CLI version: the commands of its Containerfile cannot be told from "
        "the rest",
        "");
    scene_begin(&scene, STAGE(""), index_of_tasks);
    write_text(&scene, "bundle/build.json", "{}", 0644);
    assert_failed(&scene, "build.json: indexControllerEntryPoint must be a path below /app",
                  "");
}

static void a_version_that_grew_too_large_is_refused(void **state)
{
    (void)state;
    struct scene scene;
    struct bundle_limits limits = bundle_limits_default;
    limits.files_max = 12;
    scene_begin(&scene, STAGE(""),
                "for i in $(seq 120); do : > file-$i; done\necho '{}' > index.json\n");
    scene.options.limits = &limits;
    assert_failed(
        &scene,
        "the version has more than 120 files and folders after its build; make it "
        "smaller, or raise deploy-files (the limit is ten times that)",
        "");
}

static void another_archive_than_the_uploaded_one_is_refused(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene, STAGE(""), index_of_tasks);
    scene_pack(&scene);
    write_text(&scene, "archive.tar.gz", "something else", 0600);
    scene.build = version_build_begin(&scene.options, &scene.task, on_done, &scene);
    scene_wait(&scene);
    assert_false(scene.ok);
    assert_string_equal(scene.message, "the archive is not the one that was uploaded");
    assert_int_equal(count_versions(&scene), 0);
    scene_end(&scene);
}

static void wait_for_log(struct scene *scene, const char *text)
{
    for (int i = 0; i < 3000; i++) {
        take_log(scene);
        if (scene->log.len && memmem(scene->log.ptr, scene->log.len, text, strlen(text)))
            return;
        child_world_turn(10);
    }
    fail_msg("never said: %s", text);
}

static void a_canceled_build_leaves_neither_children_nor_folder(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene, STAGE(""), "sleep 98761 & echo asleep; wait\n");
    scene_start(&scene);
    wait_for_log(&scene, "asleep");
    assert_int_equal(version_build_step(scene.build), VERSION_BUILD_BUILDING);
    version_build_cancel(scene.build);
    scene_wait(&scene);
    assert_false(scene.ok);
    assert_true(scene.canceled);
    assert_true(child_none_is_left("98761"));
    assert_int_equal(count_versions(&scene), 0);
    scene_end(&scene);

    /* At once, while the archive is read. */
    scene_begin(&scene, STAGE(""), index_of_tasks);
    scene_start(&scene);
    version_build_cancel(scene.build);
    scene_wait(&scene);
    assert_true(scene.canceled);
    assert_int_equal(count_versions(&scene), 0);
    scene_end(&scene);
}

static void a_build_ends_at_its_deadline(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene, STAGE("RUN sleep 98762\n"), index_of_tasks);
    scene.job.deadline_ms = 700;
    scene_run(&scene);
    assert_false(scene.ok);
    assert_false(scene.canceled);
    assert_string_equal(scene.error, "TimeoutError");
    assert_true(child_none_is_left("98762"));
    assert_int_equal(count_versions(&scene), 0);
    scene_end(&scene);
}

static void what_a_killed_build_has_left_is_removed_at_a_start(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene, STAGE(""), index_of_tasks);
    make_folder(&scene, "versions/deployment_b.new", 0555);
    make_folder(&scene, "versions/deployment_c", 0755);
    version_folder_set_unfinished_aside(scene.options.versions);
    assert_true(version_folder_remove_old(scene.options.versions, NULL));
    assert_int_equal(count_versions(&scene), 1);
    assert_true(is_there(&scene, "versions/deployment_c"));
    version_folder_set_aside(scene.options.versions, "deployment_c");
    version_folder_set_aside(scene.options.versions, "deployment_d");
    assert_true(version_folder_remove_old(scene.options.versions, NULL));
    assert_int_equal(count_versions(&scene), 0);
    scene_end(&scene);
}

int main(int argc, char **argv)
{
    int status;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_version_is_built),
        cmocka_unit_test(without_dependencies_and_commands_only_the_index_is_executed),
        cmocka_unit_test(scripts_of_packages_are_left_out_where_the_operator_says_so),
        cmocka_unit_test(with_an_index_of_another_machine_none_is_made),
        cmocka_unit_test(what_fails_is_said_and_leaves_nothing),
        cmocka_unit_test(a_version_that_grew_too_large_is_refused),
        cmocka_unit_test(another_archive_than_the_uploaded_one_is_refused),
        cmocka_unit_test(a_canceled_build_leaves_neither_children_nor_folder),
        cmocka_unit_test(a_build_ends_at_its_deadline),
        cmocka_unit_test(what_a_killed_build_has_left_is_removed_at_a_start),
    };
    if (child_world_role(argc, argv, &status))
        return status;
    return cmocka_run_group_tests_name("version build", tests, child_world_set_up,
                                       child_world_tear_down);
}
