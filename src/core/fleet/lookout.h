/* lookout.h - which run of an environment the log may have to speak of, because nobody
 * executes it. */
#pragma once

#include <stdbool.h>

#include "base/timers.h"
#include "runcast/run.h"

struct environment;
struct tracked;

struct lookout {
    struct environment *env;
    struct timer timer;
    char first[RUN_ID_MAX];  /* the run that is looked at; "": none */
    char newest[RUN_ID_MAX]; /* the last one that was placed behind it */
    bool is_told;            /* of the first */
};

/* The run has got its place: in 10 s the log may have to speak of it. */
void lookout_note(struct tracked *run);

/* What lookout::timer does. */
void lookout_on_time(struct timer *timer);
