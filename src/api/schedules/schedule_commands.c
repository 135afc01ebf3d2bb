/* schedule_commands.c - creates, changes and removes schedules.
 *
 *   find ─► busy? wait ─► decide ─► commit ─► the schedule takes the decided state ─► done
 *      ▲                                                                           │
 *      └───────────────────── waiting commands, in order ◄─────────────────────────┘
 *
 * A new schedule is in the tables before its commit ends, so that a second command with
 * the same key waits for it. Until it has a version, it is not shown to clients. */
#include "api/schedules/schedule_state.h"

static void go(struct schedule_command *command);

static void schedule_command_finish(struct schedule_command *command,
                                    struct schedule *schedule, enum err status)
{
    environment_release(command->env);
    command->all->under_way--;
    command->schedule = schedule;
    schedule_facts_finish(&command->next);
    command->done(command, status);
}

void schedule_commands_go(struct list *parked)
{
    while (!list_empty(parked))
        go(container_of(list_take(parked), struct schedule_command, link));
}

/* ---- the commit ---- */

/* Prepares the change. body NULL removes the schedule. */
static void set_change(struct schedule_command *command, struct bytes *body)
{
    command->change = (struct change){
        .kind = CHANGE_DOCUMENT,
        .env = command->env->number,
        .expected = command->schedule->version,
        .document = { .kind = DOC_SCHEDULE,
                      .env = command->env->number,
                      .name = bytes_create(slice_of(command->schedule->id)),
                      .body = body },
    };
}

/* Removes the schedule from memory. Commands that waited for it then find none. */
static void vanish(struct schedule_command *command, enum err status)
{
    struct schedules *all = command->all;
    struct schedule *schedule = command->schedule;
    struct list parked;

    list_init(&parked);
    list_move_all(&parked, &schedule->parked);
    bool was_there = schedule->version > 0;
    schedule_command_finish(command, was_there ? schedule : NULL, status);
    schedule_remove(all, schedule);
    schedule_commands_go(&parked);
}

static void on_written(struct document_write *write, enum err status)
{
    struct schedule_command *command = container_of(write, struct schedule_command, write);
    struct schedules *all = command->all;
    struct schedule *schedule = command->schedule;
    bool was_there = schedule->version > 0;
    if (status ? !was_there : command->removes) {
        vanish(command, status);
        return;
    }
    if (!status) {
        schedule->version = command->change.document.version;
        schedule->failing = false;
        schedule_adopt(all, schedule, &command->next);
    }
    schedule_command_finish(command, schedule, status); /* done may free the command */
    schedule_release(all, schedule);
}

static struct schedule *make(struct schedule_command *command)
{
    struct schedules *all = command->all;
    struct schedule_facts facts;
    text_make_next_id("sched", loop_wall_ms(engine_loop(all->engine)), all->last_id);
    struct schedule *schedule = schedule_add(all, command->env, all->last_id);
    schedule_facts_copy(&facts, &command->next);
    schedule_adopt(all, schedule, &facts);
    return schedule;
}

static void commit(struct schedule_command *command, struct schedule *schedule)
{
    struct schedules *all = command->all;
    if (!schedule)
        schedule = make(command);
    command->schedule = schedule;
    schedule->busy = true;
    timers_clear(&all->due, &schedule->due);
    set_change(command, command->removes ? NULL : schedule_facts_write(&command->next));
    documents_write_begin(all->engine, &command->change, 1, &command->write, on_written);
}

/* ---- deciding ---- */

static void go(struct schedule_command *command)
{
    struct schedule *schedule = command->find(command);
    if (schedule && schedule->busy) {
        list_append(&schedule->parked, &command->link);
        return;
    }
    command->removes = false;
    command->next = (struct schedule_facts){ 0 };
    if (schedule)
        schedule_facts_copy(&command->next, &schedule->facts);
    switch (command->decide(command, schedule, &command->next)) {
    case DECISION_COMMIT: commit(command, schedule); return;
    case DECISION_REFUSE:
        schedule_command_finish(command, schedule, command->why.code);
        return;
    case DECISION_NOTHING: schedule_command_finish(command, schedule, OK); return;
    }
}

static void on_deferred(struct deferred *deferred)
{
    go(container_of(deferred, struct schedule_command, deferred));
}

void schedule_command_begin(struct schedules *all, struct environment *env,
                            struct schedule_command *command, schedule_find_fn *find,
                            schedule_decide_fn *decide, schedule_done_fn *done)
{
    *command = (struct schedule_command){
        .all = all, .env = env, .find = find, .decide = decide, .done = done
    };
    list_init(&command->link);
    list_init(&command->deferred.link);
    command->deferred.fn = on_deferred;
    all->under_way++;
    environment_hold(env);
    loop_defer(engine_loop(all->engine), &command->deferred);
}
