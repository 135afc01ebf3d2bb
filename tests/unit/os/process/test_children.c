/* A child gets what was given to it and nothing else; its output and end are reported. */
#include "tests/support/world/unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/world/child_world.h"

enum { STRANGER = 12345, STRANGERS = 12346 };

static void run(struct job *job, struct process_options options)
{
    job_begin(job, &options);
    job_wait(job);
}

static void assert_ended(const struct job *job, enum process_cause cause, int status)
{
    if (job->end.cause != cause || job->end.status != status)
        fail_msg("%s", job->end.why);
}

static const char *output(const struct job *job)
{
    return job->output[PROCESS_STDOUT].ptr;
}

static void exit_code_is_reported(void **state)
{
    (void)state;
    static const char *const scripts[] = { "exit 0", "exit 1", "exit 7", "exit 255" };
    static const int codes[] = { 0, 1, 7, 255 };
    for (size_t i = 0; i < 4; i++) {
        struct job job = { 0 };
        run(&job, SHELL(scripts[i]));
        assert_ended(&job, PROCESS_EXITED, codes[i]);
        assert_int_equal(process_pid(&job.process), 0);
        job_finish(&job);
    }
}

static void signal_is_reported_with_and_without_a_namespace(void **state)
{
    (void)state;
    for (enum process_namespaces how = PROCESS_NAMESPACES_AUTO;
         how <= PROCESS_NAMESPACES_OFF; how++) {
        struct job job = { 0 };
        struct process_options options = SHELL("kill -SEGV $$");
        options.namespaces = how;
        run(&job, options);
        assert_ended(&job, PROCESS_SIGNALED, SIGSEGV);
        assert_string_equal(job.end.why, "it was ended by signal 11 (Segmentation fault)");
        job_finish(&job);
    }
}

static void outputs_are_separate_and_input_is_read(void **state)
{
    (void)state;
    struct job job = { 0 };
    struct process_options options = SHELL("cat; echo said; echo wrong >&2");
    options.input = SLICE("asked\n");
    run(&job, options);
    assert_string_equal(output(&job), "asked\nsaid\n");
    assert_string_equal(job.output[PROCESS_STDERR].ptr, "wrong\n");
    job_finish(&job);
    run(&job, SHELL("cat; echo end"));
    assert_string_equal(output(&job), "end\n");
    job_finish(&job);
}

static void standard_input_may_be_a_read_only_file(void **state)
{
    (void)state;
    struct job job = { 0 };
    char path[] = "/tmp/child-input-XXXXXX";
    int made = mkstemp(path), file = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(made >= 0 && file >= 0);
    assert_int_equal(write(made, "kept\n", 5), 5);
    close(made);
    struct process_options options = SHELL("cat; echo more >&0 || echo refused");
    options.input_file = file;
    run(&job, options);
    assert_string_equal(output(&job), "kept\nrefused\n");
    job_finish(&job);
    assert_int_equal(fcntl(file, F_GETFD), FD_CLOEXEC);
    close(file);
    options.input_file = file;
    struct failure why = { 0 };
    struct process process;
    assert_int_equal(process_spawn(child_world.processes, &process, &options,
                                   &(struct process_events){ 0 }, &why),
                     ERR_NO_ROOM);
    assert_string_equal(why.text, "cannot start a child process: Bad file descriptor");
    unlink(path);
}

static void child_has_the_given_environment(void **state)
{
    (void)state;
    struct job job = { 0 };
    setenv("RUNCAST_ENCRYPTION_KEY", "secret", 1);
    const char *const environment[] = { "A=1", "B=two words", "PATH=/usr/bin", NULL };
    const char *const arguments[] = { "env", NULL };
    struct process_options options = { .program = "env",
                                       .arguments = arguments,
                                       .environment = environment };
    run(&job, options);
    assert_string_equal(output(&job), "A=1\nB=two words\nPATH=/usr/bin\n");
    job_finish(&job);
    options.program = "/usr/bin/env";
    options.environment = NULL;
    run(&job, options);
    assert_string_equal(output(&job), "");
    job_finish(&job);
    unsetenv("RUNCAST_ENCRYPTION_KEY");
}

