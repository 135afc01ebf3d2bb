/* version_build.c - the steps of a build, one after another.
 *
 *   OPEN      open the archive, make the folder and the control group       pool
 *   HASH      check that the archive is the one that was uploaded           pool
 *   READ      check the archive, read its texts, unpack package.json        unpacker
 *   JUDGE     parse the texts: manifest, commands, dependencies             pool
 *   ASK       get the version of node, unless bun executes it               child
 *   INSTALL   npm or bun, if there are dependencies                         child
 *   UNPACK    everything: npm deletes files it does not know                unpacker
 *   COMMANDS  one after another                                             children
 *   RENEW     everything again, if there were commands                      unpacker
 *   PLACE     write the manifest with its paths                             pool
 *   INDEX     register the tasks with the gateway, write index.json         child
 *   SEAL      read index.json, seal and rename the folder                   pool
 *   CLEAN     remove what is not in its place                               pool
 *
 * A step that fails or was canceled is followed by CLEAN. This process hashes the archive
 * and passes it on; only the unpacker (unpacker.h), a child like the others, reads it. */
#include "supervisor/versions/version_build.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json/scan.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/work.h"
#include "os/process/cgroup.h"
#include "supervisor/versions/build_environment.h"
#include "supervisor/versions/containerfile.h"
#include "supervisor/versions/manifest.h"
#include "supervisor/versions/unpack_answer.h"
#include "supervisor/versions/unpacker.h"
#include "supervisor/versions/version_folder.h"

enum {
    MESSAGE_MAX = 512,
    MIB = 1 << 20,
    INDEX_MEMORY_MAX = 8192, /* MiB */
    /* When memory runs out: builds first, then runs, then the rest. */
    BUILD_OOM_SCORE = 700,
    OPEN_FILES = 16384,
    PROCESSES = 8192, /* per user; its runs count too */
    GROUP_PROCESSES = 1024,
    CPU_WEIGHT = 100, /* of one core */
    NODE_LEAST = 20,
    /* The limits are those of the archive, times this: packages are added. */
    TIMES_BUILT = 10,
};

enum build_part {
    OPEN,
    HASH,
    READ,
    JUDGE,
    ASK,
    INSTALL,
    UNPACK,
    COMMANDS,
    RENEW,
    PLACE,
    INDEX,
    SEAL,
    CLEAN
};

/* The archive's files that define how the version is built. A zeroed struct is empty. */
struct build_texts {
    struct buf manifest_text; /* build.json */
    struct buf package_text;  /* package.json; empty: the archive has none */
    struct manifest manifest;
    struct containerfile containerfile;
    bool has_dependencies;
};

struct program_version {
    char text[32]; /* as printed, such as "v22.11.0"; "": not asked */
};

struct version_build {
    const struct version_build_options *options;
    struct version_build_task task;
    version_build_done_fn *done;
    void *owner;

    enum build_part step;
    bool canceled, overdue;
    struct timer deadline;

    struct work work;
    struct failure why; /* of the step in the pool */
    enum err status;    /* of the step in the pool */

    struct bundle *bundle; /* from HASH on */
    struct version_folder folder;
    char group[CGROUP_PATH_MAX]; /* control group of the children; "": none */
    struct unpack_answer answer; /* of the unpacking step */
    struct build_texts texts;    /* from JUDGE on */
    char *program;
    struct program_version program_version;

    struct process process;
    bool runs; /* the process exists */
    struct child_environment environment;
    size_t command; /* index of the next one */
    pid_t pid;      /* of the process */

    struct buf index;
    uint64_t bytes;
    bool failed, placed;
    char message[MESSAGE_MAX];
    struct buf errors;
};

static void next_step(struct version_build *build);

/* ---- failures ---- */

__attribute__((format(printf, 2, 3))) static void fail_build(struct version_build *build,
                                                             const char *format, ...)
{
    va_list args;
    if (build->failed)
        return;
    build->failed = true;
    va_start(args, format);
    vsnprintf(build->message, sizeof(build->message), format, args);
    va_end(args);
}

/* Fails the build after the pool or the unpacker has rejected a step. */
static void fail_step(struct version_build *build, enum err refused,
                      const struct failure *why)
{
    fail_build(build, "%s%s", refused == ERR_STORE_FULL ? "the disk is full: " : "",
               why->text);
}

