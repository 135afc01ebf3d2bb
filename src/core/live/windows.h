/* windows.h - the windows of an environment: one for each query that somebody watches, found by
 * the changes that may concern it.
 *
 *   change of a run ─► topics of the hub: all, tags, batch, task, queue ─┬─► windows: judged
 *                      its status before and after ──────────────────────┘   once each
 *
 * A window stands at the first of these that its query names. So queries of other tasks, tags
 * or statuses cost a change nothing, however many there are. */
#pragma once

#include "base/list.h"
#include "base/room.h"
#include "base/table.h"
#include "base/timers.h"
#include "core/live/window.h"
#include "runcast/protocol.h"

enum {
    /* Of one environment, long ones several times (query_cost). A new run may come into
     * all of them within one turn. */
    WINDOWS_MAX = PROTOCOL_WATCHED,
    /* Of a project, all its preview branches included. */
    PROJECT_WINDOWS_MAX = 4 * WINDOWS_MAX,
};

struct environment;
struct run_topics;
struct watch;

struct windows {
    struct environment *env;
    struct table by_key;                     /* of struct window, by the key of its query */
    struct list by_status[RUN_STATUS_COUNT]; // window_place::link
    struct room room;   /* windows by their cost; outer: that of the project, or NULL */
    struct timer timer; /* of what is looked at each minute; armed while somebody watches */
};

void windows_init(struct windows *windows, struct environment *env);
/* Nobody watches any more. */
void windows_finish(struct windows *windows);

/* The window of this query, made if there is none. Takes over the caller's reference of the
 * query. NULL: the environment or its project watches as many other queries as it may. */
struct window *windows_find(struct windows *windows, struct query *query);

/* A watch of the window has come, or wants more of it than before: what it needs is read. */
void windows_serve(struct window *window);

/* Its set, or its counts, are others than before: its watches are visited. */
void windows_mark(struct window *window);

/* A watch has left. The window is gone with the last one. */
void windows_release(struct windows *windows, struct window *window);

/* The run has changed. before: as it was; NULL: it was made. topics: those in which it stands. */
void windows_judge_all(struct windows *windows, const struct run *before,
                       const struct run *after, const struct run_topics *topics);

/* Retention has removed final runs. */
void windows_purge(struct windows *windows);

/* The same, for nothing where nobody watches. */
static inline void windows_judge(struct windows *windows, const struct run *before,
                                 const struct run *after, const struct run_topics *topics)
{
    if (windows->by_key.count)
        windows_judge_all(windows, before, after, topics);
}
