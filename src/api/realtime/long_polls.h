/* long_polls.h - all long polls, for api/router/services.c. */
#pragma once

#include <stddef.h>

#include "base/loop.h"

struct long_polls;

struct long_polls *long_polls_create(struct loop *loop);

/* Ends the kept views of polls; held polls are answered by api_stop. Returns false if the
 * timeslice's time is used up and some are left; without a timeslice (NULL) it ends all. */
bool long_polls_stop(struct long_polls *polls, struct timeslice *timeslice);
