/* flight.c - commands: decide, park, commit.
 *
 *   command_begin ─► flight of the run (one per run): parked
 *                      │ end of turn, or when the previous commit has ended
 *                      ▼
 *                    is the run in memory? ── no ──► load it, come back
 *                      │ yes
 *                      ▼
 *                    does a command change other runs too? ── yes ──► borrow their
 *                      │                                 flights, one after another
 *                      ▼
 *                    flights that wait for the same runs join the commit
 *                      │
 *                      ▼
 *                    decide all parked, each on the result of the previous one
 *                      │
 *                      ▼
 *                    one commit ─► engine_apply ─► done, in order
 *                        │
 *                        └─ a claim is taken ─► its command changes nothing; all others
 *                                               are decided again
 *
 * A flight exists while a run has commands that wait or are being committed. It is found by
 * environment and run id, so a command that names another tenant's run finds nothing.
 *
 * To change another run, a flight locks it by borrowing its flight. A borrowed flight
 * begins no commit itself. Other flights that need to borrow it wait in its line; they and
 * the run's own commands take turns. Relatives are borrowed from the child upwards, and a
 * flight that has borrowed another is not borrowed itself. So there is always one that need
 * not wait, and no deadlock.
 *
 * If many children change one parent at once, the first that has borrowed the parent takes
 * the others out of the line, as if it had borrowed them too, and commits their commands
 * with its own. Commands that were not decided in the turn's time slice wait for the next
 * commit.
 *
 * A group changes runs that need not be relatives (command::is_group). It is decided alone,
 * and borrows the runs from the newest to the oldest. Because children are newer than their
 * parents, this keeps the order. */
#include <assert.h>

#include "base/mem.h"
#include "core/engine/calls.h"

enum { ALONG_MAX = 64 }; /* max flights that join the commit of another */

struct claimant {
    struct command *command;
    struct claim *claim; /* the command's own */
};

struct flight {
    char key[ENVIRONMENT_KEY]; /* environment and id of the run */
    struct engine *engine;
    struct environment *env;
    struct deferred deferred;
    struct list parked;  // command::link; not decided yet
    struct list decided; // command::link; in the commit
    struct store_commit commit;
    struct claimant *claimants; /* one for each claim of the commit */
    size_t applied;             /* how many changes of the commit were applied */
    struct store_load load;
    bool busy; /* a load or commit is in flight, or it is borrowed */

    struct flight *borrower; /* whose commit includes this run; NULL: not borrowed */
    struct list lent;        // flight::borrowed of the borrower
    struct list borrowed;    // flight::lent
    struct list line;        // flight::in_line; flights that wait to borrow this one
    struct list in_line;     // flight::line of another
    bool was_lent;           /* its own commands are next */

    const struct run *now; /* while deciding: including the commit's changes so far */
    unsigned marks;        /* of its changes in the commit so far */
};

static struct slice flight_key(const void *value)
{
    return slice_of(((const struct flight *)value)->key);
}

void flights_init(struct engine *engine)
{
    table_init(&engine->flights, flight_key);
}

void flights_finish(struct engine *engine)
{
    table_finish(&engine->flights);
}

/* ---- a flight ---- */

static void flight_go(struct flight *flight);

static void on_deferred(struct deferred *deferred)
{
    flight_go(container_of(deferred, struct flight, deferred));
}

/* Returns NULL if no command is about that run. */
static struct flight *find_flight(const struct engine *engine,
                                  const struct environment *env, struct slice run_id)
{
    char key[ENVIRONMENT_KEY];
    environment_key(env, run_id, key);
    return table_find(&engine->flights, slice_of(key));
}

bool flights_have(const struct engine *engine, const struct tracked *run)
{
    return run->in_flight || find_flight(engine, run->env, slice_of(run->run.id));
}

static struct flight *flight_of(struct engine *engine, struct environment *env,
                                struct slice run_id)
{
    struct flight *flight = find_flight(engine, env, run_id);
    if (flight)
        return flight;

