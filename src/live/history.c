/* history.c - a circle of links from each change of a run to the one before. */
#include "live/history.h"

#include "base/mem.h"

void history_finish(struct history *history)
{
    free(history->before);
    *history = (struct history){ 0 };
}

void history_note(struct history *history, uint64_t seq, uint64_t rev_before)
{
    if (!history->before) {
        history->before = mem_new_array(uint64_t, HISTORY_SIZE);
        history->first = seq;
    }
    history->before[seq % HISTORY_SIZE] = rev_before;
    history->last = seq;
    if (seq - history->first >= HISTORY_SIZE)
        history->first = seq - HISTORY_SIZE + 1;
}

uint64_t history_before(const struct history *history, uint64_t seq)
{
    if (!history->before || seq < history->first || seq > history->last)
        return 0;
    return history->before[seq % HISTORY_SIZE];
}
