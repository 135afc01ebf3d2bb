/* children.c - spawns launchers, reads their pipes, and detects when nothing is left.
 *
 *   spawn ─► keeper and pipes exist ─► keeper ended ─┐
 *                                      pipes ended ──┴─► handles closed ─► on_ended
 *
 * A process that left the group (possible without a namespace) may hold a pipe open. Such a
 * pipe is read for REST_MS after the keeper has ended. */
#include "os/process/children.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
#include <uv.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "os/process/cgroup.h"
#include "os/process/keeper.h"
#include "os/process/launch.h"
#include "os/process/launch_order.h"

enum {
    READ_SIZE = 16384,
    REPORT_MAX = 4096,
    REST_MS = 1000,
    KEEPER_MS = 2000, /* for a keeper to kill everything and exit; then: SIGKILL */
    NOTES_MAX = 4,
    REPORT = 2, /* in child::pipes, after enum process_pipe */
    PIPES
};

struct child_driver {
    struct processes processes;
    struct loop *loop;
    char *launcher;
    uint32_t on_deadline, on_keeper, on_rest; /* kinds of timers */
    size_t count;                             /* of children */
    char *notes[NOTES_MAX];                   /* notes of launchers that were logged */
    char text[READ_SIZE];                     /* of the pipe that is being read */
};

struct child_pipe {
    uv_pipe_t handle;
    struct child *child;
    bool paused, ended;
};

struct child {
    struct child_driver *children;
    struct process *process;
    uv_process_t keeper;
    struct child_pipe pipes[PIPES];
    struct timer deadline, keeper_deadline, rest;
    struct buf report;
    char *cgroup;
    uint64_t oom_kills; /* of the group, before this child */
    pid_t group;        /* of the program, without a namespace; 0: unknown */
    int handles;        /* open ones */
    int signal;         /* the last one sent; 0: none */
    bool keeper_ended, end_reported, closing;
    int keeper_status, keeper_signal; /* how the keeper ended */
    struct process_end end;
};

/* --- the end
 * --------------------------------------------------------------------------- */

static void explain_end(struct process_end *end)
{
    const char *because = end->oom       ? ", out of memory"
                          : end->overdue ? ", at its deadline"
                                         : "";
    if (end->cause == PROCESS_EXITED)
        snprintf(end->why, sizeof(end->why), "it ended with exit code %d%s", end->status,
                 because);
    else if (end->cause == PROCESS_SIGNALED)
        snprintf(end->why, sizeof(end->why), "it was ended by signal %d (%s)%s",
                 end->status, strsignal(end->status), because);
}

static void child_finish(struct child *child)
{
    struct process *process = child->process;
    struct process_end end = child->end;
    uint64_t oom_kills = 0;
    if (child->cgroup && cgroup_oom_kills(child->cgroup, &oom_kills) == OK)
        end.oom = oom_kills > child->oom_kills;
    explain_end(&end);
    timers_clear(loop_timers(child->children->loop), &child->deadline);
    timers_clear(loop_timers(child->children->loop), &child->keeper_deadline);
    timers_clear(loop_timers(child->children->loop), &child->rest);
    child->children->count--;
    buf_finish(&child->report);
    free(child->cgroup);
    free(child);
    if (!process)
        return; /* never started: there is nothing to report */
    process->child = NULL;
    process->events->on_ended(process, &end);
}

static void on_closed(struct child *child)
{
    if (--child->handles == 0)
        child_finish(child);
}

static void on_pipe_closed(uv_handle_t *handle)
{
    on_closed(container_of((uv_pipe_t *)handle, struct child_pipe, handle)->child);
}

static void on_keeper_closed(uv_handle_t *handle)
{
    on_closed(container_of((uv_process_t *)handle, struct child, keeper));
}

static void end_pipe(struct child_pipe *pipe)
{
    if (pipe->ended)
        return;
    pipe->ended = true;
    uv_close((uv_handle_t *)&pipe->handle, on_pipe_closed);
}

/* Closes the keeper's handle, the last one, once everything has ended. */
static void maybe_ended(struct child *child)
{
    if (child->closing || !child->keeper_ended)
        return;
    for (int i = 0; i < PIPES; i++)
        if (!child->pipes[i].ended)
            return;
    child->closing = true;
    uv_close((uv_handle_t *)&child->keeper, on_keeper_closed);
}

