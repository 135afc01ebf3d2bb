/* traces.h - the spans and logs of runs: kept in memory until the store has them.
 *
 *   otlp ─► traces_add ─► pending events of the run ─► a commit once a second at most:
 *                                                      new pieces, and the counts
 *   trace_look.h reads both
 *
 * A piece is written once and never changed, so a run that logs for a day costs no more for
 * each line than one that logs ten. Bounded: trace_limits for each run, TRACES_BYTES_MAX for
 * all that the store does not have yet, a quarter of that for each project. Records beyond are
 * dropped and counted on the run. A crash loses the last seconds: the state of runs does not
 * depend on them. */
#pragma once

#include "api/telemetry/otlp.h"
#include "api/telemetry/trace_events.h"
#include "base/list.h"
#include "base/loop.h"

enum {
    TRACES_BYTES_MAX = 64 << 20,
};

struct accounts;
struct engine;
struct environment;
struct trace;
struct traces;

struct traces *traces_create(struct engine *engine, struct accounts *accounts,
                             const struct trace_limits *limits);
/* Writes in flight still reach the store. Accepts NULL. */
void traces_destroy(struct traces *traces);

/* How much each environment may keep is another's to watch (trace_shares.h). */
struct traces_watcher {
    /* Called after each commit, with how many bytes of records the environment has more. */
    void (*stored)(void *owner, struct environment *env, int64_t bytes);
    /* Returns true while the environment may keep no more. */
    bool (*is_full)(const void *owner, const struct environment *env);
    void *owner;
};

/* NULL: nobody watches any more. */
void traces_watch(struct traces *traces, const struct traces_watcher *watcher);

/* Returns true while records of the environment are to be dropped. */
bool traces_is_full(const struct traces *traces, const struct environment *env);

/* Writes everything that is pending now. */
void traces_write_all(struct traces *traces);

/* The same in stints, beginning with *at = 0: true when more is to do. One that changes
 * places meanwhile is left to its timer, or to traces_write_all. */
bool traces_write_some(struct traces *traces, size_t *at, struct stint *stint);

/* Takes over the event's text. A record that is dropped is counted on the run. The run is one
 * of env's. */
void traces_add(struct traces *traces, struct environment *env, struct slice run_id,
                struct trace_event *event);

/* Counts records on the run that were dropped before they came here. */
void traces_lose(struct traces *traces, struct environment *env, struct slice run_id,
                 enum trace_loss why, size_t count);

/* Adds a warning of the gateway's own to the logs of a run. */
void traces_warn(struct traces *traces, struct environment *env, struct slice run_id,
                 unsigned attempt, const char *text);

/* Counts records that name no run of the environment. */
void traces_drop(size_t count);

/* True while the trace of that run is in memory: its document may be written at any moment. */
bool traces_have(const struct traces *traces, struct environment *env, struct slice run_id);

/* A run's trace: its counts, the pieces in the store, and the events that are not stored yet. */
struct trace_now {
    void (*done)(struct trace_now *now, enum err status);
    struct trace_counts counts;
    struct spans events; /* the caller's, with a reference to each text */
    struct list link;    // trace::asked
};

/* done comes later. */
void trace_now_begin(struct traces *traces, struct environment *env, struct slice run_id,
                     struct trace_now *now,
                     void (*done)(struct trace_now *now, enum err status));
