/* admission.c - takes places for dequeued runs, and queues the runs that get none yet. */
#include "supervisor/supervise/admission.h"

#include "base/log.h"
#include "base/mem.h"
#include "supervisor/runners/workload.h"

enum { WAITING_MS = 40 * 1000 /* below the shortest usual lease */ };

/* A run that waits for a place. */
struct waiting_run {
    struct run_message message;
    struct machine_place place;
    int64_t until_ms;
    struct list link; // admission::waiting
};

struct admission {
    struct runner_shared *shared;
    struct workload *workload;
    void (*on_room)(void *owner);
    void *owner;
    struct list waiting; // waiting_run::link
    struct timer timer;
    uint32_t kind;
};

static void admission_begin(struct admission *admission, struct run_message *message,
                            const struct machine_place *place)
{
    if (!workload_hand_over(admission->workload, message, place))
        runner_begin(admission->shared, message, place);
}

static bool take_place(struct admission *admission, struct run_message *message,
                       struct machine_place *place)
{
    switch (place_take(admission->shared->places, place)) {
    case PLACE_ALONE:
        log_warn("run needs more than the whole machine; executing it alone", "run",
                 message->run, NULL);
        admission_begin(admission, message, place);
        return true;
    case PLACE_TAKEN: admission_begin(admission, message, place); return true;
    case PLACE_NEVER:
        runner_refuse(
            admission->shared, message,
            "its machine preset is larger than all capacity of this supervise role");
        return true;
    case PLACE_LATER: break;
    }
    return false;
}

/* ---- waiting runs ---- */

static struct waiting_run *first_of(const struct admission *admission)
{
    return container_of(admission->waiting.next, struct waiting_run, link);
}

static void set_timer(struct admission *admission)
{
    struct loop *loop = admission->shared->loop;
    if (list_empty(&admission->waiting))
        return;
    int64_t left = first_of(admission)->until_ms - loop_now_ms(loop);
    loop_set_timer(loop, &admission->timer, admission->kind, left > 0 ? left : 0);
}

static void add_waiting(struct admission *admission, struct run_message *message,
                        const struct machine_place *place)
{
    struct waiting_run *waiting = mem_new(struct waiting_run);
    waiting->message = *message;
    waiting->place = *place;
    waiting->until_ms = loop_now_ms(admission->shared->loop) + WAITING_MS;
    list_append(&admission->waiting, &waiting->link);
    set_timer(admission);
}

static void give_back(struct admission *admission, struct waiting_run *waiting,
                      const char *reason)
{
    list_remove(&waiting->link);
    runner_refuse(admission->shared, &waiting->message, reason);
    free(waiting);
}

static void on_time(struct timer *timer)
{
    struct admission *admission = container_of(timer, struct admission, timer);
    int64_t now = loop_now_ms(admission->shared->loop);
    while (!list_empty(&admission->waiting) && first_of(admission)->until_ms <= now)
        give_back(admission, first_of(admission),
                  "this supervise role has no free capacity for its machine");
    set_timer(admission);
    admission->on_room(admission->owner);
}

/* ---- interface ---- */

struct admission *admission_create(struct runner_shared *shared, struct workload *workload,
                                   void (*on_room)(void *owner), void *owner)
{
    struct admission *admission = mem_new(struct admission);
    *admission = (struct admission){
        .shared = shared, .workload = workload, .on_room = on_room, .owner = owner
    };
    list_init(&admission->waiting);
    admission->kind = timers_kind(loop_timers(shared->loop), on_time);
    return admission;
}

void admission_destroy(struct admission *admission)
{
    free(admission);
}

void admission_take(struct admission *admission, struct run_message *message)
{
    struct machine_place place = place_of(message->cores, message->gigabytes);
    if (!list_empty(&admission->waiting) || !take_place(admission, message, &place))
        add_waiting(admission, message, &place);
}

void admission_look(struct admission *admission)
{
    while (!list_empty(&admission->waiting)) {
        struct waiting_run *waiting = first_of(admission);
        if (!take_place(admission, &waiting->message, &waiting->place))
            break;
        list_remove(&waiting->link);
        free(waiting);
    }
}

void admission_give_back(struct admission *admission, const char *reason)
{
    timers_clear(loop_timers(admission->shared->loop), &admission->timer);
    while (!list_empty(&admission->waiting))
        give_back(admission, first_of(admission), reason);
}

unsigned admission_machines(const struct admission *admission)
{
    return list_empty(&admission->waiting) ? places_machines(admission->shared->places) : 0;
}

bool admission_write_capacity(const struct admission *admission, struct buf *out)
{
    double cores, gigabytes;
    if (!places_left(admission->shared->places, &cores, &gigabytes))
        return false;
    buf_add_text(out, "{\"cpu\":");
    buf_add_json_double(out, cores);
    buf_add_text(out, ",\"memory\":");
    buf_add_json_double(out, gigabytes);
    buf_add_char(out, '}');
    return true;
}
