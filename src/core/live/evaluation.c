/* evaluation.c - evaluates changes for windows, one list of places after the other.
 *
 *   change 71:  all ─► batch ─► task ─► queue ─► its statuses ─► its tags
 *               ├─ window ─ window ─ [paused] ─ window …
 *
 * Where the time slice ends, a link of its own marks the next place, so that windows may
 * come and go until the next turn. */
#include "core/live/evaluation.h"

#include "base/mem.h"
#include "core/live/environment.h"

enum { EVALUATED_AT_ONCE = 8 };

/* Steps of a change: a list of places each. After these come the tags of the run, and those
 * that it had before. */
enum { AT_ALL, AT_BATCH, AT_TASK, AT_QUEUE, AT_STATUS, AT_OLD_STATUS, AT_TAGS };

struct evaluated_change {
    struct run before, after; /* with references of their own; before.id "": created */
    struct list link;         // evaluation::changes
};

void evaluation_init(struct evaluation *evaluation, struct environment *env)
{
    *evaluation = (struct evaluation){ .env = env };
    list_init(&evaluation->changes);
    list_init(&evaluation->paused);
}

static struct evaluated_change *first(const struct evaluation *evaluation)
{
    return container_of(evaluation->changes.next, struct evaluated_change, link);
}

static void drop_first(struct evaluation *evaluation)
{
    struct evaluated_change *change = first(evaluation);
    list_remove(&change->link);
    run_finish(&change->before);
    run_finish(&change->after);
    free(change);
    evaluation->step = 0;
    if (--evaluation->count)
        evaluation->first = first(evaluation)->after.rev;
    else
        evaluation->is_full = false;
}

void evaluation_finish(struct evaluation *evaluation)
{
    list_remove(&evaluation->paused);
    while (evaluation->count)
        drop_first(evaluation);
}

void evaluation_add(struct evaluation *evaluation, struct run *before,
                    const struct run *after)
{
    struct environment *env = evaluation->env;
    struct evaluated_change *change = mem_new(struct evaluated_change);
    change->before = *before;
    *before = (struct run){ 0 };
    run_copy(&change->after, after);
    list_append(&evaluation->changes, &change->link);
    if (!evaluation->count++)
        evaluation->first = after->rev;
    if (evaluation->count >= EVALUATION_MAX)
        evaluation->is_full = true;
    loop_wake(env->loop, &env->hub.flusher);
}

/* ---- the places of a change ---- */

/* The number of the tag, among those of the run and those that it had before. A run may
 * lose tags, and then no other topic of it leads to their windows. */
static const struct bytes *tag_at(const struct evaluated_change *change, uint32_t at)
{
    const struct tag_list *now = change->after.tags, *before = change->before.tags;
    uint32_t count = now ? now->count : 0;
    return at < count ? now->names[at] : before->names[at - count];
}

static uint32_t count_steps(const struct evaluated_change *change)
{
    const struct tag_list *now = change->after.tags, *before = change->before.tags;
    uint32_t lost = before && before != now ? before->count : 0;
    return AT_TAGS + (now ? now->count : 0) + lost;
}

static struct topic *find_topic(struct hub *hub, enum topic_kind kind,
                                const struct bytes *name)
{
    return name ? hub_find(hub, kind, bytes_slice(name)) : NULL;
}

/* Returns NULL if the step is a status, or if there is no such topic. */
static struct topic *topic_at(struct evaluation *evaluation,
                              const struct evaluated_change *change)
{
    struct hub *hub = &evaluation->env->hub;
    const struct run *run = &change->after;
    switch (evaluation->step) {
    case AT_ALL: return &hub->all;
    case AT_BATCH: return find_topic(hub, TOPIC_BATCH, run->batch);
    case AT_TASK: return find_topic(hub, TOPIC_TASK, run->task);
    case AT_QUEUE: return find_topic(hub, TOPIC_QUEUE, run->queue);
    case AT_STATUS:
    case AT_OLD_STATUS: return NULL;
    default: return find_topic(hub, TOPIC_TAG, tag_at(change, evaluation->step - AT_TAGS));
    }
}

static bool changes_status(const struct evaluated_change *change)
{
    return change->before.id[0] && change->before.status != change->after.status;
}

/* Returns NULL if the step has no places. */
static struct list *places_at(struct evaluation *evaluation,
                              const struct evaluated_change *change, struct topic *topic)
{
    struct list *by_status = evaluation->env->windows.by_status;
    if (evaluation->step == AT_STATUS)
        return &by_status[change->after.status];
    if (evaluation->step == AT_OLD_STATUS)
        return changes_status(change) ? &by_status[change->before.status] : NULL;
    return topic ? &topic->places : NULL;
}

/* ---- a time slice ---- */

/* Returns the place at which the list continues, and removes the mark. */
static struct list *resume(struct evaluation *evaluation, const struct list *places)
{
    struct list *paused = &evaluation->paused;
    struct list *next = list_empty(paused) ? places->next : paused->next;
    list_remove(paused);
    return next;
}

/* Returns false if the time slice has ended. */
static bool evaluate_places(struct evaluation *evaluation,
                            const struct evaluated_change *change, struct list *places,
                            struct timeslice *timeslice)
{
    const struct run *before = change->before.id[0] ? &change->before : NULL;
    struct list *link = resume(evaluation, places);
    for (; link != places; link = link->next) {
        if (!timeslice_left_every(timeslice, EVALUATED_AT_ONCE)) {
            list_append(link, &evaluation->paused); /* before the link */
            return false;
        }
        windows_evaluate(container_of(link, struct window_place, link)->window, before,
                         &change->after);
    }
    return true;
}

static bool evaluate_first(struct evaluation *evaluation, struct timeslice *timeslice)
{
    const struct evaluated_change *change = first(evaluation);
    for (uint32_t steps = count_steps(change); evaluation->step < steps;) {
        struct topic *topic = topic_at(evaluation, change);
        struct list *places = places_at(evaluation, change, topic);
        bool was_paused = !list_empty(&evaluation->paused);
        if (places && !evaluate_places(evaluation, change, places, timeslice))
            return false;
        if (topic && was_paused)
            hub_release(&evaluation->env->hub, topic); /* the mark may have kept it */
        evaluation->step++;
    }
    return true;
}

void evaluation_forget(struct evaluation *evaluation)
{
    bool was_paused = !list_empty(&evaluation->paused);
    struct topic *topic = was_paused ? topic_at(evaluation, first(evaluation)) : NULL;
    evaluation_finish(evaluation);
    if (topic)
        hub_release(&evaluation->env->hub, topic);
}

bool evaluation_run(struct evaluation *evaluation)
{
    struct timeslice timeslice = loop_timeslice(evaluation->env->loop);
    while (evaluation->count) {
        if (!evaluate_first(evaluation, &timeslice))
            return false;
        drop_first(evaluation);
    }
    return true;
}
