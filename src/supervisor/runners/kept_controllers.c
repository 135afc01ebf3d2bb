/* kept_controllers.c - holds the polls of idle controllers, and returns a run to one of
 * them. */
#include "supervisor/runners/kept_controllers.h"

#include "base/log.h"
#include "base/mem.h"

enum { START_MS = 3000 };

struct kept_controllers {
    struct loop *loop;
    struct runner_shared *shared;
    unsigned most;
    int64_t keep_ms, poll_ms;
    uint32_t kind;
};

static void reply(struct exchange *x, int status, struct slice body)
{
    http_reply(x, status, SLICE("content-type: application/json\r\n"), body);
}

void kept_controllers_answer_connect(struct kept_controllers *kept, struct exchange *x)
{
    struct buf body = { 0 };
    bool keeps = kept->most && !kept->shared->draining;
    buf_print(&body, "{\"connectionTimeoutMs\":%lld,\"keepaliveMs\":%lld}",
              (long long)(keeps ? kept->poll_ms : 0),
              (long long)(keeps ? kept->keep_ms : 0));
    reply(x, 200, buf_slice(&body));
    buf_finish(&body);
}

static void kept_controllers_refuse(struct exchange *x)
{
    reply(x, 404, SLICE("{\"error\":\"There is no other run\"}"));
}

static void end_poll(struct runner *runner)
{
    struct exchange *x = runner->waiter;
    runner->waiter = NULL;
    if (x)
        kept_controllers_refuse(x);
}

static unsigned count(const struct kept_controllers *kept)
{
    unsigned idle = 0;
    size_t at = 0;
    for (struct runner *runner; (runner = table_next(&kept->shared->runners, &at));)
        idle += runner->idle;
    return idle;
}

void kept_controllers_hold(struct kept_controllers *kept, struct exchange *x,
                           struct runner *runner)
{
    bool may =
        kept->most && !kept->shared->draining && (runner->idle || count(kept) < kept->most);
    if (!may || runner->waiter || !runner_rest(runner)) {
        kept_controllers_refuse(x);
        return;
    }
    runner->waiter = x;
    log_debug("controller kept", "runner", runner->id, NULL);
}

void kept_controllers_drop(struct kept_controllers *kept, struct exchange *x)
{
    size_t at = 0;
    for (struct runner *runner; (runner = table_next(&kept->shared->runners, &at));)
        if (runner->waiter == x) {
            end_poll(runner);
            return;
        }
}

/* ---- handing over a run ---- */

static void on_not_started(struct timer *timer)
{
    struct runner *runner = container_of(timer, struct runner, handed);
    struct runner_shared *shared = runner->shared;
    struct run_message message;
    struct machine_place place;
    if (runner->facts.started || !runner->has_run || !runner->runs)
        return;
    if (runner->calls) { /* its start call may be in flight */
        loop_set_timer(shared->loop, timer, timer->kind, START_MS);
        return;
    }
    log_warn("kept controller did not start its run; restarting the run", "run",
             runner->message.run, NULL);
    runner_take_back(runner, &message, &place);
    runner_begin(shared, &message, &place);
}

static bool is_alike(const struct runner *runner, const struct run_message *message)
{
    const struct run_message *last = &runner->message;
    return strcmp(last->deployment, message->deployment) == 0 &&
           strcmp(last->environment, message->environment) == 0 &&
           last->cores == message->cores && last->gigabytes == message->gigabytes;
}

/* Stops the kept controllers of other versions of the same environment.
 *
 * They are unlikely to be needed again. */
static void end_outdated(struct kept_controllers *kept, const struct run_message *message)
{
    size_t at = 0;
    for (struct runner *runner; (runner = table_next(&kept->shared->runners, &at));)
        if (runner->idle &&
            strcmp(runner->message.environment, message->environment) == 0 &&
            strcmp(runner->message.deployment, message->deployment) != 0) {
            end_poll(runner);
            runner_ask_to_end(runner);
        }
}

static struct runner *find(const struct kept_controllers *kept,
                           const struct run_message *message)
{
    size_t at = 0;
    for (struct runner *runner; (runner = table_next(&kept->shared->runners, &at));)
        if (runner->idle && runner->waiter && !runner->waiter->gone &&
            is_alike(runner, message))
            return runner;
    return NULL;
}

bool kept_controllers_hand_over(struct kept_controllers *kept, struct run_message *message,
                                const struct machine_place *place)
{
    struct runner *runner = find(kept, message);
    end_outdated(kept, message);
    if (!runner)
        return false;
    struct exchange *x = runner->waiter;
    runner->waiter = NULL;
    runner_rebind(runner, message, place);
    loop_set_timer(kept->loop, &runner->handed, kept->kind, START_MS);
    reply(x, 200, bytes_slice(runner->message.text));
    return true;
}

void kept_controllers_forget(struct kept_controllers *kept, struct runner *runner)
{
    (void)kept;
    end_poll(runner);
}

void kept_controllers_end(struct kept_controllers *kept)
{
    size_t at = 0;
    for (struct runner *runner; (runner = table_next(&kept->shared->runners, &at));)
        end_poll(runner);
}

struct kept_controllers *kept_controllers_create(struct loop *loop,
                                                 struct runner_shared *shared,
                                                 unsigned most, int64_t keep_ms,
                                                 int64_t poll_ms)
{
    struct kept_controllers *kept = mem_new(struct kept_controllers);
    *kept =
        (struct kept_controllers){ .loop = loop,
                                   .shared = shared,
                                   .most = most,
                                   .keep_ms = keep_ms,
                                   .poll_ms = poll_ms,
                                   .kind = timers_kind(loop_timers(loop), on_not_started) };
    return kept;
}

void kept_controllers_destroy(struct kept_controllers *kept)
{
    free(kept);
}
