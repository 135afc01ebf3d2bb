/* build_scene.c - folders, a bundle, scripts for node and npm, and the outcome of the
 * build. */
#include "tests/support/world/build_scene.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "os/archive/bundle_pack.h"
#include "tests/support/world/child_world.h"
#include "tests/support/world/unit.h"

enum { STRANGER = 12345 };

#define ENTRY "\":\"/app/node_modules/entry/"
static const char manifest_text[] =
    "{\"cliPackageVersion\":\"4.8.3\",\"contentHash\":\"cafe\",\"runtime\":\"node-22\","
    "\"configPath\":\"/app/c.mjs\",\"outputPath\":\"/app/\",\"files\":[{\"out\":"
    "\"/app/t.mjs\"}],\"indexControllerEntryPoint" ENTRY "index.mjs\","
    "\"runControllerEntryPoint" ENTRY "run.mjs\",\"indexWorkerEntryPoint" ENTRY
    "iw.mjs\",\"runWorkerEntryPoint" ENTRY "rw.mjs\"}";
/* npm deletes unknown files, and installs one package, which others can write to. */
static const char npm_script[] =
    "#!/bin/sh\nset -e\ntest -f package.json; test -f build.json; test ! -e c.mjs\n"
    "echo npm \"$@\" \"$TOKEN\" \"${TRIGGER_SECRET_KEY-none}\"\n"
    "mkdir -p node_modules/ms node_modules/.bin\necho ms > node_modules/ms/index.js\n"
    "chmod 6777 node_modules/ms/index.js; chmod 777 node_modules/ms\n"
    "ln -s ../ms/index.js node_modules/.bin/ms; ln -s /etc/passwd outside\n"
    "mkfifo node_modules/pipe\n";

/* node: prints its version, or executes the index. */
static const char node_script[] =
    "#!/bin/sh\nset -e\nif [ \"$1\" = --version ]; then echo v22.1.0; exit 0; fi\n"
    "case \"$1\" in --max_old_space_size=*) ;; *) exit 9;; esac\n"
    "test -f \"$2\"; grep -q \"$PWD/c.mjs\" build.json\n"
    "test -f node_modules/ms/index.js; test -z \"$TOKEN\"\n"
    "echo index \"$TRIGGER_SECRET_KEY\" \"$TRIGGER_DEPLOYMENT_ID\"\nid -u >&2\n"
    ". ./index.sh\n";

char *build_scene_path(const struct build_scene *scene, const char *name)
{
    struct buf path = { 0 };
    buf_print(&path, "%s/%s", scene->top, name);
    char *text = mem_text(buf_slice(&path));
    buf_finish(&path);
    return text;
}

void build_scene_folder(const struct build_scene *scene, const char *name, mode_t mode)
{
    char *path = build_scene_path(scene, name);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(chmod(path, mode), 0);
    free(path);
}

void build_scene_write(const struct build_scene *scene, const char *name, const char *text,
                       mode_t mode)
{
    char *path = build_scene_path(scene, name);
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
    struct build_scene *scene = owner;
    if (!slice_is(runtime, "node-22"))
        return explain(why, ERR_RULE, "no %.*s here", SLICE_ARG(runtime));
    *program = build_scene_path(scene, "bin/node");
    return OK;
}

