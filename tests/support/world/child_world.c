/* child_world.c - runs jobs until they have finished, and finds what remains of them. */
#include "tests/support/world/child_world.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "base/mem.h"
#include "os/process/launch.h"
#include "supervisor/versions/unpacker.h"
#include "tests/support/world/unit.h"

extern char **environ;

struct child_world child_world;

static uv_loop_t uv;
static uv_timer_t guard;

int child_world_set_up(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN); /* as the gateway does: children must not inherit it */
    if (uv_loop_init(&uv))
        return -1;
    uv_timer_init(&uv, &guard);
    child_world.loop = loop_create(&uv);
    child_world.processes = children_create(child_world.loop, NULL);
    return 0;
}

int child_world_tear_down(void **state)
{
    (void)state;
    children_destroy(child_world.processes);
    loop_destroy(child_world.loop);
    uv_close((uv_handle_t *)&guard, NULL);
    uv_run(&uv, UV_RUN_DEFAULT);
    return uv_loop_close(&uv);
}

static void on_guard(uv_timer_t *timer)
{
    (void)timer;
}

/* The guard repeats: on a busy machine a one-shot timer that is due when the turn begins
 * would fire before the turn waits, which would then wait without an end. */
void child_world_turn(int64_t ms)
{
    uv_timer_start(&guard, on_guard, (uint64_t)ms, ms ? (uint64_t)ms : 1);
    uv_run(&uv, UV_RUN_ONCE);
    uv_timer_stop(&guard);
}

/* ---- jobs ---- */

static void on_output(struct process *process, enum process_pipe pipe, struct slice text)
{
    struct job *job = container_of(process, struct job, process);
    buf_add(&job->output[pipe], text);
    if (job->pause_after && job->output[PROCESS_STDOUT].len >= job->pause_after) {
        job->pause_after = 0;
        process_pause(process, pipe);
    }
}

static void on_ended(struct process *process, const struct process_end *end)
{
    struct job *job = container_of(process, struct job, process);
    assert_false(job->ended);
    job->ended = true;
    job->end = *end;
}

static const struct process_events events = { on_output, on_ended };

struct process_options child_shell(const char *const arguments[4])
{
    static const char *const environment[] = { "PATH=/usr/bin:/bin", NULL };
    static const char *kept[4];
    memcpy(kept, arguments, sizeof(kept));
    return (struct process_options){
        .program = "sh",
        .arguments = kept,
        .environment = environment,
    };
}

void job_begin(struct job *job, const struct process_options *options)
{
    struct failure why = { 0 };
    size_t pause_after = job->pause_after;
    *job = (struct job){ .pause_after = pause_after };
    if (process_spawn(child_world.processes, &job->process, options, &events, &why))
        fail_msg("%s", why.text);
    assert_false(job->ended);
}

void job_wait(struct job *job)
{
    int64_t begin = loop_now_ms(child_world.loop);
    while (!job->ended) {
        child_world_turn(1000);
        if (loop_now_ms(child_world.loop) - begin > 60000)
            fail_msg("the child does not end");
    }
    for (int i = 0; i < 2; i++)
        buf_add_char(&job->output[i], '\0');
}

void job_wait_for(struct job *job, const char *text)
{
    const struct buf *output = &job->output[PROCESS_STDOUT];
    while (!output->len || !memmem(output->ptr, output->len, text, strlen(text))) {
        if (job->ended)
            fail_msg("the child ended before it wrote '%s': %s", text, job->end.why);
        child_world_turn(1000);
    }
}

void job_finish(struct job *job)
{
    buf_finish(&job->output[0]);
    buf_finish(&job->output[1]);
}

/* ---- remaining processes ---- */

static bool has_mark(const char *pid, const char *mark)
{
    char path[300], text[4096];
    snprintf(path, sizeof(path), "/proc/%s/cmdline", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = file >= 0 ? read(file, text, sizeof(text)) : 0;
    if (file >= 0)
        close(file);
    return len > 0 && memmem(text, (size_t)len, mark, strlen(mark));
}

int child_count(const char *mark)
{
    int count = 0;
    DIR *processes = opendir("/proc");
    for (struct dirent *entry; (entry = readdir(processes));)
        count += entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
                 has_mark(entry->d_name, mark);
    closedir(processes);
    return count;
}

bool child_none_is_left(const char *mark)
{
    int64_t begin = loop_now_ms(child_world.loop);
    while (child_count(mark)) {
        if (loop_now_ms(child_world.loop) - begin > 10000)
            return false;
        child_world_turn(10);
    }
    return true;
}

/* ---- roles ---- */

static void show_limit(const char *name, int resource)
{
    struct rlimit limit;
    getrlimit((__rlimit_resource_t)resource, &limit);
    printf("%s=%lld\n", name, (long long)limit.rlim_cur);
}

static void show_line(const char *file, const char *name)
{
    char line[256];
    FILE *status = fopen(file, "re");
    while (status && fgets(line, sizeof(line), status))
        if (strncmp(line, name, strlen(name)) == 0)
            printf("%s", line);
    if (status)
        fclose(status);
}

/* Descriptors first: this program has opened none of its own yet. */
static int inspect(void)
{
    char folder[256] = "";
    mode_t mask = umask(0);
    for (int fd = 0; fd < 4096; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            printf("fd=%d\n", fd);
    for (char **variable = environ; *variable; variable++)
        printf("env=%s\n", *variable);
    printf("uid=%d %d\ngid=%d %d\ngroups=%d\n", (int)getuid(), (int)geteuid(),
           (int)getgid(), (int)getegid(), getgroups(0, NULL));
    printf("no_new_privs=%d\n", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
    int death_signal = 0;
    prctl(PR_GET_PDEATHSIG, &death_signal);
    printf("death_signal=%d\numask=%03o\n", death_signal, mask);
    show_limit("core", RLIMIT_CORE);
    show_limit("nofile", RLIMIT_NOFILE);
    show_limit("nproc", RLIMIT_NPROC);
    show_limit("as", RLIMIT_AS);
    printf("cwd=%s\n", getcwd(folder, sizeof(folder)));
    printf("leader=%d\n", getsid(0) == getpid() && getpgrp() == getpid());
    printf("pid=%d\n", (int)getpid());
    printf("stderr opens=%d\n", open("/dev/stderr", O_WRONLY | O_CLOEXEC) >= 0);
    show_line("/proc/self/status", "SigIgn");
    show_line("/proc/self/status", "SigBlk");
    show_line("/proc/self/status", "CapEff");
    FILE *score = fopen("/proc/self/oom_score_adj", "re");
    char text[16] = "";
    printf("oom=%s", fgets(text, sizeof(text), score));
    fflush(stdout);
    _exit(0);
}

bool child_world_role(int argc, char **argv, int *status)
{
    if (launch_is_asked_for(argc, argv)) {
        *status = launch_run();
        return true;
    }
    if (unpacker_is_asked_for(argc, argv)) {
        *status = unpacker_run(argv[2]);
        return true;
    }
    if (argc == 2 && strcmp(argv[1], "--inspect") == 0) {
        *status = inspect();
        return true;
    }
    return false;
}
