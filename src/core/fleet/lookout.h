/* lookout.h - picks one run for each environment to log, because no worker executes it. */
#pragma once

#include <stdbool.h>

#include "base/timers.h"
#include "runcast/run.h"

struct environment;
struct tracked;

struct lookout {
    struct environment *env;
    struct timer timer;
    char first[RUN_ID_MAX];  /* the run that is watched; "": none */
    char newest[RUN_ID_MAX]; /* the last run that was placed after it */
    bool is_told;            /* the first one was logged */
};

/* The run was placed: if it still waits in 10 s, it may be logged. */
void lookout_note(struct tracked *run);

/* Handler of lookout::timer. */
void lookout_on_time(struct timer *timer);