static void on_rest(struct timer *timer)
{
    struct child *child = container_of(timer, struct child, rest);
    for (int i = 0; i < PIPES; i++)
        if (!child->pipes[i].paused)
            end_pipe(&child->pipes[i]);
    maybe_ended(child);
}

static void wait_for_rest(struct child *child)
{
    loop_set_timer(child->children->loop, &child->rest, child->children->on_rest, REST_MS);
}

/* Returns the signal that ended the keeper. A keeper that is still starting dies of the
 * SIGTERM that carries a signal for its program; that signal is returned then. */
static int signal_of_end(const struct child *child)
{
    return child->keeper_signal == SIGTERM && child->signal ? child->signal
                                                            : child->keeper_signal;
}

/* Handles a keeper that was killed before it reported the program's end. The group must
 * then still be killed. */
static void maybe_report_end(struct child *child)
{
    if (!child->keeper_ended || !child->pipes[REPORT].ended || child->end_reported ||
        child->end.cause == PROCESS_NOT_STARTED)
        return;
    child->end_reported = true;
    child->end.cause = child->keeper_signal ? PROCESS_SIGNALED : PROCESS_EXITED;
    child->end.status = child->keeper_signal ? signal_of_end(child) : child->keeper_status;
    if (child->group)
        kill(-child->group, SIGKILL);
}

static void on_keeper_exit(uv_process_t *keeper, int64_t status, int signal)
{
    struct child *child = container_of(keeper, struct child, keeper);
    child->keeper_ended = true;
    child->keeper_status = (int)status;
    child->keeper_signal = signal;
    if (child->cgroup)
        cgroup_kill(child->cgroup);
    maybe_report_end(child);
    wait_for_rest(child);
    maybe_ended(child);
}

/* --- signals
 * --------------------------------------------------------------------------- */

static void on_keeper_late(struct timer *timer)
{
    struct child *child = container_of(timer, struct child, keeper_deadline);
    if (!child->keeper_ended)
        kill(child->keeper.pid, SIGKILL);
}

static void set_keeper_deadline(struct child *child)
{
    if (!child->keeper_deadline.place)
        loop_set_timer(child->children->loop, &child->keeper_deadline,
                       child->children->on_keeper, KEEPER_MS);
}

static void send_signal(struct process *process, int signal, bool alone)
{
    struct child *child = process->child;
    union sigval value = { .sival_int = keeper_value(signal, alone) };
    if (child->keeper_ended)
        return;
    child->signal = signal;
    sigqueue(child->keeper.pid, SIGTERM, value);
    if (signal == SIGKILL)
        set_keeper_deadline(child);
}

static void on_deadline(struct timer *timer)
{
    struct child *child = container_of(timer, struct child, deadline);
    if (child->keeper_ended || child->end_reported)
        return;
    child->end.overdue = true;
    send_signal(child->process, SIGKILL, false);
}

/* --- input --------------------------------------------------------------------------- */

/* Logs once what all children of this machine lack. */
static void tell_note(struct child_driver *children, struct slice note)
{
    for (int i = 0; i < NOTES_MAX; i++) {
        if (children->notes[i] && slice_is(note, children->notes[i]))
            return;
        if (!children->notes[i]) {
            children->notes[i] = mem_text(note);
            log_warn("a child process is not fully isolated", "reason", children->notes[i],
                     NULL);
            return;
        }
    }
}

static void take_line(struct child *child, struct slice line)
{
    struct slice word;
    int64_t number = 0;
    slice_split(&line, ' ', &word);
    if (slice_is(word, "note")) {
        tell_note(child->children, line);
        return;
    }
    if (slice_is(word, "error")) {
        child->end.cause = PROCESS_NOT_STARTED;
        snprintf(child->end.why, sizeof(child->end.why), "%.*s", SLICE_ARG(line));
        return;
    }
    if (text_to_i64(line, &number))
        return;
    if (slice_is(word, "program")) {
        child->group = (pid_t)number;
        return;
    }
    child->end_reported = true;
    set_keeper_deadline(child);
    if (child->end.cause == PROCESS_NOT_STARTED)
        return; /* the exit code is the launcher's */
    child->end.cause = slice_is(word, "signal") ? PROCESS_SIGNALED : PROCESS_EXITED;
    child->end.status = (int)number;
}

