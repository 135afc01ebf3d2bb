/* dev_sessions.h - which worker versions are connected, in an environment of developers.
 *
 *   registration ──► session of that version ◄── dequeue that names it
 *                       │      ▲
 *                       │      └── heartbeats and steps of its runs
 *                       └─ no sign of life for 60 s: it ends
 *
 * A session is a CLI (trigger dev), identified by the version that its dequeues name. A run
 * belongs to the newest session whose version has its task; a run locked to a version
 * belongs to the session that has this version. Two CLIs of one version are one session.
 *
 * After its code was edited, a CLI registers again and then dequeues with the new version.
 * The new version replaces its old one, which the CLI keeps for the runs locked to it. The
 * protocol does not say which CLI sent a registration. That is inferred from the number of
 * connected CLIs, and from the version that dequeues have stopped naming.
 *
 * Nor does it say which CLI a closed connection belonged to. If there are fewer sockets
 * than sessions, a session without a sign of life since then, and for 6 s, is missing. Runs
 * that another session can also execute go to that one until the first one shows a sign of
 * life.
 *
 * After a restart, CLIs need seconds to reconnect: for 60 s nothing is concluded from their
 * absence. Outside of dev there are no sessions: any worker that dequeues executes the
 * current version. */
#pragma once

#include "core/fleet/fleet.h"
#include "core/fleet/worker_versions.h"

enum {
    SESSION_LOST_MS = 60 * 1000,
    SESSIONS_MAX = 16, /* per environment; the one silent longest is replaced */
};

/* Audiences of runs (queue.h). In dev, each session has its own, from 1 on, and runs
 * without a session have AUDIENCE_NOBODY. Elsewhere, any worker takes runs with
 * AUDIENCE_NOBODY; runs of plain registrations, AUDIENCE_PLAIN, are taken only by some
 * workers. */
enum { AUDIENCE_NOBODY = 0, AUDIENCE_PLAIN = 1 };

struct session {
    struct worker *current; /* its dequeues name it; a new registration changes it */
    uint32_t audience;      /* of its runs (queue.h) */
    uint32_t held;          /* dequeues waiting in its line */
    bool has_asked;         /* a dequeue has named its version */
    bool has_replaced;      /* it has replaced another one, or is known not to */
    int64_t asked_since;    /* the first dequeue that did; monotonic ms, like those below */
    int64_t asked_at;       /* when the last dequeue arrived or ended */
    int64_t last_seen_at;   /* last sign of life, of it or of one of its runs */
    int64_t missed_since;   /* a connection closed, and it is silent; 0: not missing */
    int64_t registered_at;
    uint64_t served;      /* when it last got a run, as counted by the engine */
    struct list dequeues; // dequeue_seat::link
    struct list link;     // dev_sessions::all; in the order of their versions
};

struct dev_sessions;

struct dev_sessions *dev_sessions_create(struct fleet *fleet, struct environment *env);
void dev_sessions_destroy(struct dev_sessions *sessions);

/* Call it once all runs and versions are loaded: from now on, sessions that existed before
 * the start may come back. */
void dev_sessions_start(struct environment *env);

/* In dev: takes ownership of a newly registered version, which becomes current. */
void dev_sessions_add(struct environment *env, struct worker *worker);

/* The current version was registered again. */
void dev_sessions_renew(struct environment *env);

/* The version will be removed: ends the session that dequeues with it. */
void dev_sessions_forget(struct environment *env, struct worker *worker);

/* A dequeue begins that names this worker; absent: the current version. Returns its
 * session, new or known; NULL if that session now uses another version, or the version is
 * unknown. */
struct session *dev_sessions_ask(struct environment *env, struct slice worker);

/* Returns the session whose current version is this worker (absent: the environment's
 * current version), or NULL. Changes nothing. */
struct session *dev_sessions_asking(const struct environment *env, struct slice worker);

/* Returns how long to hold a dequeue: shorter if it may soon have to name another
 * version. */
int64_t dev_sessions_hold_ms(const struct environment *env, const struct session *session,
                             int64_t wait_ms);

/* A worker has sent a request about its run: a sign of life. */
void dev_sessions_touch(struct environment *env, const struct run *run);

/* Permanent connections of a CLI: it has one of each kind. */
enum session_line { SESSION_SOCKET, SESSION_STREAM, SESSION_LINES };
void dev_sessions_connect(struct environment *env, enum session_line line);
void dev_sessions_disconnect(struct environment *env, enum session_line line);

/* Returns how many ms ago the last connection closed, or the one whose closing made the
 * session go missing, if it has been silent since; it may come back. 0: it is connected, or
 * that is unknown. */
int64_t dev_sessions_gone_ms(const struct environment *env, const struct session *session);

/* Returns the session that executes the run; a missing one only if no other has its task.
 * NULL: no session has the task in the version that the run needs. */
struct session *dev_sessions_of_run(const struct environment *env, const struct run *run);

/* Returns the task as the newest session with it declares it; NULL: none has it. */
const struct worker_task *dev_sessions_task(const struct environment *env,
                                            struct slice task);

/* Returns the next session, in the order of their versions. Start with NULL; NULL after the
 * last. */
struct session *dev_sessions_next(const struct environment *env,
                                  const struct session *session);

/* Returns true for a while after a start: absent sessions may still come back. */
bool dev_sessions_may_return(const struct environment *env);

/* Returns for how many ms dev_sessions_may_return will be true; 0: it is false. */
int64_t dev_sessions_return_ms(const struct environment *env);

/* Handler of the sessions' timers: ends or replaces sessions, and marks silent ones as
 * missing. */
void dev_sessions_on_time(struct timer *timer);
