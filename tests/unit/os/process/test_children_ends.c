/* Nothing of a child is left after it exited, or after its keeper or its spawner died. */
#include "tests/support/world/unit.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "tests/support/world/child_world.h"

enum { STRANGER = 12345 };

/* A duration for sleep that no other process uses. */
static char mark[32];

static void make_mark(void)
{
    static int count;
    snprintf(mark, sizeof(mark), "3%d.%07d", ++count, (int)getpid());
}

static struct process_options script_options(const char *script,
                                             enum process_namespaces how)
{
    static char variable[64];
    static const char *const environment[] = { "PATH=/usr/bin:/bin", variable, NULL };
    snprintf(variable, sizeof(variable), "MARK=%s", mark);
    struct process_options options = SHELL(script);
    options.environment = environment;
    options.namespaces = how;
    return options;
}

/* One process stays in the group, the other leaves it. */
#define LEAVES "setsid sleep $MARK & sleep $MARK & echo up; "

static void wait_for_marked(struct job *job, int count)
{
    job_wait_for(job, "up");
    while (child_count(mark) < count)
        child_world_turn(5);
}

static const enum process_namespaces ways[] = { PROCESS_NAMESPACES_AUTO,
                                                PROCESS_NAMESPACES_OFF };

static void processes_left_by_a_child_are_killed(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct job job = { 0 };
        make_mark();
        struct process_options options = script_options(LEAVES "read end; exit 4", ways[i]);
        job_begin(&job, &options);
        job_wait(&job);
        assert_int_equal(job.end.status, 4);
        assert_int_equal(child_count(mark), 0);
        job_finish(&job);
    }
}

static void killed_child_leaves_no_processes(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct job job = { 0 };
        make_mark();
        struct process_options options =
            script_options(LEAVES "trap '' TERM; while :; do wait; done", ways[i]);
        job_begin(&job, &options);
        wait_for_marked(&job, 2);
        process_kill(&job.process, SIGKILL);
        job_wait(&job);
        assert_int_equal(job.end.cause, PROCESS_SIGNALED);
        assert_int_equal(job.end.status, SIGKILL);
        assert_int_equal(child_count(mark), 0);
        job_finish(&job);
    }
}

/* Killed like this by the OOM killer, or by another process of the same user. */
static void killed_keeper_kills_its_child(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct job job = { 0 };
        make_mark();
        struct process_options options =
            script_options("sleep $MARK & sleep $MARK & echo up; wait", ways[i]);
        job_begin(&job, &options);
        wait_for_marked(&job, 2);
        kill(process_pid(&job.process), SIGKILL);
        job_wait(&job);
        assert_int_equal(job.end.cause, PROCESS_SIGNALED);
        assert_int_equal(job.end.status, SIGKILL);
        assert_true(child_none_is_left(mark));
        job_finish(&job);
    }
}

static void stopped_keeper_does_not_protect_its_child(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct job job = { 0 };
        make_mark();
        struct process_options options =
            script_options("sleep $MARK & sleep $MARK & echo up; wait", ways[i]);
        job_begin(&job, &options);
        wait_for_marked(&job, 2);
        kill(process_pid(&job.process), SIGSTOP);
        process_kill(&job.process, SIGKILL);
        job_wait(&job);
        assert_true(child_none_is_left(mark));
        job_finish(&job);
    }
}

/* --- roles ----------------------------------------------------------------------------- */

/* Like a container in which processes may not create namespaces. */
static void forbid_unshare(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unshare, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = { sizeof(code) / sizeof(*code), code };
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
        _exit(90);
}

/* Spawns a child that leaves its group and prints "up", then waits to be killed. */
static int be_spawner(enum process_namespaces how)
{
    struct job job = { 0 };
    struct process_options options = script_options(LEAVES "wait", how);
    child_world_set_up(NULL);
    job_begin(&job, &options);
    wait_for_marked(&job, 3); /* two that sleep, and the child */
    if (write(STDOUT_FILENO, "spawned", 7) != 7)
        return 1;
    job_wait(&job);
    return 1;
}

