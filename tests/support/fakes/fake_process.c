/* fake_process.c - plays children on a stepped loop. */
#include "tests/support/fakes/fake_process.h"

#include <assert.h>
#include <signal.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/mem.h"

enum { PIPES = 2, FIRST_PID = 1000 };

struct fake_children {
    struct processes processes;
    struct loop *loop;
    struct list children; // child::link
    uint32_t on_deadline; /* kind of timer */
    size_t spawned;
    char *refusal;
    fake_spawned_fn *on_spawned;
};

struct child {
    struct list link; // fake_children::children
    struct fake_children *fake;
    struct process *process;
    struct process_options options;
    pid_t pid;
    struct buf unread[PIPES];
    bool paused[PIPES];
    int signals[FAKE_SIGNALS_MAX];
    size_t signal_count;
    struct timer deadline;
    struct deferred turn;
    bool ended;
    struct process_end end;
};

/* --- copies of options ----------------------------------------------------------------- */

static const char *copy(const char *text)
{
    return text ? mem_text(slice_of(text)) : NULL;
}

static const char *const *copy_all(const char *const *texts)
{
    size_t count = 0;
    while (texts && texts[count])
        count++;
    const char **all = mem_new_array(const char *, count + 1);
    for (size_t i = 0; i < count; i++)
        all[i] = copy(texts[i]);
    return all;
}

static void free_all(const char *const *texts)
{
    for (size_t i = 0; texts[i]; i++)
        free((char *)texts[i]);
    free((char **)texts);
}

static void copy_options(struct process_options *to, const struct process_options *from)
{
    *to = *from;
    to->program = copy(from->program);
    to->arguments = copy_all(from->arguments);
    to->environment = copy_all(from->environment);
    to->directory = copy(from->directory);
    to->cgroup = copy(from->cgroup);
    if (from->input.ptr)
        to->input.ptr = mem_text(from->input);
}

static void free_options(struct process_options *options)
{
    free((char *)options->program);
    free_all(options->arguments);
    free_all(options->environment);
    free((char *)options->directory);
    free((char *)options->cgroup);
    free((char *)options->input.ptr);
}

/* --- the life of a child --------------------------------------------------------------- */

static void finish(struct child *child)
{
    struct process *process = child->process;
    struct process_end end = child->end;
    timers_clear(loop_timers(child->fake->loop), &child->deadline);
    loop_cancel_deferred(&child->turn);
    list_remove(&child->link);
    for (int i = 0; i < PIPES; i++)
        buf_finish(&child->unread[i]);
    free_options(&child->options);
    free(child);
    process->child = NULL;
    process->events->on_ended(process, &end);
}

static void on_turn(struct deferred *deferred)
{
    struct child *child = container_of(deferred, struct child, turn);
    bool unread = false;
    for (int i = 0; i < PIPES; i++) {
        struct buf text = child->unread[i];
        if (text.len && !child->paused[i]) {
            child->unread[i] = (struct buf){ 0 };
            if (child->process->events->on_output)
                child->process->events->on_output(child->process, (enum process_pipe)i,
                                                  buf_slice(&text));
            buf_finish(&text);
        }
        unread |= child->unread[i].len > 0 || child->paused[i];
    }
    if (child->ended && !unread)
        finish(child);
}

static void end(struct child *child, enum process_cause cause, int status)
{
    if (child->ended)
        return;
    child->ended = true;
    child->end.cause = cause;
    child->end.status = status;
    snprintf(child->end.why, sizeof(child->end.why),
             cause == PROCESS_EXITED     ? "it ended with exit code %d"
             : cause == PROCESS_SIGNALED ? "it was ended by signal %d"
                                         : "it was not started (%d)",
             status);
    loop_defer(child->fake->loop, &child->turn);
}

static void send_signal(struct process *process, int signal, bool alone)
{
    struct child *child = process->child;
    if (child->ended)
        return;
    if (child->signal_count < FAKE_SIGNALS_MAX)
        child->signals[child->signal_count++] = alone ? -signal : signal;
    if (signal == SIGKILL)
        end(child, PROCESS_SIGNALED, SIGKILL);
}

