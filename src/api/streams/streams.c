/* streams.c - creates and destroys the state that all streams share. */
#include "api/streams/streams.h"

#include "api/streams/stream_read.h"
#include "api/streams/stream_sets.h"
#include "base/mem.h"

struct streams *streams_create(struct loop *loop, struct quotas *quotas, size_t budget,
                               size_t stream_bytes)
{
    struct streams *streams = mem_new(struct streams);
    streams->loop = loop;
    streams->quotas = quotas;
    streams->budget = budget;
    streams->stream_bytes = stream_bytes;
    list_init(&streams->ready);
    streams->flusher.fn = stream_readers_flush;
    loop_add_flusher(loop, &streams->flusher);
    streams->kind = timers_kind(loop_timers(loop), stream_reader_on_time);
    return streams;
}

void streams_destroy(struct streams *streams)
{
    if (!streams)
        return;
    loop_remove_flusher(&streams->flusher);
    uint32_t at = 0;
    for (struct stream_set *set; (set = slots_next(&streams->sets, &at));) {
        stream_set_finish(set);
        free(set);
    }
    slots_finish(&streams->sets);
    free(streams);
}