    flight = mem_new(struct flight);
    environment_key(env, run_id, flight->key);
    flight->engine = engine;
    flight->env = env;
    environment_hold(env);
    flight->deferred.fn = on_deferred;
    struct list *lists[] = { &flight->deferred.link, &flight->parked,   &flight->decided,
                             &flight->lent,          &flight->borrowed, &flight->line,
                             &flight->in_line };
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        list_init(lists[i]);
    table_insert(&engine->flights, flight);
    loop_defer(engine->loop, &flight->deferred);
    return flight;
}

/* Returns NULL if the run is not in memory. */
static struct tracked *flight_run(const struct flight *flight)
{
    return environment_find(flight->env, environment_key_id(flight->key));
}

static void give_back(struct flight *flight)
{
    while (!list_empty(&flight->borrowed)) {
        struct flight *lender =
            container_of(list_take(&flight->borrowed), struct flight, lent);
        lender->borrower = NULL;
        lender->busy = false;
        lender->was_lent = true;
        loop_defer(lender->engine->loop, &lender->deferred);
    }
}

static void free_commit(struct flight *flight)
{
    free(flight->commit.changes);
    free(flight->commit.claims);
    free(flight->claimants);
}

/* Ends the flight and places its run, which may have been requeued meanwhile. */
static void flight_end(struct flight *flight)
{
    struct tracked *run = flight_run(flight);
    give_back(flight);
    list_remove(&flight->lent);
    list_remove(&flight->in_line);
    while (!list_empty(&flight->line)) /* they find the run again, or not */
        loop_defer(
            flight->engine->loop,
            &container_of(list_take(&flight->line), struct flight, in_line)->deferred);
    loop_cancel_deferred(&flight->deferred);
    table_remove(&flight->engine->flights, slice_of(flight->key));
    if (run) {
        run->in_flight = false;
        engine_place(flight->engine, run);
        engine_evict(flight->engine, flight->env); /* it could not be evicted before */
    }
    environment_release(flight->env);
    free_commit(flight);
    free(flight);
}

static void fail_all(struct flight *flight, struct list *commands, enum err status)
{
    const struct tracked *run = flight_run(flight);
    while (!list_empty(commands))
        command_finish(container_of(list_take(commands), struct command, link),
                       run ? &run->run : NULL, status);
}

/* Keeps a run that is in a commit in memory and out of its queue. */
static void hold(struct flight *flight, struct tracked *run)
{
    flight->busy = true;
    run->in_flight = true;
    if (!run->item.running)
        queues_rest(&flight->env->queues, &run->item, engine_seat_of(&run->run).limits);
}

/* ---- loading ---- */

/* Continues the borrower without a missing run; if the store has failed, ends its
 * commands. */
static void go_without(struct flight *borrower, struct slice run_id, enum err status)
{
    if (status != ERR_NOT_FOUND)
        fail_all(borrower, &borrower->parked, status);
    list_each (link, &borrower->parked) {
        struct command *command = container_of(link, struct command, link);
        for (struct command *other = command->also; other; other = other->also)
            if (slice_equal(slice_of(other->run_id), run_id))
                other->why.code = status;
    }
    flight_go(borrower);
}

static void end_missing(struct flight *flight, enum err status)
{
    struct flight *borrower = flight->borrower;
    char key[ENVIRONMENT_KEY];
    memcpy(key, flight->key, sizeof(key));
    fail_all(flight, &flight->parked, status);
    flight_end(flight);
    if (borrower)
        go_without(borrower, environment_key_id(key), status);
}

/* Returns the loaded run, back in memory until its commit has ended. A trigger may have
 * added it meanwhile: the store returns a committed run before the commit is applied. */
static struct tracked *take_loaded(struct flight *flight)
{
    struct tracked *run = flight_run(flight);
    if (run) {
        run_finish(&flight->load.run);
        return run;
    }
    run_share_names(&flight->load.run);
    return environment_load(flight->env, &flight->load.run);
}

