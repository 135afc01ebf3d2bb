/* order.c - runs of one topic by last change: append, clear, squeeze, find.
 *
 *   rev   4    7    8    9   12   15
 *       [ B ][ - ][ C ][ - ][ A ][ D ]      A changed: its place at 7 is cleared, 12 is new
 *
 * Cleared places keep their rev, so that binary search goes on working. */
#include "live/order.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { SQUEEZE_FROM = 16 };

void order_finish(struct order *order)
{
    free(order->places);
    *order = (struct order){ 0 };
}

static void squeeze(struct order *order)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < order->count; i++)
        if (order->places[i].run)
            order->places[kept++] = order->places[i];
    order->count = kept;
    if (order->capacity > SQUEEZE_FROM && order->capacity > 4 * kept) {
        order->capacity = kept < SQUEEZE_FROM / 2 ? SQUEEZE_FROM : kept * 2;
        order->places = mem_resize(order->places, order->capacity * sizeof(struct place));
    }
}

/* Doubling would leave a million runs with half their places unused: grow by a quarter
 * once it is large. */
static void make_room(struct order *order)
{
    if (order->count < order->capacity)
        return;
    uint32_t more = order->capacity < 1024 ? order->capacity : order->capacity / 4;
    order->capacity += more ? more : 2;
    order->places = mem_resize(order->places, order->capacity * sizeof(struct place));
}

void order_append(struct order *order, uint64_t rev, struct tracked *run)
{
    assert(order->count == 0 || order->places[order->count - 1].rev < rev);
    make_room(order);
    order->places[order->count++] = (struct place){ rev, run };
    order->runs++;
}

void order_insert(struct order *order, uint64_t rev, struct tracked *run)
{
    uint32_t at = order_after(order, rev);
    if (at > 0 && order->places[at - 1].rev == rev) {
        assert(!order->places[at - 1].run);
        order->places[at - 1].run = run;
    } else {
        make_room(order);
        memmove(order->places + at + 1, order->places + at,
                (order->count - at) * sizeof(struct place));
        order->places[at] = (struct place){ rev, run };
        order->count++;
    }
    order->runs++;
}

void order_clear(struct order *order, uint64_t rev)
{
    uint32_t at = order_after(order, rev);
    if (at == 0 || order->places[at - 1].rev != rev || !order->places[at - 1].run)
        return;
    order->places[at - 1].run = NULL;
    order->runs--;
    if (order->count >= SQUEEZE_FROM && order->runs < order->count / 2)
        squeeze(order);
}

uint32_t order_after(const struct order *order, uint64_t rev)
{
    uint32_t low = 0, high = order->count;
    if (high && order->places[high - 1].rev <= rev)
        return high; /* the usual case: nothing new */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (order->places[middle].rev <= rev)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
