/* long_polls.h - all long polls, for api/router/services.c. */
#pragma once

#include <stddef.h>

#include "base/loop.h"

struct long_polls;

struct long_polls *long_polls_create(struct loop *loop);

/* Ends the polls' kept views; api_stop replies to held polls. Returns false if the time
 * slice is used up and some are left; without one (NULL), ends all. */
bool long_polls_stop(struct long_polls *polls, struct timeslice *timeslice);
