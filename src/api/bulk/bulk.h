/* bulk.h - one action on many runs: cancel or replay, chosen by ids or by a filter.
 *
 *   POST ─► document ─► pending ─► count what matches ─► slices of 50 runs, newest first,
 *                          ▲        each with the progress it makes ─► completed
 *                          └─ turns: actions of an environment take them one after another
 *
 * The progress of a replay is in the commit that makes its runs, so after a crash none is
 * made twice; a run that was canceled says by which action. Runs made after the action are
 * none of its business. */
#pragma once

#include "api/request/call.h"
#include "base/ranking.h"

enum {
    BULK_SLICE = 50,
    BULK_PENDING_MAX = 20, /* of one environment */
    BULK_PROJECT_PENDING_MAX = 80,
    BULK_KEPT_MAX = 1000, /* of one environment, with those that have ended */
    BULK_PROJECT_KEPT_MAX = 4000,
    BULK_IDS_MAX = 1000,
    BULK_NAME_MAX = 255, /* UTF-16 units */
};

enum bulk_type { BULK_CANCEL, BULK_REPLAY };
enum bulk_status { BULK_PENDING, BULK_COMPLETED, BULK_ABORTED };

struct bulk_progress {
    enum bulk_status status;
    bool counted; /* total is what matched */
    uint64_t total, success, failure;
    int64_t to;         /* newer runs are done with; Unix ms */
    char after[ID_MAX]; /* and so are this one and newer ones; "": none yet */
    int64_t completed_at;
};

struct bulk_action {
    char id[ID_MAX];
    enum bulk_type type;
    struct bytes *name, *region; /* NULL: none */
    struct bytes *selection;     /* bulk_selection.c's; NULL once it has ended */
    int64_t created_at;
    int64_t from, until; /* times of the runs that are meant; Unix ms */
    struct bulk_progress progress;
    uint32_t version; /* of its document */

    bool abort;          /* at its next turn */
    struct list aborts;  // bulk_abort::link; calls that wait for that
    int64_t window_ms;   /* one read of the store looks so far back; 0: all the way */
    struct ranked place; /* in bulk_queue::all, by id */
    struct list pending; // bulk_queue::pending
};

struct bulk_action *bulk_action_create(void);
void bulk_action_destroy(struct bulk_action *action);

/* ---- selection: which runs ---- */

/* From the body of a call; sets selection, from, until and, for ids, the total. */
enum err bulk_selection_read(const json_t *body, enum vocabulary vocabulary, int64_t now_ms,
                             struct bulk_action *action, struct failure *why);

/* The next ids below after, newest first; -1: it is no list of ids, but a filter. */
int bulk_selection_ids(const struct bulk_action *action, const char *after,
                       char ids[][ID_MAX], int max);

/* The filter, for one read of the store; filter_words_close gives it back. */
struct filter_words;
struct filter_words *bulk_selection_open(const struct bulk_action *action);

/* ---- document ---- */

/* The body with this progress; the caller's reference. */
struct bytes *bulk_write(const struct bulk_action *action,
                         const struct bulk_progress *progress);
enum err bulk_read(struct slice body, struct bulk_action *action, struct failure *why);

/* As clients see it. */
void bulk_show(const struct bulk_action *action, struct buf *out);

/* ---- the work ---- */

struct bulks;

struct bulks *bulks_create(struct engine *engine);

/* Nothing is begun any more, and who waits for the end of an action is told. False: the stint
 * is over with some left to be told; NULL: it never is. */
bool bulks_stop(struct bulks *bulks, struct stint *stint);

/* Stopped. What is on its way ends first, and frees the rest. */
void bulks_destroy(struct bulks *bulks);

/* From the store, at start; then everything pending goes on with bulks_start. */
enum err bulks_restore(struct bulks *bulks, struct environment *env,
                       const struct document *document, struct failure *why);
void bulks_start(struct bulks *bulks);

struct bulk_queue *bulks_of(struct bulks *bulks, struct environment *env);
/* The actions of the environment leave memory. False: one of them is under way; those of an
 * environment that is retired end as aborted. */
bool bulks_forget(struct bulks *bulks, const struct environment *env);
const struct ranking *bulk_queue_all(const struct bulk_queue *queue);

/* Takes a place among those pending, to be given up or used by bulk_queue_add. ERR_BUSY: the
 * environment, or its project, has no place left. */
enum err bulk_queue_reserve(struct bulk_queue *queue, struct failure *why);
void bulk_queue_give_up(struct bulk_queue *queue);
struct bulk_action *bulk_queue_find(const struct bulk_queue *queue, struct slice id);

/* Adds an action whose document is written; takes it over. */
void bulk_queue_add(struct bulk_queue *queue, struct bulk_action *action);

/* A call that waits until the action has ended. */
struct bulk_abort {
    void (*done)(struct bulk_abort *abort, const struct bulk_action *action);
    struct list link; // bulk_action::aborts
};
void bulk_queue_abort(struct bulk_queue *queue, struct bulk_action *action,
                      struct bulk_abort *abort);