/* Nor do the keepers between the spawner and the program have the spawner's environment. */
static void keepers_have_no_environment(void **state)
{
    (void)state;
    char path[64], text[16];
    struct job job = { 0 };
    struct process_options options = SHELL("echo ready; sleep 1000");
    job_begin(&job, &options);
    job_wait_for(&job, "ready");
    snprintf(path, sizeof(path), "/proc/%d/environ", (int)process_pid(&job.process));
    int file = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(file >= 0);
    assert_int_equal(read(file, text, sizeof(text)), 0);
    close(file);
    process_kill(&job.process, SIGKILL);
    job_wait(&job);
    assert_ended(&job, PROCESS_SIGNALED, SIGKILL);
    job_finish(&job);
}

static void assert_has(const struct job *job, const char *line)
{
    char whole[128];
    snprintf(whole, sizeof(whole), "\n%s\n", line);
    if (!strstr(output(job), whole))
        fail_msg("no '%s' in:\n%s", line, output(job));
}

static void inspect(struct job *job, enum process_namespaces how)
{
    bool root = geteuid() == 0;
    const char *const arguments[] = { "test", "--inspect", NULL };
    const char *const environment[] = { "ONLY=this", NULL };
    struct process_options options = {
        .program = CHILD_SELF,
        .arguments = arguments,
        .environment = environment,
        .directory = "/usr",
        .limits = { .open_files = 300, .processes = 700 },
        .namespaces = how,
        .oom_score_adj = 500,
    };
    if (root)
        options.user = (struct process_user){ STRANGER, STRANGERS };
    run(job, options);
    assert_ended(job, PROCESS_EXITED, 0);
    if (root) {
        assert_has(job, "uid=12345 12345");
        assert_has(job, "gid=12346 12346");
        assert_has(job, "groups=0");
    }
}

static void child_has_only_what_it_was_given(void **state)
{
    (void)state;
    int inherited = open("/dev/null", O_RDONLY); /* without O_CLOEXEC */
    assert_true(inherited > 2);
    for (enum process_namespaces how = PROCESS_NAMESPACES_AUTO;
         how <= PROCESS_NAMESPACES_OFF; how++) {
        struct job job = { 0 };
        inspect(&job, how);
        assert_true(
            slice_starts(slice_of(output(&job)), "fd=0\nfd=1\nfd=2\nenv=ONLY=this\nuid="));
        assert_has(&job, "no_new_privs=1");
        assert_has(&job, "death_signal=9");
        assert_has(&job, "umask=027");
        assert_has(&job, "core=0");
        assert_has(&job, "nofile=300");
        assert_has(&job, "nproc=700");
        assert_has(&job, "cwd=/usr");
        assert_has(&job, "leader=1");
        assert_has(&job, "stderr opens=1");
        assert_has(&job, "SigIgn:\t0000000000000000");
        assert_has(&job, "SigBlk:\t0000000000000000");
        assert_has(&job, "oom=500");
        if (geteuid() == 0)
            assert_has(&job, "CapEff:\t0000000000000000");
        assert_int_equal(!!strstr(output(&job), "\npid=2\n"),
                         how != PROCESS_NAMESPACES_OFF);
        job_finish(&job);
    }
    close(inherited);
}

static void address_space_is_limited(void **state)
{
    (void)state;
    struct job job = { 0 };
    struct process_options options = SHELL("ulimit -v");
    options.limits.address_space = (uint64_t)512 << 20;
    run(&job, options);
    assert_string_equal(output(&job), "524288\n");
    job_finish(&job);
}

