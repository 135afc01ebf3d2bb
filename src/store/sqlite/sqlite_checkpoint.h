/* sqlite_checkpoint.h - copies the log into the database, on a thread of its own. */
#pragma once

#include <uv.h>

#include "store/sqlite/sqlite_db.h"

struct sqlite_checkpoint {
    const struct sqlite_options *options;
    uv_thread_t thread;
    uv_mutex_t lock;
    uv_cond_t changed;
    /* The lock guards: */
    bool wanted;   /* begun, and not through */
    bool through;  /* and nobody has taken its result */
    bool stopping; /* when nothing is wanted any more */
    int code;      /* the result; SQLITE_BUSY: it was not possible, which is no harm */
};

/* False when there is no thread to be had; nothing is to be stopped then. */
bool sqlite_checkpoint_start(struct sqlite_checkpoint *checkpoint,
                             const struct sqlite_options *options);

/* What was begun is through when this returns. */
void sqlite_checkpoint_stop(struct sqlite_checkpoint *checkpoint);

/* Begins a checkpoint; harmless while one is under way. */
void sqlite_checkpoint_begin(struct sqlite_checkpoint *checkpoint);

/* True, once, when the checkpoint that was begun is through. wait: returns when it is. */
bool sqlite_checkpoint_take(struct sqlite_checkpoint *checkpoint, bool wait, int *code);