static void on_child(void *owner, pid_t pid, bool begins)
{
    struct build_scene *scene = owner;
    assert_true(pid > 1);
    scene->children += begins ? 1 : -1;
    scene->begun += begins;
    if (begins)
        scene->last = pid;
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

void build_scene_begin(struct build_scene *scene, const char *containerfile,
                       const char *index)
{
    char top[] = "/tmp/version-build-XXXXXX";
    struct failure why = { 0 };
    *scene = (struct build_scene){ 0 };
    assert_non_null(mkdtemp(top));
    scene->top = mem_text(slice_of(top));
    assert_int_equal(chmod(top, 0711), 0);
    build_scene_folder(scene, "bin", 0755);
    build_scene_folder(scene, "versions", 0711);
    build_scene_folder(scene, "scratch", 0777);
    build_scene_folder(scene, "bundle", 0755);
    build_scene_folder(scene, "bundle/node_modules", 0755);
    build_scene_folder(scene, "bundle/node_modules/entry", 0755);
    build_scene_write(scene, "bin/npm", npm_script, 0755);
    build_scene_write(scene, "bin/node", node_script, 0755);
    build_scene_write(scene, "bundle/build.json", manifest_text, 0644);
    build_scene_write(scene, "bundle/package.json", "{\"dependencies\":{\"ms\":\"2.1.3\"}}",
                      0644);
    build_scene_write(scene, "bundle/Containerfile", containerfile, 0644);
    build_scene_write(scene, "bundle/c.mjs", "config", 0644);
    build_scene_write(scene, "bundle/index.sh", index, 0644);
    build_scene_write(scene, "bundle/node_modules/entry/index.mjs", "index", 0644);
    scene->archive = build_scene_path(scene, "archive.tar.gz");
    scene->scratch = build_scene_path(scene, "scratch");
    char *versions = build_scene_path(scene, "versions");
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

void build_scene_pack(struct build_scene *scene)
{
    unsigned char hash[BUNDLE_HASH_LEN];
    struct failure why = { 0 };
    struct bundle *bundle;
    char *folder = build_scene_path(scene, "bundle");
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

void build_scene_log(struct build_scene *scene)
{
    struct bytes *piece = build_output_take(&scene->output);
    if (piece)
        buf_add(&scene->log, bytes_slice(piece));
    bytes_unref(piece);
}

void build_scene_done(void *owner, const struct version_outcome *outcome)
{
    struct build_scene *scene = owner;
    assert_false(scene->done);
    assert_int_equal(scene->children, 0);
    scene->done = true;
    scene->ok = outcome->ok;
    scene->canceled = outcome->canceled;
    scene->error = copy(slice_of(outcome->error));
    scene->message = copy(slice_of(outcome->message));
    scene->errors = copy(outcome->errors);
    scene->index = copy(outcome->index);
    build_scene_log(scene);
    buf_add_char(&scene->log, '\0');
}

void build_scene_start(struct build_scene *scene)
{
    build_scene_pack(scene);
    scene->build =
        version_build_begin(&scene->options, &scene->task, build_scene_done, scene);
    assert_false(scene->done);
}

void build_scene_wait(struct build_scene *scene)
{
    for (int i = 0; !scene->done && i < 3000; i++)
        child_world_turn(10);
    assert_true(scene->done);
}

void build_scene_run(struct build_scene *scene)
{
    build_scene_start(scene);
    build_scene_wait(scene);
}

void build_scene_forget(struct build_scene *scene)
{
    free(scene->error);
    free(scene->message);
    free(scene->errors);
    free(scene->index);
    buf_finish(&scene->log);
    scene->error = scene->message = scene->errors = scene->index = NULL;
    scene->log = (struct buf){ 0 };
    scene->done = false;
    scene->begun = 0;
}

void build_scene_end(struct build_scene *scene)
{
    char command[256];
    build_scene_forget(scene);
    build_output_finish(&scene->output);
    snprintf(command, sizeof(command), "rm -rf %s", scene->top);
    assert_int_equal(system(command), 0);
    build_job_finish(&scene->job);
    free(scene->archive);
    free(scene->scratch);
    free((char *)scene->options.versions);
    free(scene->top);
}

struct buf build_scene_read(const struct build_scene *scene, const char *name)
{
    struct buf text = { 0 };
    char *path = build_scene_path(scene, name);
    FILE *file = fopen(path, "re");
    if (!file)
        fail_msg("%s is not there", path);
    text.len = fread(buf_reserve(&text, 65536), 1, 65536, file);
    buf_add_char(&text, '\0');
    fclose(file);
    free(path);
    return text;
}

unsigned build_scene_versions(const struct build_scene *scene)
{
    unsigned count = 0;
    DIR *all = opendir(scene->options.versions);
    while (readdir(all))
        count++;
    closedir(all);
    return count - 2;
}

const char build_scene_index[] =
    "echo \"{\\\"configPath\\\": \\\"$PWD/c.mjs\\\", \\\"tasks\\\": []}\" > index.json\n";

bool build_scene_has(const struct build_scene *scene, const char *name)
{
    struct stat found;
    char *path = build_scene_path(scene, name);
    bool there = lstat(path, &found) == 0;
    free(path);
    return there;
}

void build_scene_fails(struct build_scene *scene, const char *message,
                       const char *errors_part)
{
    build_scene_run(scene);
    assert_false(scene->ok);
    assert_false(scene->canceled);
    assert_string_equal(scene->error, "BuildError");
    assert_string_equal(scene->message, message);
    if (!strstr(scene->errors, errors_part))
        fail_msg("%s", scene->errors);
    assert_int_equal(build_scene_versions(scene), 0);
    build_scene_end(scene);
}
