/* pg_writer.h - group commit: a connection that writes, and the few of them that there are.
 *
 * An environment has one writer (env % count), so what is written in it is written in order. */
#pragma once

#include "store/commit_line.h"
#include "store/commit_report.h"
#include "store/pg/pg_lead.h"
#include "store/pg/pg_link.h"

struct pg_writers;

/* What a writer has sent, or sends again when it is connected. */
enum pg_step {
    PG_REST,  /* nothing */
    PG_LEAD,  /* an environment is new: lead_v100 makes its row; then the group */
    PG_GROUP, /* commit_v100 */
    PG_PURGE, /* purge_v100 */
    PG_BURN,  /* commit_v100 of nothing, under a number that may be under way still */
};

struct pg_writer {
    struct pg_writers *all;
    int64_t id;
    struct pg_link link;
    struct commit_line line; /* of commits that wait */
    struct list purges;      // store_purge::link; wait
    struct list alone;       // store_commit::link; of a group that was refused: one by one
    struct list group;       // store_commit::link; under way
    struct store_purge *purge; /* the same */
    enum pg_step step;
    int64_t number; /* of what is under way, or of the next */
    bool haunted;   /* it was sent on a connection that was lost: it may come to life yet */
    /* What is under way gets this once its number is burnt; or goes one by one. */
    enum store_status verdict;
    bool one_by_one;
    struct pg_group encoded; /* what is under way */
    struct pg_group nothing; /* what burns a number */
    struct pg_params params;
    struct pg_lead_call lead_call;
    bool lead_called; /* lead_call has something */
    int64_t sent_us;
    int64_t swept_at; /* Unix ms, of the last look for expired claims */
    uv_timer_t patience;
    bool purge_was_last; /* of what was taken */
    bool failing, full;
    uint64_t
        next_try; /* uv_hrtime: while full or refused, who comes earlier fails at once */
    char trouble[256];
};

struct pg_writers {
    uv_loop_t *loop;
    const struct pg_options *options;
    struct pg_lead *lead;
    struct commit_report report;
    struct pg_types types; /* of the schema */
    char timeline[9];      /* of the server that we joined */
    struct pg_writer writers[PG_WRITERS_MAX];
    unsigned count;
    struct list wide; // store_commit::link; of several writers' environments: when all rest
    struct list done; // store_commit::link
    struct list purges_done; // store_purge::link
    uv_async_t finished;
    uv_timer_t farewell; /* how long an end waits for the database */
    bool gone;           /* somebody else has our writers: nothing is ours any more */
    unsigned open;       /* links and timers that are not closed yet */
    bool stopping, closing;
    bool over; /* the farewell is: nothing is sent any more */
    void (*stopped_fn)(struct pg_writers *writers);
};

/* The caller has set options, lead and report. The connection, of which hello is, is taken over
 * unless this fails; more are opened before it returns, so that the first commits find them. */
enum err pg_writers_start(struct pg_writers *writers, uv_loop_t *loop, PGconn *conn,
                          const struct pg_hello *hello, struct failure *why);

/* store->share_of decides whose turn the commit is (commit_line.h). */
void pg_writers_commit(struct pg_writers *writers, const struct store *store,
                       struct store_commit *req);
void pg_writers_purge(struct pg_writers *writers, struct store_purge *req);

/* As store_ops::hurry. */
void pg_writers_hurry(struct pg_writers *writers);

/* Everything begun is done and reported first, if the database answers within a few seconds. */
void pg_writers_stop(struct pg_writers *writers,
                     void (*stopped)(struct pg_writers *writers));

/* ---- between pg_writer.c and pg_writers.c ---- */

void pg_writer_begin(struct pg_writers *writers, unsigned which, PGconn *conn,
                     const struct pg_hello *hello);
bool pg_writer_rests(const struct pg_writer *writer);
bool pg_writer_has_work(const struct pg_writer *writer);
/* Sends what is next, if nothing is under way. */
void pg_writer_go_on(struct pg_writer *writer);
/* What is under way and what waits gets the status, whatever comes of it. */
void pg_writer_give_up(struct pg_writer *writer, enum store_status status);
void pg_writer_close(struct pg_writer *writer);
void pg_writer_finish(struct pg_writer *writer);

void pg_writers_go_on(struct pg_writers *writers);
bool pg_writers_rest(const struct pg_writers *writers);
/* They are reported later. */
void pg_writers_finish(struct pg_writers *writers, struct store_commit *req,
                       enum store_status status);
void pg_writers_finish_all(struct pg_writers *writers, struct list *commits,
                           enum store_status status);
void pg_writers_finish_purge(struct pg_writers *writers, struct store_purge *req,
                             enum store_status status);
void pg_writers_finish_purges(struct pg_writers *writers, struct list *purges,
                              enum store_status status);
/* The store fails, or is full, when one of them does, or is. */
void pg_writers_follow(struct pg_writers *writers);
/* Somebody else leads: what waits was not written, what was sent may have been. */
void pg_writers_lose(struct pg_writers *writers, const char *reason);
/* A link or a timer of theirs is closed. */
void pg_writers_closed(struct pg_writers *writers);
