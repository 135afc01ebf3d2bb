/* runner.h - the process of one run, from the message to the report of its end.
 *
 *   runner_begin ─► version is here ─► spawned ─► its controller starts, goes on, completes
 *        │ not here, no process             │ ended: nothing is left of it
 *        ▼                                  ▼
 *     release                   release, complete or nothing (runner_end.h) ─► on_gone
 *
 * What the controller asks goes to the gateway by the workload API, which tells the runner what
 * was answered (runner_note…). A controller that is kept asks for another run when its own is
 * done: then the runner has none, and runner_rebind gives it one. */
#pragma once

#include "base/table.h"
#include "net/http/http.h"
#include "os/process/process.h"
#include "supervisor/gateway_client/run_message.h"
#include "supervisor/gateway_client/upward.h"
#include "supervisor/runners/places.h"
#include "supervisor/runners/runner_end.h"
#include "supervisor/runners/runner_figures.h"
#include "supervisor/versions/site.h"
#include "supervisor/versions/tenants.h"
#include "supervisor/versions/version_store.h"

enum { RUNNER_ID_MAX = 200, RUNNER_TOKEN_LEN = 43 };

struct runner;
struct tail;

/* What all runners of a supervisor share. */
struct runner_shared {
    struct loop *loop;
    struct processes *processes;
    struct upward *upward;
    struct places *places;
    struct site *site;
    struct version_store *versions;
    const char *instance;
    const char *gateway; /* URL */
    const char *cgroup;  /* the root of groups; NULL: none */
    struct tenants *tenants;
    char *const *outer; /* its environment */
    int port;           /* of the workload API */
    bool strict;        /* CPU is a hard limit */
    bool warm;          /* controllers may be kept */
    bool draining;
    struct table runners; /* by id: runner_shared_init */
    struct runner_figures figures;

    void *owner;
    void (*on_run)(struct runner *runner);  /* its run is here, or another one */
    void (*on_done)(struct runner *runner); /* its run is over: its place is free */
    void (*on_room)(void *owner); /* a run waits or goes on: there may be more or less */
    void (*on_gone)(struct runner *runner); /* it is freed when this returns */
};

struct runner {
    struct runner_shared *shared;
    char id[RUNNER_ID_MAX];
    char token[RUNNER_TOKEN_LEN + 1];
    struct run_message message;
    bool has_run; /* the token opens the run of the message */
    struct machine_place place;
    struct runner_facts facts;
    unsigned arriving; /* calls whose bodies are not here yet */
    unsigned calls;    /* passed on and not answered: how the run stands is not known */

    struct version_wish wish;
    struct process process;
    bool wishes, runs; /* the version is waited for, the process is there */
    pid_t pid;
    struct tail *output;
    bool has_scratch;
    char *cgroup; /* NULL: none */
    struct process_end end;

    struct upward_call call; /* of the report */
    bool reports;
    unsigned tries;
    struct timer timer;
    char *reason; /* why it is given back; NULL: its process says it */

    struct exchange *waiter; /* held poll for another run; NULL: none. The workload API's */
    bool idle;               /* kept: its run is done, and it may have another */
    struct timer handed;     /* until its run must have started, or its process ended */
};

/* The table of runners; the rest is the owner's to fill in. */
void runner_shared_init(struct runner_shared *shared);

/* NULL: there is none. */
struct runner *runner_find(const struct runner_shared *shared, struct slice id);

/* Takes over the message, whose place was taken. */
struct runner *runner_begin(struct runner_shared *shared, struct run_message *message,
                            const struct machine_place *place);

/* A run that no process is begun for is given back with this reason; place is not taken. */
void runner_refuse(struct runner_shared *shared, struct run_message *message,
                   const char *reason);

/* What the gateway has answered to a call of the controller, of that kind. */
void runner_note_started(struct runner *runner, struct slice answer);
void runner_note_completed(struct runner *runner, struct slice answer);
void runner_note_snapshots(struct runner *runner, struct slice answer);

/* A call is passed on, or was answered. */
void runner_begin_call(struct runner *runner);
void runner_end_call(struct runner *runner);

/* The controller is asked to end when its run is done; it may not have one. */
void runner_ask_to_end(struct runner *runner);

/* Everything of it is killed now. */
void runner_kill(struct runner *runner);

/* The run is done, and the controller wants another. False: it has one. */
bool runner_rest(struct runner *runner);

/* Gives a resting controller a run; takes over the message, whose place was taken. */
void runner_rebind(struct runner *runner, struct run_message *message,
                   const struct machine_place *place);

/* The run that was handed over and not started, with its place, to be begun anew: the
 * controller ends. */
void runner_take_back(struct runner *runner, struct run_message *message,
                      struct machine_place *place);

/* True when the token is that of the runner. Takes the same time wherever they differ. */
bool runner_token_is(const struct runner *runner, struct slice token);
