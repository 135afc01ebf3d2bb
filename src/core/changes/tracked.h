/* tracked.h - a run in memory. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/timers.h"
#include "core/queues/queue.h"
#include "runcast/run.h"

struct environment;
struct topic;

struct tracked {
    struct run run;
    struct environment *env;
    struct timer timer; /* until due_at, or until the run counts as lost */
    struct queue_item item;
    struct topic *topic; /* for subscriptions to this run; NULL: there are none */
    int64_t alive_until; /* monotonic ms; heartbeats move it */
    /* The same, moved by each poll of the run by the CLI; 0: it does not poll. */
    int64_t polled_until;
    bool in_flight; /* a commit of the run is in flight */
};