static bool is_stopped(const struct version_build *build)
{
    return build->canceled || build->overdue;
}

/* ---- the texts ---- */

static enum err read_manifest(struct build_texts *texts, struct slice file,
                              struct failure *why)
{
    if (!file.ptr)
        return explain(why, ERR_INVALID, "the archive has no build.json");
    buf_add(&texts->manifest_text, file);
    return manifest_read(buf_slice(&texts->manifest_text), &texts->manifest, why);
}

static enum err read_containerfile(struct build_texts *texts, struct slice file,
                                   struct failure *why)
{
    if (!file.ptr)
        return explain(why, ERR_INVALID, "the archive has no Containerfile");
    return containerfile_read(file, &texts->containerfile, why);
}

static enum err read_package(struct build_texts *texts, struct slice file,
                             struct failure *why)
{
    if (!file.ptr)
        return OK;
    buf_add(&texts->package_text, file);
    return package_has_dependencies(buf_slice(&texts->package_text),
                                    &texts->has_dependencies, why);
}

/* files: by enum unpack_file, as in struct unpack_answer; copied.
 *
 * Errors are reported in the order of the files. Returns ERR_INVALID with the reason if the
 * version cannot be built. Call finish_texts in any case. */
static enum err read_texts(struct build_texts *texts, const struct slice *files,
                           struct failure *why)
{
    enum err refused = read_manifest(texts, files[UNPACK_MANIFEST], why);
    if (!refused)
        refused = read_containerfile(texts, files[UNPACK_CONTAINERFILE], why);
    return refused ? refused : read_package(texts, files[UNPACK_PACKAGE], why);
}

static void finish_texts(struct build_texts *texts)
{
    buf_finish(&texts->manifest_text);
    buf_finish(&texts->package_text);
    manifest_finish(&texts->manifest);
    containerfile_finish(&texts->containerfile);
}

/* Returns true if bun executes the version and installs its packages.
 *
 * Otherwise node and npm do. */
static bool texts_name_bun(const struct build_texts *texts)
{
    return slice_starts(slice_of(texts->manifest.runtime), "bun");
}

/* ---- the version of node ---- */

/* The CLI names a Node for every project, "node-24" unless its owner sets another one. Most
 * versions work as well with another Node. So a build rejects only a Node that is too old
 * for the controllers; a difference is only a hint when something else has failed. */

/* Appends output of `PROGRAM --version`. */
static void program_version_add(struct program_version *version, struct slice text)
{
    size_t len = strlen(version->text), room = sizeof(version->text) - 1 - len;
    snprintf(version->text + len, room + 1, "%.*s",
             (int)(text.len < room ? text.len : room), text.ptr);
}

/* Returns 0 if the version names no Node. */
static long named_major(const char *runtime)
{
    return strncmp(runtime, "node-", 5) == 0 ? strtol(runtime + 5, NULL, 10) : 0;
}

/* Returns 0 if the program was not run or printed no version. */
static long said_major(const struct program_version *version)
{
    return version->text[0] == 'v' ? strtol(version->text + 1, NULL, 10) : 0;
}

/* Returns ERR_RULE with the reason if the program is too old.
 *
 * runtime: as in the version, "node-24"; program: path of the program that printed it. */
static enum err program_version_check(struct program_version *version, const char *runtime,
                                      const char *program, struct failure *why)
{
    long named = named_major(runtime);
    version->text[strcspn(version->text, "\r\n")] = '\0';
    if (said_major(version) >= NODE_LEAST)
        return OK;
    return explain(why, ERR_RULE,
                   "versions need Node %d or newer, but %s is %s; install a newer one and "
                   "name it, as in --node %ld=/opt/node/bin/node",
                   NODE_LEAST, program, version->text, named ? named : NODE_LEAST + 2);
}

/* Writes a hint for the error of a child, "; …". Returns false if the program is the one
 * that the version names. */
static bool program_version_hint(const struct program_version *version, const char *runtime,
                                 char *out, size_t size)
{
    long named = named_major(runtime), said = said_major(version);
    if (!named || !said || named == said)
        return false;
    snprintf(out, size,
             "; the version asks for Node %ld, but %s executed it; name the right one with "
             "--node %ld=PATH",
             named, version->text, named);
    return true;
}

