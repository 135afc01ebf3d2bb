/* seat.h - where an item of queue.h waits or runs, without limits. */
#pragma once

#include "core/queues/queue.h"

#define SEAT(queue_name, concurrency_key)                                                  \
    ((struct queue_seat){ .queue = (queue_name), .key = (concurrency_key) })