static void on_loaded(struct store_read *read, enum store_status status)
{
    struct flight *flight = container_of(read, struct flight, load.read);
    flight->busy = false;
    bytes_clear(&flight->load.name);
    if (!status && environment_has_purged(flight->env, &flight->load.run)) {
        run_finish(&flight->load.run);
        status = STORE_MISSING;
    }
    if (status) {
        end_missing(flight, err_of_store(status));
        return;
    }
    struct tracked *run = take_loaded(flight);
    engine_evict(flight->engine, flight->env);
    if (flight->borrower)
        hold(flight, run);
    flight_go(flight->borrower ? flight->borrower : flight);
}

static void load_run(struct flight *flight)
{
    flight->busy = true;
    flight->load =
        (struct store_load){ .read = { READ_LOAD, flight->env->number, on_loaded },
                             .name = bytes_create(environment_key_id(flight->key)) };
    flight->engine->store->ops->read(flight->engine->store, &flight->load.read);
}

/* ---- borrowing ---- */

/* Returns true if the other command's run is in memory and locked until the commit has
 * ended, or does not exist. If false, flight_go is called again when that may have
 * changed. */
static bool borrow(struct flight *flight, const struct command *other)
{
    if (other->why.code)
        return true; /* its run is missing */
    struct flight *lender = flight_of(flight->engine, flight->env, slice_of(other->run_id));
    if (lender == flight || lender->borrower == flight)
        return flight_run(lender) != NULL;
    if (lender->busy || !list_empty(&lender->borrowed)) {
        if (list_empty(&flight->in_line))
            list_append(&lender->line, &flight->in_line);
        return false;
    }
    struct tracked *run = flight_run(lender);
    list_remove(&flight->in_line); /* it may be ahead of its turn */
    lender->borrower = flight;
    list_append(&flight->borrowed, &lender->lent);
    if (run)
        hold(lender, run);
    else
        load_run(lender);
    return run != NULL;
}

/* Returns true if the parked command must wait for the next commit: a group is decided
 * alone. */
static bool is_for_later(const struct list *parked, const struct command *command)
{
    const struct command *first = container_of(parked->next, const struct command, link);
    return command != first && (command->is_group || first->is_group);
}

/* Returns true if all relatives are borrowed; if not, flight_go is called again for the next
 * one. */
static bool borrow_all(struct flight *flight)
{
    list_each (link, &flight->parked) {
        struct command *command = container_of(link, struct command, link);
        if (is_for_later(&flight->parked, command))
            break;
        for (struct command *other = command->also; other; other = other->also)
            if (!borrow(flight, other))
                return false;
    }
    return true;
}

/* Lets the first in line borrow the run, unless one did last. Returns true if one has
 * it. */
static bool lend(struct flight *flight)
{
    if (!list_empty(&flight->borrowed) ||
        (flight->was_lent && !list_empty(&flight->parked)))
        return false;
    while (!flight->busy && !list_empty(&flight->line))
        flight_go(container_of(list_take(&flight->line), struct flight, in_line));
    return flight->busy;
}

/* ---- joining a commit ---- */

static bool holds(const struct flight *flight, const struct flight *other)
{
    return other == flight || other->borrower == flight;
}

/* Returns true if the guest's commands change only runs that the two flights hold. */
static bool fits(const struct flight *flight, const struct flight *guest)
{
    list_each (link, &guest->parked) {
        struct command *command = container_of(link, struct command, link);
        if (command->is_group)
            return false;
        for (struct command *other = command->also; other; other = other->also) {
            if (other->why.code)
                continue; /* its run is missing */
            struct flight *lender =
                find_flight(flight->engine, flight->env, slice_of(other->run_id));
            if (!lender || (!holds(flight, lender) && !holds(guest, lender)))
                return false;
        }
    }
    return flight_run(guest) != NULL;
}

/* Adds the guest, and all that it has borrowed, to the flights that are borrowed. */
static void take_along(struct flight *flight, struct flight *guest)
{
    list_remove(&guest->in_line);
    list_each (link, &guest->borrowed)
        container_of(link, struct flight, lent)->borrower = flight;
    list_move_all(&flight->borrowed, &guest->borrowed);
    guest->borrower = flight;
    list_append(&flight->borrowed, &guest->lent);
    hold(guest, flight_run(guest));
}

