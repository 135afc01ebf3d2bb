/* long_polls.h - all long polls, for api/router/services.c. */
#pragma once

#include <stddef.h>

#include "base/loop.h"

struct long_polls;

struct long_polls *long_polls_create(struct loop *loop);

/* What polls left behind ends; those that are held are answered by api_stop. False: the stint
 * is over with some left; NULL: it never is. */
bool long_polls_stop(struct long_polls *polls, struct stint *stint);
