/* pg_writer.h - writes groups of commits on a few connections, each of which is a writer.
 *
 * An environment always has the same writer (env % count), so its commits are written in
 * order. */
#pragma once

#include "store/commit_line.h"
#include "store/commit_report.h"
#include "store/pg/pg_lead.h"
#include "store/pg/pg_link.h"

struct pg_writers;

/* The statement that a writer has sent, or resends once reconnected. */
enum pg_step {
    PG_REST,  /* nothing */
    PG_LEAD,  /* lead_v102 creates the rows of new environments; then the group follows */
    PG_GROUP, /* commit_v101 */
    PG_PURGE, /* purge_v101 */
    PG_VOID,  /* commit_v101 of nothing, under a number that may still be in flight */
};

struct pg_writer {
    struct pg_writers *all;
    int64_t id;
    struct pg_link link;
    struct commit_line line;   /* waiting commits */
    struct list purges;        // store_purge::link; wait
    struct list alone;         // store_commit::link; of a rejected group, sent one by one
    struct list group;         // store_commit::link; in flight
    struct store_purge *purge; /* the purge in flight; NULL: none */
    enum pg_step step;
    int64_t number; /* of the step in flight, or the next one */
    /* the step was sent on a lost connection, and may still be executing there */
    bool maybe_executing;
    enum store_status verdict; /* status of the step's requests once its number is void */
    bool one_by_one;           /* instead, send its commits one by one after that */
    struct pg_group encoded;   /* the group in flight */
    struct pg_group nothing;   /* an empty group, to void a number */
    struct pg_params params;
    struct pg_lead_call lead_call;
    bool lead_called; /* lead_call is initialized */
    int64_t sent_us;
    int64_t swept_at; /* Unix ms of the last sweep of expired claims */
    uv_timer_t timeout;
    bool purge_was_last; /* the last step taken was a purge */
    bool failing, full;
    /* uv_hrtime; while full or rejected, earlier requests fail at once. */
    uint64_t next_try;
    char trouble[256];
};

struct pg_writers {
    uv_loop_t *loop;
    const struct pg_options *options;
    struct pg_lead *lead;
    struct commit_report report;
    struct pg_types types; /* of the schema */
    char timeline[9];      /* of the history that we read */
    struct pg_writer writers[PG_WRITERS_MAX];
    unsigned count;
    /* store_commit::link. Commits whose environments belong to several writers. They are
     * written when all writers rest. */
    struct list wide;
    struct list done;        // store_commit::link
    struct list purges_done; // store_purge::link
    uv_async_t finished;
    uv_timer_t stop_timer; /* limits how long stopping waits for the database */
    const char *lost;      /* why the lead was lost, a constant; NULL: it was not */
    bool leaves;           /* we give up the lead ourselves; set by the store */
    unsigned open;         /* links and timers not closed yet */
    bool stopping, closing;
    bool over; /* the time limit has expired: nothing more is sent */
    void (*stopped_fn)(struct pg_writers *writers);
};

/* Takes ownership of conn, which hello came from, unless this fails; opens the others.
 *
 * The caller must have set options, lead and report. The connections are opened before this
 * returns, so that the first commits find them. */
enum err pg_writers_start(struct pg_writers *writers, uv_loop_t *loop, PGconn *conn,
                          const struct pg_hello *hello, struct failure *why);

/* store->share_of returns the project of the commit.
 *
 * The project decides the turn (commit_line.h). */
void pg_writers_commit(struct pg_writers *writers, const struct store *store,
                       struct store_commit *req);
void pg_writers_purge(struct pg_writers *writers, struct store_purge *req);

/* See store_ops::limit_wait. */
void pg_writers_limit_wait(struct pg_writers *writers);

/* Finishes and reports all requests first, if the database responds within a few
 * seconds. */
void pg_writers_stop(struct pg_writers *writers,
                     void (*stopped)(struct pg_writers *writers));

/* ---- shared by pg_writer.c and pg_writers.c ---- */

/* Opens the writer with this index. conn may be NULL: it connects later, on the loop. */
void pg_writer_begin(struct pg_writers *writers, unsigned which, PGconn *conn,
                     const struct pg_hello *hello);
bool pg_writer_rests(const struct pg_writer *writer);
bool pg_writer_has_work(const struct pg_writer *writer);
/* Begins the next step unless one is in flight. */
void pg_writer_go_on(struct pg_writer *writer);
/* Finishes all requests in flight and waiting with this status.
 *
 * Requests in flight may still be carried out. */
void pg_writer_give_up(struct pg_writer *writer, enum store_status status);
void pg_writer_close(struct pg_writer *writer);
void pg_writer_finish(struct pg_writer *writer);

void pg_writers_go_on(struct pg_writers *writers);
bool pg_writers_rest(const struct pg_writers *writers);
/* Sets the status; the requests are reported later. */
void pg_writers_finish(struct pg_writers *writers, struct store_commit *req,
                       enum store_status status);
void pg_writers_finish_all(struct pg_writers *writers, struct list *commits,
                           enum store_status status);
void pg_writers_finish_purge(struct pg_writers *writers, struct store_purge *req,
                             enum store_status status);
void pg_writers_finish_purges(struct pg_writers *writers, struct list *purges,
                              enum store_status status);
/* Sets the state of the store: failing or full if any writer is. */
void pg_writers_follow(struct pg_writers *writers);
/* Call it when the lead is lost. All requests end with STORE_MOVED. reason: a constant.
 *
 * Those that were waiting were not written. Those in flight may have been. */
void pg_writers_lose(struct pg_writers *writers, const char *reason);
/* Called when a link or timer of the writers was closed. */
void pg_writers_closed(struct pg_writers *writers);