static void take_report(struct child *child, struct slice text)
{
    if (child->report.len + text.len > REPORT_MAX)
        return;
    buf_add(&child->report, text);
    for (;;) {
        struct slice rest = buf_slice(&child->report), line;
        slice_split(&rest, '\n', &line);
        if (!rest.ptr)
            return;
        take_line(child, line);
        buf_drop(&child->report, line.len + 1);
    }
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *place)
{
    struct child_pipe *pipe = container_of((uv_pipe_t *)handle, struct child_pipe, handle);
    (void)suggested;
    *place = uv_buf_init(pipe->child->children->text, READ_SIZE);
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *place)
{
    struct child_pipe *pipe = container_of((uv_pipe_t *)stream, struct child_pipe, handle);
    struct child *child = pipe->child;
    if (got < 0) {
        end_pipe(pipe);
        maybe_report_end(child);
        maybe_ended(child);
        return;
    }
    struct slice text = { place->base, (size_t)got };
    enum process_pipe which = (enum process_pipe)(pipe - child->pipes);
    if (pipe == &child->pipes[REPORT])
        take_report(child, text);
    else if (got && child->process->events->on_output)
        child->process->events->on_output(child->process, which, text);
}

static void set_paused(struct process *process, enum process_pipe which, bool paused)
{
    struct child *child = process->child;
    struct child_pipe *pipe = &child->pipes[which];
    if (pipe->ended || pipe->paused == paused)
        return;
    pipe->paused = paused;
    if (paused) {
        uv_read_stop((uv_stream_t *)&pipe->handle);
        return;
    }
    uv_read_start((uv_stream_t *)&pipe->handle, on_alloc, on_read);
    if (child->keeper_ended)
        wait_for_rest(child);
}

static pid_t pid_of(const struct process *process)
{
    return process->child->keeper.pid;
}

/* --- spawning
 * -------------------------------------------------------------------------- */

/* The descriptors that the launcher inherits; the spawner closes them after the spawn. */
struct inheritance {
    int fds[LAUNCH_REPORT_FD + 1];
};

static void inheritance_close(struct inheritance *inheritance)
{
    for (int i = 0; i <= LAUNCH_REPORT_FD; i++)
        if (inheritance->fds[i] >= 0)
            close(inheritance->fds[i]);
}

/* Returns a memory file with the text, positioned at its beginning; -1 on failure. */
static int file_of(struct slice text)
{
    int file = memfd_create("runcast", MFD_CLOEXEC);
    while (file >= 0 && text.len) {
        ssize_t written = write(file, text.ptr, text.len);
        if (written < 0 && errno != EINTR) {
            close(file);
            return -1;
        }
        text = slice_from(text, written > 0 ? (size_t)written : 0);
    }
    if (file >= 0)
        lseek(file, 0, SEEK_SET);
    return file;
}

static int order_of(const struct process_options *options)
{
    struct launch_order order = { .spawner = getpid(), .options = *options };
    struct buf bytes = { 0 };
    launch_order_write(&order, &bytes);
    int file = file_of(buf_slice(&bytes));
    explicit_bzero(bytes.ptr, bytes.len); /* it contains the values of the environment */
    buf_finish(&bytes);
    return file;
}

static bool open_pipe(struct child *child, int which, int *theirs)
{
    struct child_pipe *pipe = &child->pipes[which];
    int ends[2];
    if (uv_pipe(ends, UV_NONBLOCK_PIPE, 0))
        return false;
    *theirs = ends[1];
    pipe->child = child;
    uv_pipe_init(loop_uv(child->children->loop), &pipe->handle, 0);
    child->handles++;
    if (uv_pipe_open(&pipe->handle, ends[0])) {
        close(ends[0]);
        return false;
    }
    return uv_read_start((uv_stream_t *)&pipe->handle, on_alloc, on_read) == 0;
}

