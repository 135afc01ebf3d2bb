/* timers.c - a binary heap in an array; each timer knows its place in it. */
#include "base/timers.h"

#include <assert.h>
#include <stddef.h>

#include "base/mem.h"

enum {
    FIRST_CAPACITY = 64,
    KIND_MAX = sizeof(((struct timers *)0)->kinds) / sizeof(timer_fn *),
};

void timers_init(struct timers *timers)
{
    *timers = (struct timers){ 0 };
}

void timers_finish(struct timers *timers)
{
    for (uint32_t i = 1; i <= timers->count; i++)
        timers->heap[i]->place = 0;
    free(timers->heap);
    *timers = (struct timers){ 0 };
}

uint32_t timers_kind(struct timers *timers, timer_fn *fn)
{
    for (uint32_t kind = 0; kind < timers->kind_count; kind++)
        if (timers->kinds[kind] == fn)
            return kind;
    assert(timers->kind_count < KIND_MAX);
    timers->kinds[timers->kind_count] = fn;
    return timers->kind_count++;
}

static void put(struct timers *timers, struct timer *timer, uint32_t place)
{
    timers->heap[place] = timer;
    timer->place = place;
}

static void move_up(struct timers *timers, struct timer *timer, uint32_t place)
{
    for (; place > 1 && timers->heap[place / 2]->at_ms > timer->at_ms; place /= 2)
        put(timers, timers->heap[place / 2], place);
    put(timers, timer, place);
}

static void move_down(struct timers *timers, struct timer *timer, uint32_t place)
{
    while (place <= timers->count / 2) {
        uint32_t child = place * 2;
        if (child < timers->count &&
            timers->heap[child + 1]->at_ms < timers->heap[child]->at_ms)
            child++;
        if (timers->heap[child]->at_ms >= timer->at_ms)
            break;
        put(timers, timers->heap[child], place);
        place = child;
    }
    put(timers, timer, place);
}

static void settle(struct timers *timers, struct timer *timer, uint32_t place)
{
    if (place > 1 && timers->heap[place / 2]->at_ms > timer->at_ms)
        move_up(timers, timer, place);
    else
        move_down(timers, timer, place);
}

static uint32_t new_place(struct timers *timers)
{
    if (timers->count + 1 >= timers->capacity) {
        timers->capacity = timers->capacity ? timers->capacity * 2 : FIRST_CAPACITY;
        timers->heap = mem_resize(timers->heap, timers->capacity * sizeof(struct timer *));
    }
    return ++timers->count;
}

void timers_set(struct timers *timers, struct timer *timer, uint32_t kind, int64_t at_ms)
{
    assert(kind < timers->kind_count);
    uint32_t place = timer->place ? timer->place : new_place(timers);
    timer->kind = kind;
    timer->at_ms = at_ms;
    timers->heap[place] = timer;
    settle(timers, timer, place);
}

void timers_clear(struct timers *timers, struct timer *timer)
{
    uint32_t place = timer->place;
    if (!place)
        return;
    timer->place = 0;
    struct timer *last = timers->heap[timers->count--];
    if (last != timer)
        settle(timers, last, place);
}

int64_t timers_next(const struct timers *timers)
{
    return timers->count ? timers->heap[1]->at_ms : INT64_MAX;
}

bool timers_run(struct timers *timers, int64_t now_ms, unsigned limit)
{
    while (limit-- && timers->count && timers->heap[1]->at_ms <= now_ms) {
        struct timer *timer = timers->heap[1];
        timers_clear(timers, timer);
        timers->kinds[timer->kind](timer); /* may free the timer */
    }
    return timers->count && timers->heap[1]->at_ms <= now_ms;
}