static void failed_execution_is_reported(void **state)
{
    (void)state;
    for (enum process_namespaces how = PROCESS_NAMESPACES_AUTO;
         how <= PROCESS_NAMESPACES_OFF; how++) {
        struct job job = { 0 };
        struct process_options options = SHELL("exit 0");
        options.namespaces = how;
        options.program = "/no/such/program";
        run(&job, options);
        assert_int_equal(job.end.cause, PROCESS_NOT_STARTED);
        assert_string_equal(job.end.why, "/no/such/program: No such file or directory");
        job_finish(&job);
        options.program = "no-such-program";
        run(&job, options);
        assert_string_equal(job.end.why, "no-such-program: No such file or directory");
        job_finish(&job);
        options.program = "sh";
        options.directory = "/no/such/folder";
        run(&job, options);
        assert_string_equal(job.end.why, "/no/such/folder: No such file or directory");
        job_finish(&job);
        options.directory = NULL;
        options.cgroup = "/no/such/group";
        run(&job, options);
        assert_string_equal(job.end.why,
                            "cannot enter the cgroup: No such file or directory");
        job_finish(&job);
    }
}

static void missing_launcher_is_rejected(void **state)
{
    (void)state;
    struct failure why;
    struct job job = { 0 };
    struct process_options options = SHELL("exit 0");
    struct processes *other = children_create(child_world.loop, "/no/such/launcher");
    assert_int_equal(process_spawn(other, &job.process, &options, NULL, &why), ERR_NO_ROOM);
    assert_string_equal(why.text,
                        "cannot start a child process: no such file or directory");
    assert_null(job.process.child);
    process_kill(&job.process, SIGKILL);
    child_world_turn(0);
    children_destroy(other);
}

/* Even if the deadline passes while the child is still being started. */
static void child_is_killed_at_its_deadline(void **state)
{
    (void)state;
    for (enum process_namespaces how = PROCESS_NAMESPACES_AUTO;
         how <= PROCESS_NAMESPACES_OFF; how++)
        for (int64_t deadline_ms = 1; deadline_ms <= 100; deadline_ms += 99) {
            struct job job = { 0 };
            struct process_options options = SHELL("trap '' TERM; sleep 1000");
            options.deadline_ms = deadline_ms;
            options.namespaces = how;
            run(&job, options);
            assert_ended(&job, PROCESS_SIGNALED, SIGKILL);
            assert_true(job.end.overdue);
            assert_string_equal(job.end.why,
                                "it was ended by signal 9 (Killed), at its deadline");
            job_finish(&job);
        }
}

static void paused_pipe_blocks_the_child(void **state)
{
    (void)state;
    enum { FLOOD = 20000000 };
    struct job job = { .pause_after = 1 };
    struct process_options options =
        SHELL("head -c 20000000 /dev/zero; echo done >&2; sleep 1000");
    job_begin(&job, &options);
    job_wait_for(&job, "");
    while (!job.output[PROCESS_STDOUT].len)
        child_world_turn(1000);
    size_t before = job.output[PROCESS_STDOUT].len;
    assert_true(before < 100000);
    for (int i = 0; i < 20; i++)
        child_world_turn(5);
    assert_int_equal(job.output[PROCESS_STDOUT].len, before);
    assert_int_equal(job.output[PROCESS_STDERR].len, 0);
    process_kill(&job.process, SIGKILL);
    for (int i = 0; i < 20; i++)
        child_world_turn(5);
    assert_false(job.ended); /* its output was not read */
    process_resume(&job.process, PROCESS_STDOUT);
    job_wait(&job);
    assert_true(job.output[PROCESS_STDOUT].len < 200000);
    job_finish(&job);

    options = SHELL("head -c 20000000 /dev/zero");
    run(&job, options);
    assert_int_equal(job.output[PROCESS_STDOUT].len, FLOOD + 1);
    job_finish(&job);
}

static void fifty_children_at_once_report_their_own_ends(void **state)
{
    (void)state;
    enum { JOBS = 50 };
    static struct job jobs[JOBS];
    static char scripts[JOBS][64];
    for (int i = 0; i < JOBS; i++) {
        snprintf(scripts[i], sizeof(scripts[i]), "echo %d; exit %d", i, i);
        struct process_options options = SHELL(scripts[i]);
        options.namespaces = i % 2 ? PROCESS_NAMESPACES_OFF : PROCESS_NAMESPACES_AUTO;
        job_begin(&jobs[i], &options);
    }
    for (int i = 0; i < JOBS; i++) {
        job_wait(&jobs[i]);
        assert_ended(&jobs[i], PROCESS_EXITED, i);
        assert_int_equal(strtol(output(&jobs[i]), NULL, 10), i);
        job_finish(&jobs[i]);
    }
}

