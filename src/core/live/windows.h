/* windows.h - the windows of an environment, and which of them a change concerns.
 *
 * There is one window (window.h) for each query that a client watches. Windows have places
 * at the hub's topics (hub.h), and at the statuses of runs:
 *
 *   change of a run ─► topics of the hub: all, tags, batch, task, queue ─┬─► windows:
 *                      its status before and after ──────────────────────┘   evaluated once (evaluation.h)
 *
 * A window is at the first of these that its query names: batch, tags, tasks, queues,
 * statuses; with none of them, it is at the topic of all runs. So queries for other tasks,
 * tags or statuses cost a change nothing, however many there are. */
#pragma once

#include "base/list.h"
#include "base/quota.h"
#include "base/table.h"
#include "base/timers.h"
#include "core/live/window.h"
#include "runcast/protocol.h"

enum {
    /* Windows of one environment; a long query counts several times (query_cost). A new run
     * may enter all of them. */
    WINDOWS_MAX = PROTOCOL_WATCHED,
    /* Windows of a project, including all its preview branches. */
    PROJECT_WINDOWS_MAX = 4 * WINDOWS_MAX,
};

struct environment;
struct topic;
struct watch;

/* One of the lists that lead a change to a window. */
struct window_place {
    struct window *window;
    struct topic *topic; /* NULL: the place is at a status */
    struct list link;    // topic::places or windows::by_status
};

struct windows {
    struct environment *env;
    struct table by_key;                     /* of struct window, by the key of its query */
    struct list by_status[RUN_STATUS_COUNT]; // window_place::link
    /* Counts windows by their cost; outer: that of the project, or NULL. */
    struct quota quota;
    struct timer timer; /* for checks each minute; armed while there are windows */
};

void windows_init(struct windows *windows, struct environment *env);
/* Requires that no watch is left. */
void windows_finish(struct windows *windows);

/* Returns the window of this query, and creates it if it is missing. Takes ownership of the
 * caller's reference to the query. Returns NULL if the environment or its project already
 * watches as many queries as it may. */
struct window *windows_find(struct windows *windows, struct query *query);

/* Begins the reads that the window needs after a watch was added, or wants more than
 * before. */
void windows_serve(struct window *window);

/* Visits the watches of a window whose set or counts have changed. */
void windows_mark(struct window *window);

/* Call this after a watch has left. Frees the window after the last one. */
void windows_release(struct windows *windows, struct window *window);

/* Evaluates a change of a run for the window, unless it was evaluated already: a window may
 * have several places that the change concerns. before: the previous state; NULL: the run
 * was created. */
void windows_evaluate(struct window *window, const struct run *before,
                      const struct run *after);

/* Removes the final runs that retention has removed. */
void windows_purge(struct windows *windows);

/* Memory was cleared and loaded: forgets the runs and positions of every window. Live lists get
 * all rows again. Call windows_count_again afterwards. */
void windows_begin_again(struct windows *windows);

/* Has the store count again for every window. Call it when changes were applied whose states
 * before may be unknown. */
void windows_count_again(struct windows *windows);
