/* load.h - from the store into memory: accounts, workers, runs. */
#pragma once

#include <stdio.h>

#include "accounts/accounts.h"
#include "base/error.h"
#include "core/engine/engine.h"

struct api;

/* Documents of several kinds, one kind after the other, each taken in stints. */
struct load_documents {
    struct store *store;
    struct loop *loop;
    const enum document_kind *kinds; /* the caller's until done */
    size_t kind_count;
    uint32_t env; /* or ENV_EVERY */
    /* The document is borrowed. What is refused ends the load, with this reason in why. */
    enum err (*take)(struct load_documents *load, const struct document *document,
                     struct failure *why);
    void (*done)(struct load_documents *load, enum err status);
    struct failure why;

    struct store_scan scan;
    size_t kind;
    struct deferred taking; /* of what was scanned */
    size_t taken;
    enum err refused;
};

/* Who exists; makes the first accounts when the store is empty and prints their keys. */
struct load_accounts {
    struct store *store;
    struct accounts *accounts;
    struct loop *loop;
    FILE *first_keys; /* NULL: an empty store stays empty */
    bool prints_keys; /* there; else a line that says how to get them */
    const char *data; /* the directory, for that line */
    const char *url;  /* what the printed lines tell users to export */
    void (*done)(struct load_accounts *load, enum err status);
    struct failure why;

    struct load_documents documents;
    struct store_commit commit;
    struct change changes[16];
};
void load_accounts_begin(struct load_accounts *load);

/* Environments, worker versions, queues and schedules, and of the runs every unfinished one
 * and the newest others up to half the memory budget, for at most 2 s. */
struct load_runs {
    struct engine *engine;
    struct accounts *accounts;
    struct api *api;
    void (*done)(struct load_runs *load, enum err status);
    struct failure why;

    struct load_documents documents;
    struct account *account;  /* whose runs are being loaded */
    struct store_walk walk;   /* of the page that is being read, or was last */
    bool is_ahead, is_read;   /* it was asked for while another is taken; it has come, */
    enum store_status status; /* so */
    bool is_taking;           /* a page */
    struct deferred taking;
    struct run *runs; /* of that page */
    size_t count, taken;
    bool more;        /* behind that page */
    uint64_t last;    /* rev of its last run */
    int64_t until_ms; /* monotonic: the newest are loaded until then */
};
void load_runs_begin(struct load_runs *load);