static bool open_all(struct child *child, const struct process_options *options,
                     struct inheritance *inheritance)
{
    int *fds = inheritance->fds;
    if (options->input_file)
        fds[STDIN_FILENO] = fcntl(options->input_file, F_DUPFD_CLOEXEC, 0);
    else if (options->input.ptr)
        fds[STDIN_FILENO] = file_of(options->input);
    if (fds[STDIN_FILENO] < 0 && (options->input_file || options->input.ptr))
        return false;
    fds[LAUNCH_ORDER_FD] = order_of(options);
    return fds[LAUNCH_ORDER_FD] >= 0 &&
           open_pipe(child, PROCESS_STDOUT, &fds[STDOUT_FILENO]) &&
           open_pipe(child, PROCESS_STDERR, &fds[STDERR_FILENO]) &&
           open_pipe(child, REPORT, &fds[LAUNCH_REPORT_FD]);
}

static int spawn_launcher(struct child *child, const struct inheritance *inheritance)
{
    char *arguments[] = { "runcast", LAUNCH_ROLE, NULL };
    char *environment[] = { NULL };
    uv_stdio_container_t stdio[LAUNCH_REPORT_FD + 1];
    for (int i = 0; i <= LAUNCH_REPORT_FD; i++) {
        stdio[i].flags = inheritance->fds[i] < 0 ? UV_IGNORE : UV_INHERIT_FD;
        stdio[i].data.fd = inheritance->fds[i];
    }
    uv_process_options_t options = {
        .exit_cb = on_keeper_exit,
        .file = child->children->launcher,
        .args = arguments,
        .env = environment,
        .stdio_count = LAUNCH_REPORT_FD + 1,
        .stdio = stdio,
    };
    child->handles++;
    return uv_spawn(loop_uv(child->children->loop), &child->keeper, &options);
}

static enum err child_refuse(struct child *child, bool has_keeper, const char *reason,
                             struct failure *why)
{
    enum err err = explain(why, ERR_NO_ROOM, "cannot start a child process: %s", reason);
    child->process->child = NULL;
    child->process = NULL;
    if (!child->handles) {
        child_finish(child);
        return err;
    }
    for (int i = 0; i < PIPES; i++)
        if (child->pipes[i].child)
            end_pipe(&child->pipes[i]);
    if (has_keeper)
        uv_close((uv_handle_t *)&child->keeper, on_keeper_closed);
    return err;
}

static enum err spawn(struct processes *processes, struct process *process,
                      const struct process_options *options, struct failure *why)
{
    struct child_driver *children = container_of(processes, struct child_driver, processes);
    struct inheritance inheritance = { { -1, -1, -1, -1, -1 } };
    struct child *child = mem_new(struct child);
    *child = (struct child){ .children = children, .process = process };
    process->child = child;
    children->count++;
    if (options->cgroup) {
        child->cgroup = mem_text(slice_of(options->cgroup));
        cgroup_oom_kills(child->cgroup, &child->oom_kills);
    }
    bool opened = open_all(child, options, &inheritance);
    int failed_by = errno;
    int failed = opened ? spawn_launcher(child, &inheritance) : 0;
    inheritance_close(&inheritance);
    if (!opened)
        return child_refuse(child, false, strerror(failed_by), why);
    if (failed)
        return child_refuse(child, true, uv_strerror(failed), why);
    if (options->deadline_ms)
        loop_set_timer(children->loop, &child->deadline, children->on_deadline,
                       options->deadline_ms);
    return OK;
}

struct processes *children_create(struct loop *loop, const char *launcher)
{
    struct child_driver *children = mem_new(struct child_driver);
    struct timers *timers = loop_timers(loop);
    children->processes = (struct processes){ spawn, send_signal, set_paused, pid_of };
    children->loop = loop;
    children->launcher = mem_text(slice_of(launcher ? launcher : "/proc/self/exe"));
    children->on_deadline = timers_kind(timers, on_deadline);
    children->on_keeper = timers_kind(timers, on_keeper_late);
    children->on_rest = timers_kind(timers, on_rest);
    return &children->processes;
}

void children_destroy(struct processes *processes)
{
    if (!processes)
        return;
    struct child_driver *children = container_of(processes, struct child_driver, processes);
    assert(children->count == 0);
    for (int i = 0; i < NOTES_MAX; i++)
        free(children->notes[i]);
    free(children->launcher);
    free(children);
}
