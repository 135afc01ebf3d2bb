/* sqlite_checkpoint.h - copies the log into the database, on its own thread. */
#pragma once

#include <uv.h>

#include "store/sqlite/sqlite_db.h"

struct sqlite_checkpoint {
    const struct sqlite_options *options;
    uv_thread_t thread;
    uv_mutex_t lock;
    uv_cond_t changed;
    /* Guarded by the lock: */
    bool wanted;   /* a checkpoint was begun and has not ended */
    bool through;  /* it has ended, and its result is still to be taken */
    bool stopping; /* exit once nothing is wanted */
    int code;      /* the result; SQLITE_BUSY: not possible now, which is harmless */
};

/* Starts the thread. Returns false if that fails; sqlite_checkpoint_stop must not be called
 * then. */
bool sqlite_checkpoint_start(struct sqlite_checkpoint *checkpoint,
                             const struct sqlite_options *options);

/* Finishes a checkpoint in progress, then ends the thread. */
void sqlite_checkpoint_stop(struct sqlite_checkpoint *checkpoint);

/* Begins a checkpoint. Does nothing while one is in progress. */
void sqlite_checkpoint_begin(struct sqlite_checkpoint *checkpoint);

/* Returns true once for each checkpoint that has ended. wait: first waits for its end. */
bool sqlite_checkpoint_take(struct sqlite_checkpoint *checkpoint, bool wait, int *code);
