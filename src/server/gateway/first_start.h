/* first_start.h - the first start on an empty data directory: its keys and what to type next.
 *
 * The accounts are made while the gateway loads (load.h). The keys are printed once it is ready, as
 * the last lines on a terminal. */
#pragma once

#include <stdio.h>

#include "accounts/bootstrap.h"

struct first_start {
    FILE *out;        /* NULL: no accounts are made */
    bool prints_keys; /* to out; else a line that says how to get them */
    const char *data; /* the directory, for that line */
    const char *url;  /* where clients find the gateway */
    const char
        *dashboard_url; /* "": the dashboard is off; not http…: no browser reaches it */
    struct bootstrap made;
    bool is_made; /* the store has it */
};

/* Reads or draws what the first start makes. ERR_INVALID: a value that was given is invalid. */
enum err first_start_prepare(struct first_start *first, struct failure *why);

/* Prints what was made, once; nothing if the store had accounts already. */
void first_start_print(struct first_start *first);

/* Wipes the secrets. */
void first_start_finish(struct first_start *first);