/* Takes along flights in the lender's line that are not busy; returns how many more may
 * join. */
static unsigned empty_line(struct flight *flight, struct flight *lender, unsigned room)
{
    list_each (link, &lender->line) {
        struct flight *guest = container_of(link, struct flight, in_line);
        if (!room)
            break;
        if (guest->busy || !fits(flight, guest))
            continue;
        take_along(flight, guest);
        room--;
    }
    return room;
}

/* Takes along flights that wait for this run or for borrowed ones, including those added
 * here. */
static void gather(struct flight *flight)
{
    unsigned room = empty_line(flight, flight, ALONG_MAX);
    for (struct list *link = flight->borrowed.next; link != &flight->borrowed;
         link = link->next)
        room = empty_line(flight, container_of(link, struct flight, lent), room);
}

/* ---- deciding ---- */

/* Decides a command of the flight `of`, on its run, into the commit of `flight`. A later
 * change in a commit does not know the revs of earlier ones, so it gets their marks too. */
static void decide_into(struct flight *flight, struct flight *of, struct command *command)
{
    struct change *change = &flight->commit.changes[flight->commit.change_count];
    if (!command_decide(command, of->now, change))
        return;
    of->marks = change->marks |= of->marks & ~(unsigned)MARK_KEY;
    of->now = &change->run;
    flight->commit.change_count++;
}

static bool apply_some(struct store_commit *commit)
{
    struct flight *flight = container_of(commit, struct flight, commit);
    return engine_apply_some(flight->engine, commit, &flight->applied);
}

static void claim_for(struct flight *flight, struct command *command)
{
    for (size_t i = 0; i < command->claim_count; i++) {
        size_t at = flight->commit.claim_count++;
        flight->claimants[at] = (struct claimant){ command, &command->claims[i] };
        flight->commit.claims[at] = command->claims[i];
    }
}

static void begin_deciding(struct flight *flight)
{
    flight->now = &flight_run(flight)->run;
    flight->marks = 0;
}

/* Removes the last changes of the commit, up to this number of them. */
static void undo_changes(struct flight *flight, size_t left)
{
    struct store_commit *commit = &flight->commit;
    while (commit->change_count > left)
        change_finish(&commit->changes[--commit->change_count]);
    begin_deciding(flight);
    list_each (link, &flight->borrowed)
        begin_deciding(container_of(link, struct flight, lent));
    for (size_t i = 0; i < left; i++) {
        struct change *change = &commit->changes[i];
        struct flight *of =
            find_flight(flight->engine, flight->env, slice_of(change->run.id));
        if (!of) /* the run was added by a command */
            continue;
        of->now = &change->run;
        of->marks = change->marks;
    }
}

/* Refuses a group because of one of its commands. */
static void refuse_group(struct flight *flight, struct command *command,
                         const struct command *other, size_t left)
{
    struct failure why = other->why;
    undo_changes(flight, left);
    command_forget_decision(command);
    command->why = why;
    command->decision = DECISION_REFUSE;
}

/* Decides the commands joined to this one. Returns false if that refuses the group. */
static bool decide_joined(struct flight *flight, struct command *command, size_t before)
{
    for (struct command *other = command->also; other; other = other->also) {
        if (!other->why.code)
            decide_into(flight,
                        flight_of(flight->engine, flight->env, slice_of(other->run_id)),
                        other);
        if (command->is_group && other->why.code) {
            refuse_group(flight, command, other, before);
            return false;
        }
    }
    return true;
}

/* Adds the caller's changes. They are applied in time slices, because there may be many. */
static void add_changes(struct flight *flight, struct command *command)
{
    struct store_commit *commit = &flight->commit;
    command->added = command->add(command, &commit->changes[commit->change_count]);
    commit->change_count += command->added;
    if (command->added)
        commit->apply = apply_some;
}

