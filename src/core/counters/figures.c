/* figures.c - assigns counters to environments, and counts. */
#include "core/counters/figures.h"

static struct figures *find(struct figures_table *table, uint32_t number)
{
    struct figures *free = NULL;
    for (size_t i = 0; i < FIGURES_MAX; i++) {
        struct figures *figures = &table->first[i];
        if (figures->number == number)
            return figures;
        if (!free && !figures->number)
            free = figures;
    }
    return free;
}

struct figures *figures_join(struct figures_table *table, uint32_t number)
{
    struct figures *figures = find(table, number);
    if (!figures)
        return &table->rest;
    figures->number = number;
    figures->users++;
    return figures;
}

void figures_leave(struct figures *figures)
{
    if (figures->number && !--figures->users)
        *figures = (struct figures){ 0 };
}

size_t figures_place(const struct figures_table *table, const struct figures *figures)
{
    return figures == &table->rest ? FIGURES_MAX : (size_t)(figures - table->first);
}

void figures_note_run(struct figures *figures, int before, enum run_status after)
{
    bool was_final = before >= RUN_CANCELED;
    figures->triggers += before < 0;
    if (after >= RUN_CANCELED && !was_final)
        figures->ends[after - RUN_CANCELED]++;
}

void figures_note_wait(struct figures *figures, int64_t us)
{
    buckets_note(&figures->queue_waits, &bounds_of_queues, us);
}