/* ---- steps in the pool ---- */

/* Creates the control group of the children. They are not started if this fails. */
static enum err make_group(struct version_build *build, struct failure *why)
{
    const struct version_build_options *options = build->options;
    char name[sizeof("build-") + BUILD_ID_MAX];
    struct cgroup_limits limits = { .memory = options->memory,
                                    .cpu_weight = CPU_WEIGHT,
                                    .pids = GROUP_PROCESSES };
    if (!options->cgroup)
        return OK;
    snprintf(name, sizeof(name), "build-%s", build->task.job->deployment);
    return cgroup_make(options->cgroup, name, &limits, build->group, why);
}

static enum err open_archive(struct version_build *build, struct failure *why)
{
    enum err refused =
        bundle_open(build->task.archive, build->options->limits, &build->bundle, why);
    if (!refused)
        refused = version_folder_make(&build->folder, build->options->versions,
                                      build->task.job->deployment, build->task.user, why);
    return refused ? refused : make_group(build, why);
}

static enum err check_hash(struct version_build *build, struct failure *why)
{
    unsigned char hash[BUNDLE_HASH_LEN];
    char text[2 * BUNDLE_HASH_LEN + 1];
    enum err refused = bundle_hash(build->bundle, hash, why);
    if (refused)
        return refused;
    text_to_hex(hash, sizeof(hash), text);
    if (strcmp(text, build->task.job->archive_hash) == 0)
        return OK;
    return explain(why, ERR_INVALID,
                   "the archive differs from the upload: its hash is wrong");
}

/* For bun's installation only: UNPACK restores the original. */
static enum err write_package_for_bun(struct version_build *build, struct failure *why)
{
    const struct build_texts *texts = &build->texts;
    struct buf text = { 0 };
    enum err refused = OK;
    if (texts_name_bun(texts) &&
        package_without_workspaces(buf_slice(&texts->package_text), &text))
        refused = version_folder_write_package(&build->folder, buf_slice(&text), why);
    buf_finish(&text);
    return refused;
}

static enum err judge(struct version_build *build, struct failure *why)
{
    enum err refused = read_texts(&build->texts, build->answer.files, why);
    unpack_answer_finish(&build->answer);
    return refused ? refused : write_package_for_bun(build, why);
}

static enum err place(struct version_build *build, struct failure *why)
{
    return version_folder_write_manifest(&build->folder,
                                         buf_slice(&build->texts.manifest_text), why);
}

static enum err seal(struct version_build *build, struct failure *why)
{
    const struct build_job *job = build->task.job;
    struct version_facts facts = { .id = job->deployment,
                                   .version = job->version,
                                   .content_hash = build->texts.manifest.content_hash,
                                   .archive_hash = job->archive_hash,
                                   .architecture = build->options->architecture,
                                   .libc = build->options->libc,
                                   .program = build->program };
    const struct bundle_limits *limits = build->options->limits;
    const struct tree_limits most = { limits->files_max * TIMES_BUILT,
                                      limits->unpacked_max * TIMES_BUILT };
    enum err refused = OK;
    if (build->task.index.ptr)
        buf_add(&build->index, build->task.index);
    else
        refused = version_folder_read_index(&build->folder, &build->index, why);
    if (!refused)
        refused = version_folder_seal(
            &build->folder, buf_slice(&build->texts.manifest_text),
            buf_slice(&build->index), &facts, &most, &build->work, &build->bytes, why);
    build->placed = !refused;
    return refused;
}

/* Leaves a large folder to the next call of version_folder_remove_old.
 *
 * Removing it would block other builds. */
static enum err clean(struct version_build *build, struct failure *why)
{
    version_folder_finish(&build->folder);
    version_folder_remove_old(build->options->versions, &build->work);
    bundle_close(build->bundle);
    if (build->group[0])
        cgroup_remove(build->group, why); /* a group that stays is empty, and is reused */
    return OK;
}

static enum err (*const pool_steps[])(struct version_build *, struct failure *) = {
    [OPEN] = open_archive, [HASH] = check_hash, [JUDGE] = judge,
    [PLACE] = place,       [SEAL] = seal,       [CLEAN] = clean,
};

/* ---- judging ---- */