/* Decides a command and those joined to it. If it is refused, they stay: it may be decided
 * again. */
static void decide_all(struct flight *flight, struct flight *of, struct command *command)
{
    size_t before = flight->commit.change_count;
    if (!command->is_repeated)
        decide_into(flight, of, command);
    if (command->is_repeated || command->decision == DECISION_REFUSE)
        return;
    if (!decide_joined(flight, command, before))
        return;
    if (command->add)
        add_changes(flight, command);
    if (command->claims_always || flight->commit.change_count > before)
        claim_for(flight, command);
}

/* Adds the largest number of changes and claims that the parked commands can make. */
static void count_parked(const struct flight *flight, size_t *changes, size_t *claims)
{
    list_each (link, &flight->parked) {
        const struct command *command = container_of(link, struct command, link);
        *claims += command->claim_count;
        *changes += command_count(command) + command->add_max;
    }
}

/* Decides parked commands within the time slice; the rest stays parked, before newer
 * ones. */
static void decide_some(struct flight *flight, struct flight *of,
                        struct timeslice *timeslice)
{
    struct list parked;
    list_init(&parked);
    list_move_all(&parked, &of->parked);
    bool is_alone = false;
    while (!list_empty(&parked) && !is_alone && timeslice_left(timeslice)) {
        struct command *command = container_of(parked.next, struct command, link);
        if (command->is_group && !list_empty(&of->decided))
            break;
        is_alone = command->is_group;
        list_remove(&command->link);
        decide_all(flight, of, command);
        list_append(&of->decided, &command->link);
    }
    list_move_all(&parked, &of->parked);
    list_move_all(&of->parked, &parked);
}

static void on_committed(struct store_commit *commit, enum store_status status);

/* Decides the flight's own commands, then those of the flights that it has borrowed. */
static void decide_parked(struct flight *flight)
{
    struct timeslice timeslice = loop_timeslice(flight->engine->loop);
    size_t changes = 0, claims = 0;
    begin_deciding(flight);
    count_parked(flight, &changes, &claims);
    list_each (link, &flight->borrowed) {
        struct flight *borrowed = container_of(link, struct flight, lent);
        begin_deciding(borrowed);
        count_parked(borrowed, &changes, &claims);
    }
    free_commit(flight);
    flight->commit = (struct store_commit){ .done = on_committed };
    flight->commit.changes = mem_new_array(struct change, changes);
    flight->commit.claims = mem_new_array(struct claim, claims);
    flight->claimants = mem_new_array(struct claimant, claims);
    flight->applied = 0;
    decide_some(flight, flight, &timeslice);
    list_each (link, &flight->borrowed) {
        struct flight *borrowed = container_of(link, struct flight, lent);
        if (fits(flight, borrowed))
            decide_some(flight, borrowed, &timeslice);
    }
}

static void answer_decided(struct flight *flight)
{
    const struct run *run = &flight_run(flight)->run;
    struct list decided;
    list_init(&decided);
    list_move_all(&decided, &flight->decided);
    while (!list_empty(&decided)) {
        struct command *command = container_of(list_take(&decided), struct command, link);
        command_finish(command, run, command_outcome(command));
    }
}

static void answer_all(struct flight *flight)
{
    answer_decided(flight);
    list_each (link, &flight->borrowed)
        answer_decided(container_of(link, struct flight, lent));
}

/* Commands that are decided at the end of this turn are not refused. */
void engine_refuse_waiting(struct engine *engine)
{
    size_t at = 0;
    struct list refused;
    list_init(&refused);
    for (struct flight *flight; (flight = table_next(&engine->flights, &at));) {
        bool in_line = !list_empty(&flight->in_line);
        if (flight->busy || in_line)
            list_move_all(&refused, &flight->parked);
        if (in_line) /* the run that it waits for is not needed now */
            loop_defer(engine->loop, &flight->deferred);
    }
    while (!list_empty(&refused))
        command_finish(container_of(list_take(&refused), struct command, link), NULL,
                       ERR_STORE);
}

