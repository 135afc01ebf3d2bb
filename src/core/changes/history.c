/* history.c - a ring of links from each change of a run to its previous one. */
#include "core/changes/history.h"

#include "base/mem.h"

enum { FIRST_CAPACITY = 16 };

void history_finish(struct history *history)
{
    free(history->before);
    *history = (struct history){ 0 };
}

/* Copies every link to its place in a ring of twice the size. */
static void grow(struct history *history)
{
    uint32_t capacity = history->capacity ? 2 * history->capacity : FIRST_CAPACITY;
    uint64_t *before = mem_new_array(uint64_t, capacity);
    for (uint64_t seq = history->first; history->before && seq <= history->last; seq++)
        before[seq % capacity] = history->before[seq % history->capacity];
    free(history->before);
    history->before = before;
    history->capacity = capacity;
}

void history_note(struct history *history, uint64_t seq, uint64_t rev_before)
{
    if (!history->before)
        history->first = seq;
    if (seq - history->first >= history->capacity && history->capacity < HISTORY_SIZE)
        grow(history);
    history->before[seq % history->capacity] = rev_before;
    history->last = seq;
    if (seq - history->first >= history->capacity)
        history->first = seq - history->capacity + 1;
}

uint64_t history_before(const struct history *history, uint64_t seq)
{
    if (!history->before || seq < history->first || seq > history->last)
        return 0;
    return history->before[seq % history->capacity];
}
