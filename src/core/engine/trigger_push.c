/* trigger_push.c - pushes delayed runs by commands on them.
 *
 * A run may have started, or may be too old for a push, when its command is decided. In the
 * first case the whole operation starts again. In the second the command takes the key from
 * the run, and the commit creates a new run that has it.
 *
 * A failed commit fails all its commands, including those of other clients. So packets are
 * checked for existence beforehand; a packet that no run names yet is kept for hours. */
#include "core/engine/trigger_push.h"

#include <assert.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/random.h"
#include "core/engine/calls.h"
#include "core/engine/singleton_decision.h"
#include "core/state/debounce_keys.h"

enum { OWNER_DIGITS = 7 };
static_assert(RUN_ID_MAX + 1 + OWNER_DIGITS <= ID_MAX, "an owner has room for its digits");

struct push {
    struct command command;
    struct pushing *pushing;
    struct trigger *item;
};

struct pushing {
    struct trigger_op *op;
    trigger_fill_fn *fill;
    trigger_pushed_fn *done;
    struct store_piece packet;
    size_t looked_at; /* items whose packets were looked up */
    size_t count;
    struct push pushes[]; /* newest run first; for one run, in the order of the items */
};

static void finish(struct pushing *pushing, enum push_outcome outcome, enum err status)
{
    struct trigger_op *op = pushing->op;
    trigger_pushed_fn *done = pushing->done;
    free(pushing);
    done(op, outcome, status);
}

void trigger_push_owner(const char *run_id, char owner[ID_MAX])
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    size_t at = (size_t)snprintf(owner, ID_MAX, "%s/", run_id);
    for (int i = 0; i < OWNER_DIGITS; i++)
        owner[at++] = digits[random_below(sizeof(digits) - 1)];
    owner[at] = '\0';
}

enum err trigger_missing_packet(struct trigger_op *op)
{
    return explain(&op->why, ERR_INVALID,
                   "The payload names a packet (payloadType application/store) that is not "
                   "stored; upload it first");
}

/* ---- commands ---- */

/* Returns the earlier item of the operation that created a run instead of pushing this
 * one. */
static struct trigger *find_leader(const struct push *push)
{
    const struct push *all = push->pushing->pushes;
    for (size_t i = (size_t)(push - all); i-- > 0;) {
        if (strcmp(all[i].item->pushes, push->item->pushes))
            return NULL;
        if (all[i].item->replaces)
            return all[i].item;
    }
    return NULL;
}

static enum decision decide_push(struct command *command, const struct run *now,
                                 struct run *next, unsigned *marks)
{
    struct push *push = container_of(command, struct push, command);
    struct trigger *item = push->item;
    int64_t now_ms = loop_wall_ms(command->engine->loop);

    if (item->singleton)
        return singleton_decide(command, item, now, next, marks);
    item->replaces = false;
    item->leader = NULL;
    if (!slice_equal(debounce_mark_of(now), bytes_slice(run_rare(&item->run)->waits))) {
        item->leader = find_leader(push);
        if (item->leader)
            return DECISION_NOTHING;
        explain(&command->why, ERR_CONFLICT, "The run is not delayed any more");
        return DECISION_REFUSE;
    }
    if (!debounce_allows(&item->debounce, now, now_ms)) {
        debounce_free_key(next);
        debounce_keys_replace(push->pushing->op, item);
        item->replaces = true;
        return DECISION_COMMIT;
    }
    return debounce_push(&item->debounce, &item->run, next, now_ms, marks)
               ? DECISION_COMMIT
               : DECISION_NOTHING;
}

static size_t add_others(struct command *command, struct change *changes)
{
    struct push *first = container_of(command, struct push, command);
    return first->pushing->fill(first->pushing->op, changes);
}

static void on_pushed(struct command *command, enum err status)
{
    struct push *first = container_of(command, struct push, command);
    struct trigger_op *op = first->pushing->op;
    op->seq = 0;
    for (const struct command *one = command; one; one = one->also)
        op->seq = one->seq > op->seq ? one->seq : op->seq;
    if (command->decision == DECISION_REFUSE && status == ERR_CONFLICT) {
        finish(first->pushing, PUSH_FAILED, status);
        return;
    }
    if (command->decision == DECISION_REFUSE)
        op->why = command->why;
    if (!status && command->is_repeated)
        finish(first->pushing, PUSH_TAKEN, OK);
    else
        finish(first->pushing, PUSH_DONE, status);
}

static void begin_commands(struct pushing *pushing)
{
    struct trigger_op *op = pushing->op;
    struct command *first = &pushing->pushes[0].command;
    command_begin(op->engine, op->env, slice_of(pushing->pushes[0].item->pushes), first,
                  decide_push, on_pushed);
    for (size_t i = 1; i < pushing->count; i++)
        command_join(first, &pushing->pushes[i].command,
                     slice_of(pushing->pushes[i].item->pushes), decide_push);
    command_claim(first, op->claims, op->commit.claim_count);
    first->claims_always = true;
    first->is_group = pushing->count > 1;
    first->add = add_others;
    first->add_max = op->count + (op->batch != NULL);
}

/* ---- packets ---- */

static bool names_packet(const struct pushing *pushing, const struct trigger *item)
{
    return !pushing->op->packets_as_they_are && !item->cached && item->run.payload &&
           slice_is(bytes_slice(run_rare(&item->run)->payload_type), "application/store");
}

static void look_up_packets(struct pushing *pushing);

static void on_packet(struct store_read *read, enum store_status status)
{
    struct pushing *pushing = container_of(read, struct pushing, packet.read);
    struct trigger_op *op = pushing->op;
    store_read_finish(read);
    if (status == STORE_MISSING)
        finish(pushing, PUSH_DONE, trigger_missing_packet(op));
    else if (status)
        finish(pushing, PUSH_DONE, err_of_store(status));
    else
        look_up_packets(pushing);
}

static void look_up_packets(struct pushing *pushing)
{
    struct trigger_op *op = pushing->op;
    while (pushing->looked_at < op->count) {
        const struct trigger *item = &op->items[pushing->looked_at++];
        if (!names_packet(pushing, item))
            continue;
        pushing->packet = (struct store_piece){
            .read = { READ_PIECE, op->env->number, on_packet },
            .kind = DOC_PACKET,
            .name = item->run.payload,
            .limit = 1,
        };
        op->engine->store->ops->read(op->engine->store, &pushing->packet.read);
        return;
    }
    begin_commands(pushing);
}

/* ---- begin ---- */

static int newest_first(const void *a, const void *b)
{
    const struct push *left = a, *right = b;
    int order = strcmp(right->item->pushes, left->item->pushes);
    return order ? order : (left->item > right->item) - (left->item < right->item);
}

void trigger_push_begin(struct trigger_op *op, trigger_fill_fn *fill,
                        trigger_pushed_fn *done)
{
    size_t count = 0;
    for (size_t i = 0; i < op->count; i++)
        count += op->items[i].pushes[0] != '\0';
    struct pushing *pushing = mem_alloc(sizeof(*pushing) + count * sizeof(struct push));
    *pushing = (struct pushing){ .op = op, .fill = fill, .done = done };
    for (size_t i = 0; i < op->count; i++)
        if (op->items[i].pushes[0])
            pushing->pushes[pushing->count++] =
                (struct push){ .pushing = pushing, .item = &op->items[i] };
    qsort(pushing->pushes, pushing->count, sizeof(struct push), newest_first);
    look_up_packets(pushing);
}
