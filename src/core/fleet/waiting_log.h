/* waiting_log.h - picks a run of each environment to log because no worker executes it. */
#pragma once

#include <stdbool.h>

#include "base/timers.h"
#include "runcast/run.h"

struct environment;
struct tracked;

struct waiting_log {
    struct environment *env;
    struct timer timer;
    char first[RUN_ID_MAX];  /* the run that is watched; "": none */
    char newest[RUN_ID_MAX]; /* the last run placed after it */
    bool is_logged;          /* the first one was logged */
};

/* The run was placed in a queue: if it is still waiting in 10 s, it may be logged. */
void waiting_log_note(struct tracked *run);

/* Handler of waiting_log::timer. */
void waiting_log_on_time(struct timer *timer);
