/* The process that reads archives, with real children: answers, files and sandbox. The
 * gateway's side must also survive false answers. */
#include "tests/support/world/unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "supervisor/versions/unpack_answer.h"
#include "supervisor/versions/unpacker.h"
#include "tests/support/world/child_world.h"
#include "tests/support/world/tar_maker.h"

enum { STRANGER = 12345, MIB = 1 << 20 };

struct scene {
    char folder[64];
    struct buf tar;
    struct bundle *bundle;
    struct unpack_order order;
    struct job job;
    struct unpack_answer answer;
    struct failure why;
};

static void scene_begin(struct scene *scene, enum unpack_extent extent)
{
    *scene = (struct scene){ .folder = "/tmp/unpacker-XXXXXX" };
    assert_non_null(mkdtemp(scene->folder));
    if (geteuid() == 0)
        assert_int_equal(chown(scene->folder, STRANGER, STRANGER), 0);
    scene->order = (struct unpack_order){ extent, bundle_limits_default,
                                          unpack_memory(&bundle_limits_default) };
}

static void scene_add_bundle(struct scene *scene)
{
    tar_add_file(&scene->tar, "build.json", "the manifest");
    tar_add_file(&scene->tar, "Containerfile", "the commands");
    tar_add_file(&scene->tar, "package.json", "the package");
    tar_add_file(&scene->tar, "src/tasks.mjs", "tasks");
}

static void scene_start(struct scene *scene)
{
    static const char *arguments[] = { UNPACKER_PROGRAM, UNPACKER_ROLE, NULL, NULL };
    char order[UNPACK_ORDER_MAX];
    struct buf packed = { 0 };
    tar_end(&scene->tar);
    tar_gzip(buf_slice(&scene->tar), &packed);
    scene->bundle = tar_open(buf_slice(&packed), &bundle_limits_default);
    buf_finish(&packed);
    unpack_order_write(&scene->order, order);
    arguments[2] = order;
    struct process_options options = { .program = UNPACKER_PROGRAM,
                                       .arguments = arguments,
                                       .directory = scene->folder,
                                       .input_file = bundle_file(scene->bundle) };
    if (geteuid() == 0)
        options.user = (struct process_user){ STRANGER, STRANGER };
    job_begin(&scene->job, &options);
}

static enum err scene_wait(struct scene *scene)
{
    struct slice written;
    job_wait(&scene->job);
    written = buf_slice(&scene->job.output[PROCESS_STDOUT]);
    written.len--; /* the NUL that job_wait adds */
    unpack_answer_add(&scene->answer, written);
    return unpack_answer_read(&scene->answer, &scene->why);
}

static void scene_end(struct scene *scene)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", scene->folder);
    assert_int_equal(system(command), 0);
    unpack_answer_finish(&scene->answer);
    job_finish(&scene->job);
    bundle_close(scene->bundle);
    buf_finish(&scene->tar);
}

static void assert_written(const struct scene *scene, const char *name, const char *content)
{
    char path[128], text[64] = "";
    struct stat found;
    snprintf(path, sizeof(path), "%s/%s", scene->folder, name);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof(text), file));
    assert_int_equal(fstat(fileno(file), &found), 0);
    fclose(file);
    assert_string_equal(text, content);
    assert_int_equal(found.st_mode & 07777, 0644);
    assert_int_equal(found.st_uid, geteuid() ? geteuid() : STRANGER);
}

static bool is_there(const struct scene *scene, const char *name)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", scene->folder, name);
    return access(path, F_OK) == 0;
}

static void assert_file(const struct scene *scene, enum unpack_file file, const char *text)
{
    assert_true(slice_is(scene->answer.files[file], text));
}

/* --- its work -------------------------------------------------------------------------- */

static void unpacker_answers_with_texts_and_unpacks_the_first_files(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene, UNPACK_FIRST);
    scene_add_bundle(&scene);
    scene_start(&scene);
    assert_int_equal(scene_wait(&scene), OK);
    assert_file(&scene, UNPACK_MANIFEST, "the manifest");
    assert_file(&scene, UNPACK_CONTAINERFILE, "the commands");
    assert_file(&scene, UNPACK_PACKAGE, "the package");
    assert_written(&scene, "package.json", "the package");
    assert_written(&scene, "build.json", "the manifest");
    assert_false(is_there(&scene, "Containerfile"));
    assert_false(is_there(&scene, "src"));
    scene_end(&scene);
}

