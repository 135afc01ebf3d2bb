/* absent.h - what Trigger.dev has and runcast has not: its paths are 404 in words. */
#pragma once

#include "base/slice.h"

/* What Trigger.dev has at the path; NULL: nothing that runcast lacks. */
const char *absent_at(struct slice path);
