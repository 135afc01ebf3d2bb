/* load.h - loads accounts, workers and runs from the store into memory. */
#pragma once

#include "accounts/accounts.h"
#include "base/error.h"
#include "core/engine/engine.h"
#include "server/memory/first_start.h"

struct api;

/* Loads documents of several kinds, one kind after the other, in time slices. */
struct load_documents {
    struct store *store;
    struct loop *loop;
    const enum document_kind *kinds; /* the caller's until done */
    size_t kind_count;
    uint32_t env;    /* or ENV_EVERY */
    bool with_rates; /* then loads the claims of CLAIM_RATE, too */
    /* Borrows the document. An error ends the load, with its reason in why. */
    enum err (*take)(struct load_documents *load, const struct document *document,
                     struct failure *why);
    void (*done)(struct load_documents *load, enum err status);
    struct failure why;

    struct store_scan scan;
    size_t kind;
    struct deferred taking; /* takes scanned documents */
    size_t taken;
    enum err refused;
};

/* Begins with the kinds of accounts; the caller has set the other members. */
void load_documents_of_accounts(struct load_documents *load);

/* Loads accounts; if the store is empty, creates the first ones in first. */
struct load_accounts {
    struct store *store;
    struct accounts *accounts;
    struct loop *loop;
    struct first_start *first; /* NULL: do not create any */
    void (*done)(struct load_accounts *load, enum err status);
    struct failure why;

    struct load_documents documents;
    struct store_commit commit;
    struct change changes[16];
};
void load_accounts_begin(struct load_accounts *load);

/* Call it once accounts are in memory that were not loaded here: settles the vault, and which
 * number the next environment gets. load has no first and no done. */
enum err load_accounts_settle(struct load_accounts *load);

/* Loads environments, worker versions, queues, schedules, all unfinished runs, and the
 * newest others up to half the memory budget, for at most 2 s per environment. */
struct load_runs {
    struct engine *engine;
    struct accounts *accounts;
    struct api *api;
    /* Unfinished runs of environments in memory are there, because this gateway has followed a
     * leader: they are taken over. all_is_there: those of all environments are. */
    bool was_following, all_is_there;
    bool knows_newest; /* the newest runs need not be read */
    void (*done)(struct load_runs *load, enum err status);
    struct failure why;

    struct load_documents documents;
    struct account *account; /* its runs are loaded */
    struct store_walk walk;  /* the page that is being read, or was read last */
    /* is_ahead: walk was begun while the previous page is being taken. is_read: walk has
     * ended, with this status. */
    bool is_ahead, is_read;
    enum store_status status;
    bool is_taking; /* a page is being taken, that is, its runs are put into memory */
    struct deferred taking, taking_over;
    uint64_t taken_over; /* engine_take_over */
    struct run *runs;    /* of the page that is being taken */
    size_t count, taken;
    bool more;        /* there are more pages */
    uint64_t last;    /* rev of its last run */
    int64_t until_ms; /* load newest runs until then, monotonic */
};
void load_runs_begin(struct load_runs *load);