static void missing_files_are_omitted_from_the_answer(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene, UNPACK_FIRST);
    tar_add_file(&scene.tar, "package.json", "");
    scene_start(&scene);
    assert_int_equal(scene_wait(&scene), OK);
    assert_null(scene.answer.files[UNPACK_MANIFEST].ptr);
    assert_null(scene.answer.files[UNPACK_CONTAINERFILE].ptr);
    assert_non_null(scene.answer.files[UNPACK_PACKAGE].ptr);
    assert_int_equal(scene.answer.files[UNPACK_PACKAGE].len, 0);
    scene_end(&scene);
}

static void everything_is_unpacked(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene, UNPACK_ALL);
    scene_add_bundle(&scene);
    scene_start(&scene);
    assert_int_equal(scene_wait(&scene), OK);
    assert_null(scene.answer.files[UNPACK_MANIFEST].ptr);
    assert_written(&scene, "build.json", "the manifest");
    assert_written(&scene, "src/tasks.mjs", "tasks");
    scene_end(&scene);
}

static void limits_of_the_order_are_enforced(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene, UNPACK_FIRST);
    scene.order.limits.files_max = 3;
    scene_add_bundle(&scene);
    scene_start(&scene);
    assert_int_equal(scene_wait(&scene), ERR_INVALID);
    assert_string_equal(scene.why.text,
                        "too many files and folders (max 3, setting deploy-files)");
    assert_false(is_there(&scene, "package.json"));
    scene_end(&scene);
}

static void link_is_rejected_with_a_reason(void **state)
{
    (void)state;
    struct scene scene;
    struct tar_entry link = { .name = "etc", .type = '2', .link = "/etc" };
    scene_begin(&scene, UNPACK_ALL);
    tar_add(&scene.tar, &link);
    scene_start(&scene);
    assert_int_equal(scene_wait(&scene), ERR_INVALID);
    assert_string_equal(scene.why.text, "\"etc\" is a link");
    scene_end(&scene);
}

/* --- its sandbox ----------------------------------------------------------------------- */

/* Starts with a file that does not fit into a pipe: the unpacker waits until it is read. */
static void scene_start_waiting(struct scene *scene)
{
    struct buf large = { 0 };
    memset(buf_reserve(&large, 2 * MIB), 'm', 2 * MIB);
    large.len = 2 * MIB;
    tar_add(&scene->tar,
            &(struct tar_entry){ .name = "build.json", .content = buf_slice(&large) });
    buf_finish(&large);
    scene->job.pause_after = 64; /* after the length */
    scene_start(scene);
    job_wait_for(&scene->job, "build.json 2097152\nmmm");
}

/* Returns 0 if the process has ended. */
static pid_t parent_of(pid_t pid)
{
    char path[64], text[512];
    int parent = 0;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    size_t len = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[len] = '\0';
    const char *name_end = strrchr(text, ')');
    return name_end && sscanf(name_end, ") %*c %d", &parent) == 1 ? parent : 0;
}

/* Other programs, which run at the same time, have unpackers, too. */
static bool is_descendant(pid_t pid)
{
    while (pid > 1 && pid != getpid())
        pid = parent_of(pid);
    return pid == getpid();
}

/* Returns our process executed as the unpacker; the launchers have another argument. */
static pid_t find_unpacker(void)
{
    pid_t found = 0;
    DIR *all = opendir("/proc");
    for (struct dirent *entry; (entry = readdir(all));) {
        char path[300], text[256];
        snprintf(path, sizeof(path), "/proc/%s/cmdline", entry->d_name);
        int file = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t len = file >= 0 ? read(file, text, sizeof(text)) : 0;
        if (file >= 0)
            close(file);
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (len > 0 && memmem(text, (size_t)len, UNPACKER_ROLE, strlen(UNPACKER_ROLE)) &&
            is_descendant(pid))
            found = pid;
    }
    closedir(all);
    return found;
}

static void assert_says(pid_t pid, const char *name, const char *line)
{
    char path[64], text[8192];
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = read(file, text, sizeof(text) - 1);
    assert_true(file >= 0 && len > 0);
    text[len] = '\0';
    close(file);
    if (!strstr(text, line))
        fail_msg("no '%s' in %s", line, text);
}

static void archive_is_read_in_a_sandbox(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene, UNPACK_FIRST);
    scene_start_waiting(&scene);
    pid_t pid = find_unpacker();
    assert_true(pid > 0);
    assert_says(pid, "status", "NoNewPrivs:\t1\n");
    assert_says(pid, "status", "Seccomp:\t2\n");
    if (geteuid() == 0) {
        assert_says(pid, "status", "Uid:\t12345\t12345\t12345\t12345\n");
        assert_says(pid, "status", "CapEff:\t0000000000000000\n");
    }
    process_resume(&scene.job.process, PROCESS_STDOUT);
    assert_int_equal(scene_wait(&scene), OK);
    assert_int_equal(scene.answer.files[UNPACK_MANIFEST].len, 2 * MIB);
    scene_end(&scene);
}

