/* dev_sessions.h - which worker versions are there, in an environment of developers.
 *
 *   registration ──► session of that version ◄── dequeue that names it
 *                       │      ▲
 *                       │      └── heartbeats and steps of its runs
 *                       └─ nobody heard of it for 60 s: it ends
 *
 * A session is a CLI, known by the version that it asks for runs with. A run is that of the
 * newest session whose version has its task; one that is locked to a version, of the session
 * that has this version. Two CLIs of one version are one session.
 *
 * A CLI registers anew when its code was edited, and then asks with the new version. That
 * replaces its old one, which the CLI still has for the runs that are locked to it; nothing
 * in the protocol says whose a registration is, so it follows from how many CLIs are
 * connected and from which version nobody asks with any more.
 *
 * Whose a connection was that closes, nobody says either. When there are fewer sockets than
 * sessions, one that was not heard of since, nor for 6 s, is missed: runs that another
 * session has too are that one's, until something is heard of it again.
 *
 * After a restart CLIs need seconds to come back: for 60 s nothing follows from their not
 * being there. Elsewhere than in dev there are no sessions: whoever asks executes the
 * current version. */
#pragma once

#include "core/fleet/fleet.h"
#include "core/fleet/worker_versions.h"

enum {
    SESSION_LOST_MS = 60 * 1000,
    SESSIONS_MAX = 16, /* in one environment; the one longest unheard of makes room */
};

/* Audiences of runs (queue.h). In dev each session has one of its own, from 1 on, and nobody
 * has the runs that no session has. Elsewhere any worker has all runs but those of plain
 * registrations, which only some take. */
enum { AUDIENCE_NOBODY = 0, AUDIENCE_PLAIN = 1 };

struct session {
    struct worker *current; /* what it asks with; changes when it registers anew */
    uint32_t audience;      /* of its runs (queue.h) */
    uint32_t held;          /* dequeues that wait in its line */
    bool has_asked;         /* a dequeue has named its version */
    bool has_replaced;      /* another one, or it is known that it does not */
    int64_t asked_since;    /* monotonic ms, as below: the first that did */
    int64_t asked_at;       /* when the last one came or went */
    int64_t heard_at;       /* of it, or of one of its runs */
    int64_t missed_since;   /* a connection closed, and it is silent; 0: it is there */
    int64_t registered_at;
    uint64_t served;      /* when it got a run last, counted by engine */
    struct list dequeues; // dequeue_seat::link
    struct list link;     // dev_sessions::all; in the order of their versions
};

struct dev_sessions;

struct dev_sessions *dev_sessions_create(struct fleet *fleet, struct environment *env);
void dev_sessions_destroy(struct dev_sessions *sessions);

/* All is loaded: sessions that were there may come back. */
void dev_sessions_start(struct environment *env);

/* In dev: takes over a version that was registered, which is the current one now. */
void dev_sessions_add(struct environment *env, struct worker *worker);

/* The current version was registered again. */
void dev_sessions_renew(struct environment *env);

/* The version will be forgotten. */
void dev_sessions_forget(struct environment *env, struct worker *worker);

/* A dequeue begins that names this worker; absent: the current version. NULL: the session
 * that it names has gone on to another version, or there is no such version. */
struct session *dev_sessions_ask(struct environment *env, struct slice worker);

/* The session that has this worker as its current version; absent: the environment's current
 * version. NULL: none has. Nothing changes by it. */
struct session *dev_sessions_asking(const struct environment *env, struct slice worker);

/* How long a dequeue that may have to name another version soon is held at most. */
int64_t dev_sessions_hold_ms(const struct environment *env, const struct session *session,
                             int64_t wait_ms);

/* A worker has called about its run. */
void dev_sessions_hear(struct environment *env, const struct run *run);

/* Connections of a CLI that stay: it has one of each kind. */
enum session_line { SESSION_SOCKET, SESSION_STREAM, SESSION_LINES };
void dev_sessions_connect(struct environment *env, enum session_line line);
void dev_sessions_disconnect(struct environment *env, enum session_line line);

/* How many ms ago the last connection closed, or one with which the session is missed, when
 * it was not heard of since; it may come back. 0: it is there, or nobody can tell. */
int64_t dev_sessions_gone_ms(const struct environment *env, const struct session *session);

/* The session that executes the run: one that is missed only when no other has its task. NULL:
 * none that is there has the task in the version that the run wants. */
struct session *dev_sessions_of_run(const struct environment *env, const struct run *run);

/* The task as the newest session that has it declares it. NULL: none has it. */
const struct worker_task *dev_sessions_task(const struct environment *env,
                                            struct slice task);

/* The sessions one after the other, in the order of their versions. Start with NULL; NULL at
 * the end. */
struct session *dev_sessions_next(const struct environment *env,
                                  const struct session *session);

/* True for a while after a start: who is not there may only not have come back yet. */
bool dev_sessions_may_return(const struct environment *env);

/* For how many ms more dev_sessions_may_return is true; 0: it is not. */
int64_t dev_sessions_return_ms(const struct environment *env);

/* What the timers of sessions do: something is to be looked at. */
void dev_sessions_on_time(struct timer *timer);
