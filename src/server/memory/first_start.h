/* first_start.h - the first start on an empty data directory: its keys and next command.
 *
 * The accounts are created while the gateway loads (load.h). The keys are printed once it
 * is ready, as the last lines on a terminal. */
#pragma once

#include <stdio.h>

#include "accounts/bootstrap.h"

struct first_start {
    FILE *out;        /* NULL: no accounts are created */
    bool prints_keys; /* to out; otherwise a line that names the command for them */
    const char *data; /* the directory, for that line */
    const char *url;  /* where clients reach the gateway */
    /* "": the dashboard is off; without "http": no browser can reach it */
    const char *dashboard_url;
    struct bootstrap made;
    bool is_made; /* the accounts are stored */
};

/* Reads the keys from the environment, or generates them. ERR_INVALID: one is invalid. */
enum err first_start_prepare(struct first_start *first, struct failure *why);

/* Prints what was created, once; nothing if the store already had accounts. */
void first_start_print(struct first_start *first);

/* Wipes the secrets. */
void first_start_finish(struct first_start *first);