static void killed_unpacker_gives_no_answer(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene, UNPACK_FIRST);
    scene_start_waiting(&scene);
    process_kill(&scene.job.process, SIGKILL);
    process_resume(&scene.job.process, PROCESS_STDOUT);
    assert_int_equal(scene_wait(&scene), ERR_INTERNAL);
    assert_int_equal(scene.job.end.cause, PROCESS_SIGNALED);
    assert_int_equal(find_unpacker(), 0);
    scene_end(&scene);
}

static void role_is_rejected_without_order_or_archive(void **state)
{
    (void)state;
    static const char *const orders[] = { "",
                                          "first",
                                          "some 1 1 1 1",
                                          "first 1 1 1",
                                          "first 1 1 1 1 1",
                                          "first 1 -1 1 1",
                                          "all 20000 1073741824 200 1000000" };
    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        struct job job = { 0 };
        const char *const arguments[] = { UNPACKER_PROGRAM, UNPACKER_ROLE, orders[i],
                                          NULL };
        struct process_options options = { .program = UNPACKER_PROGRAM,
                                           .arguments = arguments };
        job_begin(&job, &options);
        job_wait(&job);
        assert_int_equal(job.end.status, 2);
        assert_string_equal(job.output[PROCESS_STDERR].ptr,
                            "runcast: --unpack is for runcast itself\n");
        job_finish(&job);
    }
}

/* --- answers --------------------------------------------------------------------------- */

static enum err read_answer(const char *text, struct unpack_answer *answer,
                            struct failure *why)
{
    unpack_answer_finish(answer);
    unpack_answer_add(answer, slice_of(text));
    return unpack_answer_read(answer, why);
}

static void malformed_answers_are_rejected(void **state)
{
    (void)state;
    static const char *const invalid[] = {
        "",
        "done",
        "done \n",
        "done 0",
        "done 0\nx",
        "done 1\n",
        "done 0\ndone 0\n",
        "build.json 2\n{}",
        "build.json 2\n{}refused 3\nno",
        "build.json 2\n{}build.json 2\n{}done 0\n",
        "build.json 18446744073709551615\n{}done 0\n",
        "build.json -1\n{}done 0\n",
        "index.json 2\n{}done 0\n",
        "full 400\n",
    };
    struct unpack_answer answer = { 0 };
    struct failure why = { 0 };
    for (size_t i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++) {
        assert_int_equal(read_answer(invalid[i], &answer, &why), ERR_INTERNAL);
        assert_string_equal(why.text, "its response is invalid");
    }
    assert_int_equal(read_answer("package.json 2\n{}done 0\n", &answer, &why), OK);
    assert_file(&(struct scene){ .answer = answer }, UNPACK_PACKAGE, "{}");
    assert_int_equal(read_answer("full 4\nfull", &answer, &why), ERR_STORE_FULL);
    assert_string_equal(why.text, "full");
    assert_int_equal(read_answer("refused 7\nno\xff way", &answer, &why), ERR_INVALID);
    assert_string_equal(why.text, "no? way");
    unpack_answer_finish(&answer);
}

static void endless_answer_is_dropped(void **state)
{
    (void)state;
    struct unpack_answer answer = { 0 };
    struct failure why = { 0 };
    char *piece = mem_alloc(MIB);
    unpack_answer_add(&answer, SLICE("done 0\n"));
    for (int i = 0; i < 100; i++)
        unpack_answer_add(&answer, (struct slice){ piece, MIB });
    assert_true(answer.too_long);
    assert_true(answer.bytes.len < 30 * (size_t)MIB);
    assert_int_equal(unpack_answer_read(&answer, &why), ERR_INTERNAL);
    unpack_answer_finish(&answer);
    free(piece);
}

int main(int argc, char **argv)
{
    int status;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unpacker_answers_with_texts_and_unpacks_the_first_files),
        cmocka_unit_test(missing_files_are_omitted_from_the_answer),
        cmocka_unit_test(everything_is_unpacked),
        cmocka_unit_test(limits_of_the_order_are_enforced),
        cmocka_unit_test(link_is_rejected_with_a_reason),
        cmocka_unit_test(archive_is_read_in_a_sandbox),
        cmocka_unit_test(killed_unpacker_gives_no_answer),
        cmocka_unit_test(role_is_rejected_without_order_or_archive),
        cmocka_unit_test(malformed_answers_are_rejected),
        cmocka_unit_test(endless_answer_is_dropped),
    };
    if (child_world_role(argc, argv, &status))
        return status;
    return cmocka_run_group_tests_name("unpacker", tests, child_world_set_up,
                                       child_world_tear_down);
}