static enum err find_program(struct version_build *build, struct failure *why)
{
    const struct version_build_options *options = build->options;
    const struct manifest *manifest = &build->texts.manifest;
    struct buf warnings = { 0 };
    enum err refused = image_needs_check(manifest, &options->image, why);
    if (!refused)
        refused = options->find_program(options->owner, slice_of(manifest->runtime),
                                        &build->program, why);
    image_needs_warn(manifest, &warnings);
    if (manifest_is_untested(manifest))
        buf_print(&warnings, "warning: bundles of trigger.dev %s are untested\n",
                  manifest->cli_version);
    build_output_add(build->task.output, buf_slice(&warnings));
    buf_finish(&warnings);
    return refused;
}

/* ---- children ---- */

static bool is_unpacking(const struct version_build *build)
{
    return build->step == READ || build->step == UNPACK || build->step == RENEW;
}

static void on_output(struct process *process, enum process_pipe pipe, struct slice text)
{
    struct version_build *build = container_of(process, struct version_build, process);
    if (build->step == ASK && pipe != PROCESS_STDERR)
        program_version_add(&build->program_version, text);
    else if (is_unpacking(build) && pipe != PROCESS_STDERR)
        unpack_answer_add(&build->answer, text);
    else if (pipe == PROCESS_STDERR || build->step != INDEX)
        build_output_add_error(build->task.output, text);
    else
        build_output_add(build->task.output, text);
}

static void name_step(const struct version_build *build, char *name, size_t size)
{
    if (build->step == ASK)
        snprintf(name, size, "reading the version of node");
    else if (build->step == INSTALL)
        snprintf(name, size, "installing packages");
    else if (build->step == INDEX)
        snprintf(name, size, "indexing");
    else if (is_unpacking(build))
        snprintf(name, size, "unpacking the archive");
    else
        snprintf(name, size, "the command \"%.*s\"",
                 SLICE_ARG(text_clip(
                     slice_of(build->texts.containerfile.commands[build->command - 1]))));
}

/* Adds a possible reason to the error of a child. */
static void add_hint(struct version_build *build, struct slice lines)
{
    size_t len = strlen(build->message);
    if (build->step == INSTALL && lines.len &&
        (memmem(lines.ptr, lines.len, "E404", 4) ||
         memmem(lines.ptr, lines.len, " 404", 4)))
        snprintf(build->message + len, MESSAGE_MAX - len,
                 "; a package was not found: the project's .npmrc is not used; for a "
                 "private registry, set NPM_CONFIG_USERCONFIG to a separate file and list "
                 "that variable in --builder-env");
    else if (build->step == INDEX)
        program_version_hint(&build->program_version, build->texts.manifest.runtime,
                             build->message + len, MESSAGE_MAX - len);
    else if (is_unpacking(build) && lines.len &&
             memmem(lines.ptr, lines.len, "out of memory", 13))
        snprintf(build->message + len, MESSAGE_MAX - len,
                 "; unpacking needs more memory than archives within the limits do (max "
                 "%llu MiB)",
                 (unsigned long long)(unpack_memory(build->options->limits) / MIB));
}

static void fail_child(struct version_build *build, const char *reason)
{
    char name[160];
    struct slice lines = build_output_errors(build->task.output);
    bool full = lines.len && memmem(lines.ptr, lines.len, "ENOSPC", 6);
    bool is_first = !build->failed;
    name_step(build, name, sizeof(name));
    build_output_clean(lines, &build->errors);
    fail_build(build, "%s%s failed: %s", full ? "the disk is full: " : "", name, reason);
    if (is_first && !full)
        add_hint(build, lines);
}

/* Keeps the files of READ for JUDGE. */
static void take_answer(struct version_build *build)
{
    struct failure why = { 0 };
    enum err refused = unpack_answer_read(&build->answer, &why);
    if (refused == ERR_INTERNAL)
        fail_child(build, why.text);
    else if (refused)
        fail_step(build, refused, &why);
}

static void on_ended(struct process *process, const struct process_end *end)
{
    struct version_build *build = container_of(process, struct version_build, process);
    struct failure why = { 0 };
    build->runs = false;
    build->options->on_child(build->options->owner, build->pid, false);
    child_environment_finish(&build->environment);
    if (end->cause != PROCESS_EXITED || end->status != 0)
        fail_child(build, end->why);
    else if (is_unpacking(build))
        take_answer(build);
    else if (build->step == ASK &&
             program_version_check(&build->program_version, build->texts.manifest.runtime,
                                   build->program, &why))
        fail_build(build, "%s", why.text);
    next_step(build);
}