/* Runs children without a namespace; the exit status is the result. */
static int be_confined(void)
{
    struct job job = { 0 };
    struct process_options options = SHELL("echo $$");
    forbid_unshare();
    child_world_set_up(NULL);
    job_begin(&job, &options);
    job_wait(&job);
    if (job.end.cause != PROCESS_EXITED || job.end.status)
        return 91;
    if (strtol(job.output[PROCESS_STDOUT].ptr, NULL, 10) <= 2)
        return 92;
    options.namespaces = PROCESS_NAMESPACES_ON;
    job_begin(&job, &options);
    job_wait(&job);
    if (job.end.cause != PROCESS_NOT_STARTED)
        return 93;
    return strcmp(job.end.why, "no PID namespace: Operation not permitted") ? 94 : 0;
}

static int be_user(void)
{
    struct job job = { 0 };
    struct process_options options = SHELL("id -u; id -g");
    child_world_set_up(NULL);
    job_begin(&job, &options);
    job_wait(&job);
    if (strcmp(job.output[PROCESS_STDOUT].ptr, "12345\n12345\n"))
        return 95;
    options.user = (struct process_user){ STRANGER + 1, STRANGER };
    job_begin(&job, &options);
    job_wait(&job);
    if (job.end.cause != PROCESS_NOT_STARTED)
        return 96;
    return strcmp(job.end.why, "cannot become the user: Operation not permitted") ? 97 : 0;
}

static bool has_role(int argc, char **argv, int *status)
{
    if (argc < 3)
        return false;
    snprintf(mark, sizeof(mark), "%s", argv[2]);
    if (strcmp(argv[1], "--spawner-auto") == 0)
        *status = be_spawner(PROCESS_NAMESPACES_AUTO);
    else if (strcmp(argv[1], "--spawner-off") == 0)
        *status = be_spawner(PROCESS_NAMESPACES_OFF);
    else if (strcmp(argv[1], "--confined") == 0)
        *status = be_confined();
    else if (strcmp(argv[1], "--user") == 0)
        *status = be_user();
    else
        return false;
    return true;
}

/* Starts this program in another role, with its standard output at *said. */
static pid_t begin_role(const char *role, uid_t uid, int *said)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (!pid) {
        dup2(ends[1], STDOUT_FILENO);
        if (uid && (setresgid(uid, uid, uid) || setresuid(uid, uid, uid)))
            _exit(98);
        execl(CHILD_SELF, "role", role, mark, NULL);
        _exit(99);
    }
    close(ends[1]);
    *said = ends[0];
    return pid;
}

static int run_role(const char *role, uid_t uid)
{
    int said, status;
    pid_t pid = begin_role(role, uid, &said);
    waitpid(pid, &status, 0);
    close(said);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void kill_spawner(const char *role, uid_t uid)
{
    char text[8] = "";
    int said;
    make_mark();
    pid_t pid = begin_role(role, uid, &said);
    assert_int_equal(read(said, text, 7), 7);
    assert_string_equal(text, "spawned");
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(said);
    assert_true(child_none_is_left(mark));
}

static void killed_spawner_leaves_no_processes(void **state)
{
    (void)state;
    kill_spawner("--spawner-auto", 0);
    kill_spawner("--spawner-off", 0);
}

static void killed_spawner_without_root_leaves_no_processes(void **state)
{
    (void)state;
    kill_spawner("--spawner-auto", geteuid() ? 0 : STRANGER);
    kill_spawner("--spawner-off", geteuid() ? 0 : STRANGER);
}

static void without_permission_there_is_no_namespace_or_no_child(void **state)
{
    (void)state;
    assert_int_equal(run_role("--confined", 0), 0);
    assert_int_equal(run_role("--confined", geteuid() ? 0 : STRANGER), 0);
}

static void spawner_without_root_keeps_its_user(void **state)
{
    (void)state;
    if (geteuid() == 0)
        assert_int_equal(run_role("--user", STRANGER), 0);
}

#define TEST(name)                                                                         \
    cmocka_unit_test_setup_teardown(name, child_world_set_up, child_world_tear_down)

int main(int argc, char **argv)
{
    int status;
    if (child_world_role(argc, argv, &status))
        return status;
    if (has_role(argc, argv, &status))
        _exit(status);
    const struct CMUnitTest tests[] = {
        TEST(processes_left_by_a_child_are_killed),
        TEST(killed_child_leaves_no_processes),
        TEST(killed_keeper_kills_its_child),
        TEST(stopped_keeper_does_not_protect_its_child),
        TEST(killed_spawner_leaves_no_processes),
        TEST(killed_spawner_without_root_leaves_no_processes),
        TEST(without_permission_there_is_no_namespace_or_no_child),
        TEST(spawner_without_root_keeps_its_user),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
