/* stored_uses.c - writes the last uses of keys and tokens, in one commit after another. */
#include "api/router/stored_uses.h"

#include <stdlib.h>

#include "accounts/account_writer.h"
#include "base/log.h"
#include "base/mem.h"

enum { EVERY_MS = 60 * 60 * 1000 };

struct stored_uses {
    struct api *api;
    struct timer timer;
    uint32_t kind;
    bool stopped, writing;
    size_t count; /* of uses in the write in progress */
    struct account_write write;
};

static struct loop *loop_of(const struct stored_uses *stored)
{
    return engine_loop(api_engine(stored->api));
}

static enum err decide(struct account_write *write, struct accounts *accounts,
                       struct draft *draft)
{
    struct stored_uses *stored = container_of(write, struct stored_uses, write);
    stored->count = draft_uses(draft, accounts);
    return OK;
}

/* Commits until nothing is left, then waits for the next hour. After a failure, it tries again
 * then. */
static void write_uses(struct stored_uses *stored)
{
    stored->writing = true;
    account_write_begin(api_options(stored->api)->writer, &stored->write);
}

static void on_written(struct account_write *write, enum err status)
{
    struct stored_uses *stored = container_of(write, struct stored_uses, write);
    stored->writing = false;
    if (status && !engine_store(api_engine(stored->api))->failing)
        log_warn("cannot store the last uses of keys and tokens", "reason",
                 errors[status].text, NULL);
    if (!status && stored->count == DRAFT_USES_MAX)
        write_uses(stored);
    else if (!stored->stopped)
        loop_set_timer(loop_of(stored), &stored->timer, stored->kind, EVERY_MS);
}

static void on_time(struct timer *timer)
{
    write_uses(container_of(timer, struct stored_uses, timer));
}

struct stored_uses *stored_uses_create(struct api *api)
{
    struct stored_uses *stored = mem_new(struct stored_uses);
    stored->api = api;
    stored->write.decide = decide;
    stored->write.done = on_written;
    stored->kind = timers_kind(loop_timers(engine_loop(api_engine(api))), on_time);
    return stored;
}

void stored_uses_destroy(struct stored_uses *stored)
{
    free(stored);
}

void stored_uses_start(struct stored_uses *stored)
{
    if (!stored->timer.place && !stored->writing)
        loop_set_timer(loop_of(stored), &stored->timer, stored->kind, EVERY_MS);
}

void stored_uses_stop(struct stored_uses *stored)
{
    bool waits = stored->timer.place != 0;
    stored->stopped = true;
    timers_clear(loop_timers(loop_of(stored)), &stored->timer);
    if (waits)
        write_uses(stored);
}

bool stored_uses_has_ended(const struct stored_uses *stored)
{
    return !stored->writing;
}