static const struct process_events child_events = { on_output, on_ended };

/* Returns false if the child could not be started; then the build has failed. */
static bool spawn(struct version_build *build, const char *const *arguments)
{
    struct failure why = { 0 };
    struct process_options options = {
        .program = is_unpacking(build) ? UNPACKER_PROGRAM : arguments[0],
        .arguments = arguments,
        .environment = child_environment_list(&build->environment),
        .directory = build->folder.new_path,
        .input_file = is_unpacking(build) ? bundle_file(build->bundle) : 0,
        .user = build->task.user,
        .limits = { .open_files = OPEN_FILES,
                    .processes = build->task.user.uid ? PROCESSES : 0 },
        .namespaces =
            build->options->apart ? PROCESS_NAMESPACES_ON : PROCESS_NAMESPACES_AUTO,
        .temporary = build->options->apart ? build->task.scratch : NULL,
        .cgroup = build->group[0] ? build->group : NULL,
        .oom_score_adj = BUILD_OOM_SCORE,
    };
    build_output_forget_errors(build->task.output);
    build->runs = process_spawn(build->options->processes, &build->process, &options,
                                &child_events, &why) == OK;
    if (build->runs) {
        build->pid = process_pid(&build->process);
        build->options->on_child(build->options->owner, build->pid, true);
    } else {
        child_environment_finish(&build->environment);
        fail_child(build, why.text);
    }
    return build->runs;
}

/* The environment is empty. */
static bool unpack(struct version_build *build, enum unpack_extent extent)
{
    const struct bundle_limits *limits = build->options->limits;
    struct unpack_order order = { extent, *limits, unpack_memory(limits) };
    char text[UNPACK_ORDER_MAX];
    const char *const arguments[] = { "runcast", UNPACKER_ROLE, text, NULL };
    unpack_order_write(&order, text);
    unpack_answer_finish(&build->answer);
    return spawn(build, arguments);
}

static struct build_home home_of(const struct version_build *build)
{
    return (struct build_home){ .directory = build->task.scratch,
                                .program = build->program,
                                .outer = build->options->outer,
                                .passed = build->options->passed };
}

static bool ask_program(struct version_build *build)
{
    const char *const arguments[] = { build->program, "--version", NULL };
    struct build_home home = home_of(build);
    build_environment_install(&build->environment, &home, build->task.job);
    return spawn(build, arguments);
}

static bool install(struct version_build *build)
{
    const char *scripts = build->options->no_scripts ? "--ignore-scripts" : NULL;
    const char *const npm[] = { "npm",       "i",         "--no-audit",
                                "--no-fund", "--no-save", "--no-package-lock",
                                scripts,     NULL };
    const char *const bun[] = { build->program, "install", "--production",
                                "--no-save",    scripts,   NULL };
    struct build_home home = home_of(build);
    build_environment_install(&build->environment, &home, build->task.job);
    return spawn(build, texts_name_bun(&build->texts) ? bun : npm);
}

static bool execute_command(struct version_build *build)
{
    const char *command = build->texts.containerfile.commands[build->command++];
    const char *const arguments[] = { "sh", "-c", command, NULL };
    struct build_home home = home_of(build);
    struct buf line = { 0 };
    buf_print(&line, "$ %s\n", command);
    build_output_add(build->task.output, buf_slice(&line));
    buf_finish(&line);
    build_environment_install(&build->environment, &home, build->task.job);
    return spawn(build, arguments);
}

static bool index_tasks(struct version_build *build)
{
    struct build_home home = home_of(build);
    char memory[64];
    struct buf entry = { 0 };
    uint64_t mebibytes = build->options->memory / MIB;
    snprintf(memory, sizeof(memory), "--max_old_space_size=%u",
             mebibytes && mebibytes < INDEX_MEMORY_MAX ? (unsigned)mebibytes
                                                       : INDEX_MEMORY_MAX);
    buf_print(&entry, "%s/%s", build->folder.new_path,
              build->texts.manifest.index_controller);
    buf_add_char(&entry, '\0');
    const char *const node[] = { build->program, memory, entry.ptr, NULL };
    const char *const bun[] = { build->program, "run", entry.ptr, NULL };
    build_environment_index(&build->environment, &home, build->task.job);
    bool begun = spawn(build, texts_name_bun(&build->texts) ? bun : node);
    buf_finish(&entry);
    return begun;
}