static void on_deadline(struct timer *timer)
{
    struct child *child = container_of(timer, struct child, deadline);
    child->end.overdue = !child->ended;
    end(child, PROCESS_SIGNALED, SIGKILL);
}

static void set_paused(struct process *process, enum process_pipe pipe, bool paused)
{
    struct child *child = process->child;
    child->paused[pipe] = paused;
    if (!paused)
        loop_defer(child->fake->loop, &child->turn);
}

static pid_t pid_of(const struct process *process)
{
    return process->child->pid;
}

static enum err spawn(struct processes *processes, struct process *process,
                      const struct process_options *options, struct failure *why)
{
    struct fake_children *fake = container_of(processes, struct fake_children, processes);
    if (fake->refusal) {
        enum err err = explain(why, ERR_NO_ROOM, "%s", fake->refusal);
        fake_children_refuse_next(fake, NULL);
        return err;
    }
    struct child *child = mem_new(struct child);
    child->fake = fake;
    child->process = process;
    child->pid = FIRST_PID + (pid_t)fake->spawned++;
    child->turn.fn = on_turn;
    list_init(&child->turn.link);
    copy_options(&child->options, options);
    list_append(&fake->children, &child->link);
    process->child = child;
    if (options->deadline_ms)
        loop_set_timer(fake->loop, &child->deadline, fake->on_deadline,
                       options->deadline_ms);
    if (fake->on_spawned)
        fake->on_spawned(fake, child);
    return OK;
}

/* --- for the test ---------------------------------------------------------------------- */

struct fake_children *fake_children_create(struct loop *loop)
{
    struct fake_children *fake = mem_new(struct fake_children);
    fake->processes = (struct processes){ spawn, send_signal, set_paused, pid_of };
    fake->loop = loop;
    fake->on_deadline = timers_kind(loop_timers(loop), on_deadline);
    list_init(&fake->children);
    return fake;
}

void fake_children_destroy(struct fake_children *fake)
{
    if (!fake)
        return;
    assert(list_empty(&fake->children));
    free(fake->refusal);
    free(fake);
}

struct processes *fake_children_processes(struct fake_children *fake)
{
    return &fake->processes;
}

void fake_children_refuse_next(struct fake_children *fake, const char *reason)
{
    free(fake->refusal);
    fake->refusal = reason ? mem_text(slice_of(reason)) : NULL;
}

void fake_children_on_spawned(struct fake_children *fake, fake_spawned_fn *fn)
{
    fake->on_spawned = fn;
}

struct child *fake_children_find(struct fake_children *fake, size_t index)
{
    list_each (link, &fake->children)
        if (index-- == 0)
            return container_of(link, struct child, link);
    return NULL;
}

size_t fake_children_count(const struct fake_children *fake)
{
    size_t count = 0;
    list_each (link, &fake->children)
        count++;
    return count;
}

size_t fake_children_spawned(const struct fake_children *fake)
{
    return fake->spawned;
}

const char *fake_process_program(const struct child *child)
{
    return child->options.program;
}

const char *fake_process_argument(const struct child *child, size_t index)
{
    for (size_t i = 0; i <= index; i++)
        if (!child->options.arguments[i])
            return NULL;
    return child->options.arguments[index];
}

const char *fake_process_variable(const struct child *child, const char *name)
{
    size_t len = strlen(name);
    for (const char *const *at = child->options.environment; *at; at++)
        if (strncmp(*at, name, len) == 0 && (*at)[len] == '=')
            return *at + len + 1;
    return NULL;
}

const struct process_options *fake_process_options(const struct child *child)
{
    return &child->options;
}

struct process *fake_process_owner(struct child *child)
{
    return child->process;
}

int fake_process_signal(const struct child *child, size_t index)
{
    return index < child->signal_count ? child->signals[index] : 0;
}

void fake_process_write(struct child *child, enum process_pipe pipe, struct slice text)
{
    assert(!child->ended);
    buf_add(&child->unread[pipe], text);
    loop_defer(child->fake->loop, &child->turn);
}

void fake_process_end(struct child *child, enum process_cause cause, int status)
{
    end(child, cause, status);
}

void fake_process_run_out_of_memory(struct child *child)
{
    child->end.oom = true;
    end(child, PROCESS_SIGNALED, SIGKILL);
}
