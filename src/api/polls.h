/* polls.h - all long polls, for api.c. */
#pragma once

#include <stddef.h>

#include "base/loop.h"

struct polls;

struct polls *polls_create(struct loop *loop);

/* What polls left behind ends now; those that are held are answered by api_stop. */
void polls_stop(struct polls *polls);