/* ---- the sequence ---- */

static void version_build_finish(struct version_build *build)
{
    bool stopped = is_stopped(build) && !build->placed;
    struct version_outcome outcome = {
        .ok = build->placed,
        .canceled = stopped && build->canceled,
        .index = buf_slice(&build->index),
        .bytes = build->bytes,
        .error = stopped ? "TimeoutError" : "BuildError",
        .message = stopped ? "the build timed out" : build->message,
        .errors = buf_slice(&build->errors),
    };
    version_build_done_fn *done = build->done;
    timers_clear(loop_timers(build->options->loop), &build->deadline);
    done(build->owner, &outcome);
    unpack_answer_finish(&build->answer);
    finish_texts(&build->texts);
    buf_finish(&build->index);
    buf_finish(&build->errors);
    free(build->program);
    free(build);
}

static void run_pool_step(struct work *work)
{
    struct version_build *build = container_of(work, struct version_build, work);
    build->status = pool_steps[build->step](build, &build->why);
}

static void on_worked(struct work *work)
{
    struct version_build *build = container_of(work, struct version_build, work);
    if (build->step == CLEAN) {
        version_build_finish(build);
        return;
    }
    if (!build->status && build->step == JUDGE)
        build->status = find_program(build, &build->why);
    if (build->status)
        fail_step(build, build->status, &build->why);
    next_step(build);
}

/* Returns false if there is nothing to do in this step. */
static bool run_step(struct version_build *build)
{
    switch (build->step) {
    case READ: return unpack(build, UNPACK_FIRST);
    case UNPACK: return unpack(build, UNPACK_ALL);
    case RENEW: return build->texts.containerfile.count && unpack(build, UNPACK_ALL);
    case ASK: return !texts_name_bun(&build->texts) && ask_program(build);
    case INSTALL: return build->texts.has_dependencies && install(build);
    case COMMANDS:
        return build->command < build->texts.containerfile.count && execute_command(build);
    case INDEX: return !build->task.index.ptr && index_tasks(build);
    default: break;
    }
    build->why = (struct failure){ 0 };
    build->work.run = run_pool_step;
    build->work.done = on_worked;
    work_begin(loop_uv(build->options->loop), &build->work,
               build->step == CLEAN ? WORK_REMOVAL : WORK_BUILD);
    return true;
}

static void begin_step(struct version_build *build, enum build_part step)
{
    build->step = step;
    while (!run_step(build)) {
        if (build->failed)
            build->step = CLEAN;
        else
            build->step++;
    }
}

static void next_step(struct version_build *build)
{
    bool ends = build->failed || (is_stopped(build) && !build->placed);
    if (ends)
        begin_step(build, CLEAN);
    else if (build->step == COMMANDS)
        begin_step(build, COMMANDS); /* the next command, if any */
    else
        begin_step(build, build->step + 1);
}

static void stop(struct version_build *build)
{
    if (build->step == HASH)
        bundle_cancel(build->bundle);
    work_stop(&build->work);
    if (build->runs)
        process_kill(&build->process, SIGKILL);
}

static void on_deadline(struct timer *timer)
{
    struct version_build *build = container_of(timer, struct version_build, deadline);
    build->overdue = true;
    stop(build);
}

struct version_build *version_build_begin(const struct version_build_options *options,
                                          const struct version_build_task *task,
                                          version_build_done_fn *done, void *owner)
{
    struct version_build *build = mem_new(struct version_build);
    build->options = options;
    build->task = *task;
    build->done = done;
    build->owner = owner;
    loop_set_timer(options->loop, &build->deadline,
                   timers_kind(loop_timers(options->loop), on_deadline),
                   task->job->deadline_ms);
    begin_step(build, OPEN);
    return build;
}

void version_build_cancel(struct version_build *build)
{
    build->canceled = true;
    stop(build);
}

enum version_build_step version_build_step(const struct version_build *build)
{
    return build->step < COMMANDS ? VERSION_BUILD_INSTALLING : VERSION_BUILD_BUILDING;
}