static void signal_reaches_the_program_or_all_its_processes(void **state)
{
    (void)state;
    static const char script[] =
        "trap 'echo program; exit 3' TERM;"
        "(trap 'echo child; exit' TERM; echo up; while :; do sleep 0.01; done) & wait";
    for (enum process_namespaces how = PROCESS_NAMESPACES_AUTO;
         how <= PROCESS_NAMESPACES_OFF; how++)
        for (int alone = 0; alone < 2; alone++) {
            struct job job = { 0 };
            struct process_options options = SHELL(script);
            options.namespaces = how;
            job_begin(&job, &options);
            job_wait_for(&job, "up");
            if (alone)
                process_signal(&job.process, SIGTERM);
            else
                process_kill(&job.process, SIGTERM);
            job_wait(&job);
            assert_ended(&job, PROCESS_EXITED, 3);
            assert_non_null(strstr(output(&job), "program"));
            if (alone)
                assert_null(strstr(output(&job), "child"));
            job_finish(&job);
        }
}

static void write_text(const char *folder, const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void child_enters_its_cgroup_and_its_end_reports_memory(void **state)
{
    (void)state;
    char folder[] = "/tmp/runcast-group-XXXXXX", path[128], pid[16] = "";
    assert_non_null(mkdtemp(folder));
    write_text(folder, "cgroup.procs", "");
    write_text(folder, "memory.events", "low 0\noom 3\noom_kill 1\n");
    for (int kills = 1; kills <= 2; kills++) {
        struct job job = { 0 };
        struct process_options options = SHELL("echo ready; sleep 1000");
        options.cgroup = folder;
        job_begin(&job, &options);
        pid_t keeper = process_pid(&job.process);
        job_wait_for(&job, "ready");
        if (kills == 2)
            write_text(folder, "memory.events", "low 0\noom 4\noom_kill 2\n");
        process_kill(&job.process, SIGKILL);
        job_wait(&job);
        assert_int_equal(job.end.oom, kills == 2);
        snprintf(path, sizeof(path), "%s/cgroup.procs", folder);
        FILE *file = fopen(path, "re");
        assert_non_null(fgets(pid, sizeof(pid), file));
        fclose(file);
        assert_int_equal(strtol(pid, NULL, 10), keeper);
        job_finish(&job);
    }
    unlink(path);
    snprintf(path, sizeof(path), "%s/memory.events", folder);
    unlink(path);
    rmdir(folder);
}

static void ended_process_can_be_spawned_again(void **state)
{
    (void)state;
    struct job job = { 0 };
    for (int i = 0; i < 3; i++) {
        run(&job, SHELL("echo again"));
        assert_string_equal(output(&job), "again\n");
        job_finish(&job);
    }
}

#define TEST(name)                                                                         \
    cmocka_unit_test_setup_teardown(name, child_world_set_up, child_world_tear_down)

int main(int argc, char **argv)
{
    int status;
    if (child_world_role(argc, argv, &status))
        return status;
    const struct CMUnitTest tests[] = {
        TEST(exit_code_is_reported),
        TEST(signal_is_reported_with_and_without_a_namespace),
        TEST(outputs_are_separate_and_input_is_read),
        TEST(standard_input_may_be_a_read_only_file),
        TEST(child_has_the_given_environment),
        TEST(keepers_have_no_environment),
        TEST(child_has_only_what_it_was_given),
        TEST(address_space_is_limited),
        TEST(failed_execution_is_reported),
        TEST(missing_launcher_is_rejected),
        TEST(child_is_killed_at_its_deadline),
        TEST(paused_pipe_blocks_the_child),
        TEST(fifty_children_at_once_report_their_own_ends),
        TEST(signal_reaches_the_program_or_all_its_processes),
        TEST(child_enters_its_cgroup_and_its_end_reports_memory),
        TEST(ended_process_can_be_spawned_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
