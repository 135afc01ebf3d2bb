/* order.c - runs of one topic by last change: append, clear, compact, find.
 *
 *   rev   4    7    8    9   12   15
 *       [ B ][ - ][ C ][ - ][ A ][ D ]      A changed: its place at 7 is cleared, 12 is new
 *
 * A cleared place keeps its rev, so that binary search still works. It is stored as twice
 * the rev plus one: odd, unlike the address of a run.
 *
 * An insert leaves cleared places of the same rev after its run. At start, inserts go
 * downwards: each finds such a place nearby, so the runs after it need not move. */
#include "core/changes/order.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/changes/tracked.h"

enum {
    COMPACT_FROM = 16,
    SPARE_MAX = 255, /* cleared places that an insert adds */
    NEAR = 512,      /* places among which the next insert looks for a cleared one */
};

void order_finish(struct order *order)
{
    free(order->places);
    *order = (struct order){ 0 };
}

static bool is_cleared(uint64_t place)
{
    return place & 1;
}

static uint64_t cleared(uint64_t rev)
{
    return rev << 1 | 1;
}

static struct tracked *run_of(uint64_t place)
{
    return (struct tracked *)(uintptr_t)place;
}

static uint64_t rev_at(const struct order *order, uint32_t at)
{
    uint64_t place = order->places[at];
    return is_cleared(place) ? place >> 1 : run_of(place)->run.rev;
}

struct place order_place(const struct order *order, uint32_t at)
{
    uint64_t place = order->places[at];
    return (struct place){ rev_at(order, at), is_cleared(place) ? NULL : run_of(place) };
}

static void compact(struct order *order)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < order->count; i++)
        if (!is_cleared(order->places[i]))
            order->places[kept++] = order->places[i];
    order->count = kept;
    if (order->capacity > COMPACT_FROM && order->capacity > 4 * kept) {
        order->capacity = kept < COMPACT_FROM / 2 ? COMPACT_FROM : kept * 2;
        order->places = mem_resize(order->places, order->capacity * sizeof(uint64_t));
    }
}

/* Makes space for more places. Doubling would leave a million runs with half their places
 * unused, so a large array grows by a quarter. */
static void make_room(struct order *order, uint32_t places)
{
    uint32_t count = order->count + places;
    if (count <= order->capacity)
        return;
    uint32_t more = order->capacity < 1024 ? order->capacity : order->capacity / 4;
    order->capacity += more ? more : 2;
    if (order->capacity < count)
        order->capacity = count;
    order->places = mem_resize(order->places, order->capacity * sizeof(uint64_t));
}

void order_append(struct order *order, struct tracked *run)
{
    assert(order->count == 0 || rev_at(order, order->count - 1) < run->run.rev);
    make_room(order, 1);
    order->places[order->count++] = (uintptr_t)run;
    order->runs++;
}

static uint32_t free_places(const struct order *order, uint32_t at)
{
    if (at == order->count)
        return 0; /* at the end nothing has to move */
    return order->count / 8 < SPARE_MAX ? order->count / 8 : SPARE_MAX;
}

/* Returns the index of a cleared place at or after the given one. Makes some if none is
 * near. */
static uint32_t cleared_place(struct order *order, uint32_t at, uint64_t rev)
{
    uint32_t end = order->count - at < NEAR ? order->count : at + NEAR;
    for (uint32_t i = at; i < end; i++)
        if (is_cleared(order->places[i]))
            return i;
    uint32_t more = 1 + free_places(order, at);
    make_room(order, more);
    memmove(order->places + at + more, order->places + at,
            (order->count - at) * sizeof(uint64_t));
    for (uint32_t i = at; i < at + more; i++)
        order->places[i] = cleared(rev);
    order->count += more;
    return at;
}

void order_insert(struct order *order, struct tracked *run)
{
    uint32_t at = order_after(order, run->run.rev);
    if (at > 0 && rev_at(order, at - 1) == run->run.rev) {
        assert(is_cleared(order->places[at - 1]));
        order->places[at - 1] = (uintptr_t)run;
    } else {
        uint32_t place = cleared_place(order, at, run->run.rev);
        memmove(order->places + at + 1, order->places + at,
                (place - at) * sizeof(uint64_t));
        order->places[at] = (uintptr_t)run;
    }
    order->runs++;
}

void order_clear(struct order *order, uint64_t rev)
{
    uint32_t at = order_after(order, rev);
    while (at > 0 && order->places[at - 1] == cleared(rev))
        at--; /* spare places of its insert */
    if (at == 0 || is_cleared(order->places[at - 1]) || rev_at(order, at - 1) != rev)
        return;
    order->places[at - 1] = cleared(rev);
    order->runs--;
    if (order->count >= COMPACT_FROM && order->runs < order->count / 2)
        compact(order);
}

uint32_t order_after(const struct order *order, uint64_t rev)
{
    uint32_t low = 0, high = order->count;
    if (high && rev_at(order, high - 1) <= rev)
        return high; /* the usual case: nothing newer */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (rev_at(order, middle) <= rev)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
