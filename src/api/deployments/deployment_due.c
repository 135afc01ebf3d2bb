/* deployment_due.c - times out deployments, and repeats interrupted builds.
 *
 *   PENDING      15 minutes without a builder            ─► TIMED_OUT
 *   being built  deploy-timeout since its builder began  ─► TIMED_OUT
 *                60 s without a request of the builder   ─► PENDING again, then FAILED */
#include "api/deployments/deployment_due.h"

#include "api/deployments/builds.h"
#include "base/mem.h"

enum { AGAIN_MS = 1000 };

static void on_time(struct timer *timer);

static void arm(struct deployment *deployment, int64_t ms)
{
    struct loop *loop = deployment->all->loop;
    loop_set_timer(loop, &deployment->timer, timers_kind(loop_timers(loop), on_time),
                   ms > 1 ? ms : 1);
}

/* ---- own commands ---- */

static struct bytes *write_error(const char *name, const char *message)
{
    struct deployment_error error = { .name = slice_of(name),
                                      .message = slice_of(message) };
    return deployment_error_write(&error);
}

static enum err decide(struct deployment_command *command,
                       const struct deployment *deployment, struct deployment_row *next)
{
    struct due_command *op = container_of(command, struct due_command, command);
    const struct deployment_row *row = &deployment->row;
    if (deployment_is_final(row->status))
        return ERR_CONFLICT;
    if (op->build && (row->builds != op->build || !deployment_is_being_built(row->status)))
        return ERR_CONFLICT;
    if (op->build && row->builds < DEPLOYMENT_BUILDS_MAX) {
        next->status = DEPLOYMENT_PENDING;
        return OK;
    }
    deployment_row_end(next, op->status, bytes_ref(op->error), bytes_ref(op->reason),
                       loop_wall_ms(deployment->all->loop));
    return OK;
}

static void on_decided(struct deployment_command *command, struct deployment *deployment,
                       enum err status)
{
    struct due_command *op = container_of(command, struct due_command, command);
    bool failed = status && status != ERR_CONFLICT && status != ERR_CANCELED;
    if (!failed || deployment->all->stopped) {
        deployment_drop_due(op);
    } else {
        deployment_drop_due(deployment->unwritten);
        deployment->unwritten = op;
    }
    if (!deployment->all->stopped)
        deployment_set_timer(deployment);
}

static void deployment_due_begin(struct deployment *deployment, struct due_command *op)
{
    op->command.decide = decide;
    op->command.done = on_decided;
    deployment_command_begin(deployment, &op->command);
}

void deployment_end(struct deployment *deployment, enum deployment_status status,
                    struct bytes *error, struct bytes *reason)
{
    struct due_command *op = mem_new(struct due_command);
    op->status = status;
    op->error = error;
    op->reason = reason;
    deployment_due_begin(deployment, op);
}

void deployment_restart(struct deployment *deployment, const char *reason)
{
    struct due_command *op = mem_new(struct due_command);
    op->status = DEPLOYMENT_FAILED;
    op->build = deployment->row.builds;
    op->error = write_error("BuildError", reason);
    deployment_due_begin(deployment, op);
}

/* ---- timer ---- */

static void time_out(struct deployment *deployment, const char *message)
{
    deployment_end(deployment, DEPLOYMENT_TIMED_OUT, write_error("TimeoutError", message),
                   NULL);
}

static void time_out_build(struct deployment *deployment)
{
    char limit[48], message[128];
    text_from_seconds((uint64_t)deployment->all->options.timeout_ms / 1000, limit);
    snprintf(message, sizeof(message),
             "the build took longer than %s (setting deploy-timeout)", limit);
    time_out(deployment, message);
}

/* Returns in how many ms something is due; -1: at once. */
static int64_t due_in(const struct deployment *deployment)
{
    const struct build *build = deployment->build;
    int64_t now = loop_now_ms(deployment->all->loop);
    if (deployment->row.status == DEPLOYMENT_PENDING)
        return deployment->due_since_ms + DEPLOYMENT_QUEUED_MS - now;
    if (!build)
        return -1;
    int64_t silent = build->last_request_ms + BUILDER_LOST_MS;
    return (silent < build->deadline_ms ? silent : build->deadline_ms) - now;
}

static void on_time(struct timer *timer)
{
    struct deployment *deployment = container_of(timer, struct deployment, timer);
    const struct build *build = deployment->build;
    struct due_command *unwritten = deployment->unwritten;
    if (deployment->all->stopped)
        return;
    deployment->unwritten = NULL;
    if (unwritten)
        deployment_due_begin(deployment, unwritten);
    else if (deployment_is_final(deployment->row.status))
        deployment->all->promote(deployment);
    else if (due_in(deployment) > 0)
        deployment_set_timer(deployment);
    else if (deployment->row.status == DEPLOYMENT_PENDING)
        time_out(deployment, "no builder has taken it for 15 minutes");
    else if (build && build->deadline_ms <= loop_now_ms(deployment->all->loop))
        time_out_build(deployment);
    else
        deployment_restart(deployment, build ? "its builder ended while it was built"
                                             : "the gateway ended while it was built");
}

void deployment_set_timer(struct deployment *deployment)
{
    struct loop *loop = deployment->all->loop;
    bool is_final = deployment_is_final(deployment->row.status);
    if (deployment->unwritten)
        arm(deployment, AGAIN_MS);
    else if (is_final && deployment->row.promotes && !deployment->promoting)
        arm(deployment, AGAIN_MS);
    else if (is_final || deployment->handing)
        timers_clear(loop_timers(loop), &deployment->timer);
    else
        arm(deployment, due_in(deployment));
}
