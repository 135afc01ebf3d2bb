/* runner.h - the process of one run, from its message to the report that it ended.
 *
 *   runner_begin ─► version is here ─► spawned ─► its controller starts, works, completes
 *        │ not here, no process             │ ended: none of its processes is left
 *        ▼                                  ▼
 *     release                   release, complete or nothing (runner_end.h) ─► on_gone
 *
 * The controller's calls go to the gateway through the workload API (workload.h), which
 * passes the responses to runner_note_…. A kept controller requests another run when its
 * run is done. Until runner_rebind gives it one, the runner has no run. */
#pragma once

#include "base/table.h"
#include "net/http/http.h"
#include "os/process/process.h"
#include "supervisor/gateway_client/gateway_client.h"
#include "supervisor/gateway_client/run_message.h"
#include "supervisor/runners/places.h"
#include "supervisor/runners/runner_end.h"
#include "supervisor/runners/runner_figures.h"
#include "supervisor/versions/site.h"
#include "supervisor/versions/tenants.h"
#include "supervisor/versions/version_store.h"

enum { RUNNER_ID_MAX = 200, RUNNER_TOKEN_LEN = 43 };

struct runner;
struct tail;

/* Shared by all runners of a supervise role. */
struct runner_shared {
    struct loop *loop;
    struct processes *processes;
    struct gateway_client *gateway_client;
    struct places *places;
    struct site *site;
    struct version_store *versions;
    const char *instance;
    const char *gateway; /* URL */
    const char *cgroup;  /* root of the control groups; NULL: none */
    struct tenants *tenants;
    char *const *outer; /* environment of the supervise role */
    int port;           /* of the workload API */
    bool strict;        /* CPU is a hard limit */
    bool warm;          /* controllers may be kept for another run */
    bool draining;
    struct table runners; /* by id; set up by runner_shared_init */
    struct runner_figures figures;
    bool unreported; /* a report was abandoned because this process is exiting */

    void *owner;
    void (*on_run)(struct runner *runner); /* it got its first or another run */
    /* a runner got or lost a run, or an attempt began or ended */
    void (*on_changed)(void *owner);
    void (*on_done)(struct runner *runner); /* its run has ended, and its place is free */
    /* a run began or stopped waiting, so the free places may have changed */
    void (*on_room)(void *owner);
    void (*on_gone)(struct runner *runner); /* the runner is freed when this returns */
};

struct runner {
    struct runner_shared *shared;
    char id[RUNNER_ID_MAX];
    char token[RUNNER_TOKEN_LEN + 1];
    struct run_message message;
    bool has_run; /* false: no run; the token does not admit calls for message.run */
    struct machine_place place;
    struct runner_facts facts;
    unsigned arriving; /* calls whose bodies have not arrived completely */
    /* forwarded calls without a response yet, which may change the run's state */
    unsigned calls;

    struct version_request request;
    struct process process;
    bool awaits_version, runs; /* it waits for the version; the process exists */
    pid_t pid;
    struct tail *output;
    bool has_scratch;
    char *cgroup; /* NULL: none */
    struct process_end end;

    struct gateway_call call; /* of the report */
    bool reports;
    unsigned tries;
    struct timer timer;
    char *reason; /* why the run is released; NULL: its process has ended */

    /* held poll for another run; NULL: none; private to the workload API */
    struct exchange *waiter;
    bool idle; /* kept: its run is done, and it may get another */
    /* deadline for starting its run, or for its process to exit */
    struct timer handed;
};

/* Sets up the table of runners. The caller fills in the other members. */
void runner_shared_init(struct runner_shared *shared);

/* Returns NULL if there is none. */
struct runner *runner_find(const struct runner_shared *shared, struct slice id);

/* Takes ownership of the message; place must be taken. */
struct runner *runner_begin(struct runner_shared *shared, struct run_message *message,
                            const struct machine_place *place);

/* Releases a run without starting a process, for this reason; no place is taken. */
void runner_refuse(struct runner_shared *shared, struct run_message *message,
                   const char *reason);

/* Reports the end of a run whose process, and whose supervise role, were killed.
 *
 * message: run, snapshot and attempt are set; attempt 0: none was started. */
void runner_report_left(struct runner_shared *shared, struct run_message *message);

/* Note the gateway's response to a call of the controller, by kind of call. */
void runner_note_started(struct runner *runner, struct slice answer);
void runner_note_completed(struct runner *runner, struct slice answer);
void runner_note_snapshots(struct runner *runner, struct slice answer);

/* Count the forwarded calls without a response yet. */
void runner_begin_call(struct runner *runner);
void runner_end_call(struct runner *runner);

/* Asks the controller, which may have no run, to exit when its run is done. */
void runner_ask_to_end(struct runner *runner);

/* Kills all of its processes now. */
void runner_kill(struct runner *runner);

/* Marks the runner as idle because its controller requests another run.
 *
 * Returns false if its run is not done. */
bool runner_rest(struct runner *runner);

/* Gives an idle runner a run. Takes ownership of the message; place must be taken. */
void runner_rebind(struct runner *runner, struct run_message *message,
                   const struct machine_place *place);

/* Takes back a run that was handed over but not started, with its place.
 *
 * Kills the controller. The caller begins the run again. */
void runner_take_back(struct runner *runner, struct run_message *message,
                      struct machine_place *place);

/* Compares the token in constant time. */
bool runner_token_is(const struct runner *runner, struct slice token);