static void flight_go(struct flight *flight)
{
    if (flight->busy || lend(flight))
        return;
    if (list_empty(&flight->parked)) {
        flight_end(flight);
        return;
    }
    struct tracked *run = flight_run(flight);
    if (!run) {
        load_run(flight);
        return;
    }
    if (!borrow_all(flight))
        return;
    gather(flight);
    decide_parked(flight);
    if (!flight->commit.change_count && !flight->commit.claim_count) {
        answer_all(flight);
        give_back(flight);
        loop_defer(flight->engine->loop, &flight->deferred);
        return;
    }
    hold(flight, run);
    flight->commit.now_ms = loop_wall_ms(flight->engine->loop);
    flight->engine->store->ops->commit(flight->engine->store, &flight->commit);
}

/* Gives each command its own seq, in the order of the changes. A command without a change
 * was decided on the result of those before it. */
static uint64_t number_decided(const struct flight *flight, uint64_t seq)
{
    list_each (link, &flight->decided)
        seq = command_number(container_of(link, struct command, link), seq);
    return seq;
}

static void number_all(struct flight *flight)
{
    if (!flight->commit.change_count)
        return;
    uint64_t seq = number_decided(flight, flight->commit.changes[0].seq);
    list_each (link, &flight->borrowed)
        seq = number_decided(container_of(link, struct flight, lent), seq);
}

static void fail_decided(struct flight *flight, enum err status)
{
    fail_all(flight, &flight->decided, status);
    list_each (link, &flight->borrowed) {
        struct flight *borrowed = container_of(link, struct flight, lent);
        fail_all(borrowed, &borrowed->decided, status);
    }
}

/* Commands that wait may have lost a claim to a commit that has failed: it is free again. */
static void forget_repeats(const struct flight *flight)
{
    list_each (link, &flight->parked)
        container_of(link, struct command, link)->is_repeated = false;
}

/* Parks decided commands again, first and in their order. */
static void park_decided(struct flight *flight)
{
    list_each (link, &flight->decided)
        command_forget_decision(container_of(link, struct command, link));
    list_move_all(&flight->decided, &flight->parked);
    list_move_all(&flight->parked, &flight->decided);
}

/* Decides again, with the same borrowed flights. A repeated command stays with the others,
 * so that its response comes after the commit that may hold the request that it repeats. */
static void decide_again(struct flight *flight)
{
    const struct store_commit *commit = &flight->commit;
    for (size_t i = 0; i < commit->claim_count; i++) {
        struct claimant *claimant = &flight->claimants[i];
        claimant->command->is_repeated |= commit->claims[i].taken;
        *claimant->claim = commit->claims[i];
    }
    park_decided(flight);
    list_each (link, &flight->borrowed)
        park_decided(container_of(link, struct flight, lent));
    loop_defer(flight->engine->loop, &flight->deferred);
}

static void on_committed(struct store_commit *commit, enum store_status status)
{
    struct flight *flight = container_of(commit, struct flight, commit);
    flight->busy = flight->was_lent = false;
    for (size_t i = 0; status && i < commit->change_count; i++)
        change_finish(&commit->changes[i]);
    if (status == STORE_TAKEN) {
        decide_again(flight);
        return;
    }
    if (status) {
        forget_repeats(flight);
        list_each (link, &flight->borrowed)
            forget_repeats(container_of(link, struct flight, lent));
        fail_decided(flight, err_of_store(status));
    } else {
        number_all(flight);
        engine_apply(flight->engine, commit->changes + flight->applied,
                     commit->change_count - flight->applied);
        answer_all(flight);
    }
    give_back(flight);
    loop_defer(flight->engine->loop, &flight->deferred);
}

void command_begin(struct engine *engine, struct environment *env, struct slice run_id,
                   struct command *command, command_decide_fn *decide_fn,
                   command_done_fn *done)
{
    command_prepare(command, engine, env, run_id, decide_fn);
    command->done = done;
    struct flight *flight = flight_of(engine, env, slice_of(command->run_id));
    list_append(&flight->parked, &command->link);
}
