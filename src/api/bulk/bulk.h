/* bulk.h - bulk actions: cancel or replay many runs, chosen by ids or a filter.
 *
 *   POST ─► document ─► pending ─► count the matches ─► slices of 50 runs, newest first,
 *                          ▲       each stored with the progress it makes ─► completed
 *                          └─ turns: the actions of an environment take turns
 *
 * The progress of a replay is in the same commit as its new runs, so a crash never causes a
 * run to be replayed twice. A canceled run names the action that canceled it. Runs created
 * after the action are not affected. */
#pragma once

#include "api/request/call.h"
#include "core/queues/ranking.h"

enum {
    BULK_SLICE = 50,
    BULK_PENDING_MAX = 20, /* per environment */
    BULK_PROJECT_PENDING_MAX = 80,
    BULK_BRANCHES_PENDING_MAX = BULK_PROJECT_PENDING_MAX / BRANCHES_PART,
    BULK_KEPT_MAX = 1000, /* of one environment, including those that have ended */
    BULK_PROJECT_KEPT_MAX = 4000,
    BULK_IDS_MAX = 1000,
    BULK_NAME_MAX = 255, /* UTF-16 units */
};

enum bulk_type { BULK_CANCEL, BULK_REPLAY };
enum bulk_status { BULK_PENDING, BULK_COMPLETED, BULK_ABORTED };

struct bulk_progress {
    enum bulk_status status;
    bool counted; /* counting is finished: total is the number of matches */
    uint64_t total, success, failure;
    int64_t to;         /* runs created later are done; Unix ms */
    char after[ID_MAX]; /* this run and newer ones are done, too; "": none yet */
    int64_t completed_at;
};

struct bulk_action {
    char id[ID_MAX];
    enum bulk_type type;
    struct bytes *name, *region; /* NULL: none */
    struct bytes *selection;     /* format: bulk_selection.c; NULL once it has ended */
    int64_t created_at;
    int64_t from, until; /* only runs created in this range; Unix ms */
    struct bulk_progress progress;
    uint32_t version; /* of its document */

    bool abort;          /* abort it at its next turn */
    struct list aborts;  // bulk_abort::link; calls that wait for the abort
    int64_t window_ms;   /* one read of the store covers this much time; 0: all */
    struct ranked place; /* in bulk_queue::all, by id */
    struct list pending; // bulk_queue::pending
};

struct bulk_action *bulk_action_create(void);
void bulk_action_destroy(struct bulk_action *action);

/* ---- selection: which runs ---- */

/* Reads the selection from the body of a call. Sets selection, from, until and, for ids,
 * the total. Returns ERR_INVALID with why. */
enum err bulk_selection_read(const json_t *body, enum vocabulary vocabulary, int64_t now_ms,
                             struct bulk_action *action, struct failure *why);

/* Copies the next ids older than `after`, newest first, and returns their number; -1 if the
 * selection is a filter. */
int bulk_selection_ids(const struct bulk_action *action, const char *after,
                       char ids[][ID_MAX], int max);

/* Returns the filter for one read of the store, NULL if it is no longer valid. Free it
 * with filter_words_close. */
struct filter_words;
struct filter_words *bulk_selection_open(const struct bulk_action *action);

/* ---- document ---- */

/* Returns the body of the document with this progress; the caller's reference. */
struct bytes *bulk_write(const struct bulk_action *action,
                         const struct bulk_progress *progress);
enum err bulk_read(struct slice body, struct bulk_action *action, struct failure *why);

/* Appends the action as clients see it. */
void bulk_show(const struct bulk_action *action, struct buf *out);

/* ---- the work ---- */

struct bulks;

struct bulks *bulks_create(struct engine *engine);

/* Begins no further slice and replies to calls that wait for an action to end. Returns
 * false if the time slice ended before all have their reply: call it again. timeslice NULL:
 * no time limit. */
bool bulks_stop(struct bulks *bulks, struct timeslice *timeslice);

/* Requires bulks_stop. Operations in flight end first and then free the rest. Ignores
 * NULL. */
void bulks_destroy(struct bulks *bulks);

/* Restores an action from the store at startup. bulks_start then resumes all pending
 * ones. */
enum err bulks_restore(struct bulks *bulks, struct environment *env,
                       const struct document *document, struct failure *why);
void bulks_start(struct bulks *bulks);

struct bulk_queue *bulks_of(struct bulks *bulks, struct environment *env);
/* Removes the environment's actions from memory. Returns false, and removes nothing, if
 * one of them is pending; those of a retired environment end as aborted. */
bool bulks_forget(struct bulks *bulks, const struct environment *env);
const struct ranking *bulk_queue_all(const struct bulk_queue *queue);

/* Reserves a place among the pending actions; use it with bulk_queue_add or give it up.
 * Returns ERR_BUSY if the environment or its project has too many pending actions. */
enum err bulk_queue_reserve(struct bulk_queue *queue, struct failure *why);
void bulk_queue_give_up(struct bulk_queue *queue);
struct bulk_action *bulk_queue_find(const struct bulk_queue *queue, struct slice id);

/* Adds an action whose document is stored. Takes ownership of it. */
void bulk_queue_add(struct bulk_queue *queue, struct bulk_action *action);

/* A call that waits until an action has ended. action is NULL if the gateway stops
 * first. */
struct bulk_abort {
    void (*done)(struct bulk_abort *abort, const struct bulk_action *action);
    struct list link; // bulk_action::aborts
};
void bulk_queue_abort(struct bulk_queue *queue, struct bulk_action *action,
                      struct bulk_abort *abort);
