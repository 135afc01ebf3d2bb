/* traces.h - the spans and logs of runs: in memory until they are stored.
 *
 *   otlp ─► traces_add ─► pending events of the run ─► a commit, at most once a second:
 *                                                      new pieces, and the counts
 *   trace_look.h reads both
 *
 * A piece is written once and never changed, so the cost of a line does not grow with the
 * length of a log. Limits: trace_limits per run; TRACES_BYTES_MAX for all events that are
 * not stored yet, a quarter of that per project. Further records are dropped and counted in
 * the trace of their run. A crash loses the last few seconds, which no run's state depends
 * on. */
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
/* Frees traces. Commits in flight still reach the store. Ignores NULL. */
void traces_destroy(struct traces *traces);

/* Limits what each environment may keep; implemented by trace_shares.h. */
struct traces_watcher {
    /* Called after each commit. bytes: by how much the environment's records grew. */
    void (*stored)(void *owner, struct environment *env, int64_t bytes);
    /* Returns true while the environment may keep no more. */
    bool (*is_full)(const void *owner, const struct environment *env);
    void *owner;
};

/* Sets the watcher; NULL removes it. */
void traces_watch(struct traces *traces, const struct traces_watcher *watcher);

/* Returns true while records of the environment must be dropped. */
bool traces_is_full(const struct traces *traces, const struct environment *env);

/* Begins to write everything that is pending. */
void traces_write_all(struct traces *traces);

/* The same in time slices; start with *at = 0. Returns true if more is left. A trace that
 * moves in the table meanwhile is left to its timer, or to traces_write_all. */
bool traces_write_some(struct traces *traces, size_t *at, struct timeslice *timeslice);

/* Adds a record to the trace of a run of env. Takes ownership of the event's text. A record
 * that is dropped is counted in the run's trace. */
void traces_add(struct traces *traces, struct environment *env, struct slice run_id,
                struct trace_event *event);

/* Counts, in the run's trace, records that were dropped before they got here. */
void traces_lose(struct traces *traces, struct environment *env, struct slice run_id,
                 enum trace_loss why, size_t count);

/* Adds a warning from the gateway itself to the logs of a run. */
void traces_warn(struct traces *traces, struct environment *env, struct slice run_id,
                 unsigned attempt, const char *text);

/* Counts records that name no run of the environment. */
void traces_drop(size_t count);

/* Returns true while the run's trace is in memory, so that its document may be written at
 * any moment. */
bool traces_have(const struct traces *traces, struct environment *env, struct slice run_id);

/* A request for the current state of a run's trace: its counts (including the stored
 * pieces) and the events that are not stored yet. */
struct trace_now {
    void (*done)(struct trace_now *now, enum err status);
    struct trace_counts counts;
    struct spans events; /* owned by the caller; each has a reference to its text */
    struct list link;    // trace::asked
};

/* Begins the request. Calls done once, later. */
void trace_now_begin(struct traces *traces, struct environment *env, struct slice run_id,
                     struct trace_now *now,
                     void (*done)(struct trace_now *now, enum err status));
