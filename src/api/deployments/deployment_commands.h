/* deployment_commands.h - the deployments in memory, and the only way to change one.
 *
 *   command ─► waits for the previous one ─► decide on the current row ─► written, synced
 *                                                                   ─► on_change ─► done
 *
 * Each change is one commit of the row, and of its build's variables if it adds or removes
 * them. To follow a deployment, watch it. */
#pragma once

#include "api/deployments/deployment.h"
#include "api/deployments/deployments.h"
#include "base/slots.h"
#include "base/table.h"
#include "base/vault/vault.h"
#include "core/engine/engine.h"

struct api;
struct build;
struct version_retention;
struct kept_files;
struct deployment;
struct deployment_command;

/* Embedded by the operation. */
struct deployment_command {
    /* Changes next, a copy of the current row, and returns OK; or refuses with a reason in
     * why. */
    enum err (*decide)(struct deployment_command *command,
                       const struct deployment *deployment, struct deployment_row *next);
    void (*done)(struct deployment_command *command, struct deployment *deployment,
                 enum err status);
    struct failure why;
    bool nothing;     /* set by decide, with OK: the row does not change */
    struct list link; // deployment::commands
};

/* A command without a caller: ends a deployment, or its build (deployment_due.c). */
struct due_command {
    struct deployment_command command;
    enum deployment_status status; /* how it ends, unless its build begins again */
    unsigned build;                /* the one cut off; 0: end it whatever is being built */
    struct bytes *error, *reason;
};

/* Called after each change, and if the deployment could not be written at first. It then
 * has deployment::lost, and is freed afterwards. */
struct deployment_watcher {
    void (*changed)(struct deployment_watcher *watcher, struct deployment *deployment);
    struct list link; // deployment::watchers
};

struct deployment {
    struct deployment_row row;
    struct deployments *all;
    uint32_t env;        /* number of its environment */
    uint32_t document;   /* version of its document; 0: not written yet */
    struct failure lost; /* why it was never written; otherwise its code is OK */
    size_t held;         /* bytes of archive and version that are counted for its project */

    /* The environment variables of its build: a JSON object of strings, in clear text.
     * NULL: none, or they are in the store, sealed (build_variables.h). */
    struct bytes *variables;
    uint32_t variables_document; /* version of their document; 0: none */

    struct list commands; // deployment_command::link
    bool writing;         /* the first of them; next is what it decided */
    struct deployment_row next;
    struct deferred turn;
    struct document_write write;
    struct change changes[2];
    struct store_load load;
    struct vault_waiter vault; /* waits until variables may be sealed */
    bool holds_vault;

    struct list watchers; // deployment_watcher::link
    unsigned tries;       /* of the call that made it, so far; a restart leaves one more */
    struct kept_taking *taking; /* of its bundle, in progress; NULL: taken */
    bool handing;               /* its variables are being read, or its hand-out written */
    bool promoting;             /* its version is being made current */
    bool completing;     /* the index of its build is being kept, or the row written */
    struct build *build; /* NULL: no builder has it */
    struct timer timer;  /* when something is due: deployment_due.c */
    struct due_command *unwritten; /* its end that could not be written; NULL: none */
    int64_t due_since_ms;          /* since when it waits, or is built; monotonic */
    struct list link;              // deployment_set::all
    struct list active;            // deployments::active
};

/* The turns of one project at builders (builds.c). */
struct build_turns {
    const struct project *project;
    uint64_t last; /* number of its last turn, from deployments::build_turns */
    uint64_t busy; /* the newest build_marks if one of its deployments is being built */
};

/* The deployments of one environment. */
struct deployment_set {
    struct deployments *all_sets;
    uint32_t env;
    struct build_turns *turns; /* of its project */
    struct list all;           // deployment::link; newest first
};

struct deployments {
    struct api *api;
    struct engine *engine;
    struct accounts *accounts;
    struct loop *loop;
    struct deployment_options options;
    struct kept_files *files; /* archives, indexes and logs */
    struct slots sets;        /* of struct deployment_set, by number of the environment */
    struct list active;       // deployment::active; not final, oldest first
    struct list lines;        // build_wait::link; builders that wait, first come first
    struct list builders;     // builder::link; those that have called
    struct list awaited;      // builder_watch::link
    int64_t created_ms;       /* monotonic; before that, builders called another process */
    struct table turns;       /* of struct build_turns, by project */
    uint64_t build_turns, build_marks; /* the last ones assigned */
    unsigned busy;                     /* commands and own operations in progress */
    struct version_retention *retention;
    int64_t started_ms; /* monotonic; valid once started */
    bool started, stopped;
    void (*on_change)(struct deployment *deployment, enum deployment_status before);
    void (*promote)(struct deployment *deployment); /* promotes one that is DEPLOYED */
};

void deployments_init_turns(struct deployments *all);
void deployments_finish_turns(struct deployments *all);

/* Returns the environment's set, creating it if it is missing. */
struct deployment_set *deployments_of(struct deployments *all, uint32_t env);

/* Returns NULL if it is unknown, in another environment, or not written yet. */
struct deployment *deployments_find(struct deployments *all, uint32_t env, struct slice id);
struct deployment *deployments_by_version(struct deployments *all, uint32_t env,
                                          struct slice version);

/* Adds a deployment, which its first command writes. Takes ownership of the row and of
 * variables. */
struct deployment *deployments_add(struct deployments *all, uint32_t env,
                                   struct deployment_row *row, struct bytes *variables);

/* Gives up a deployment that was never written: ends its commands with the reason, calls
 * its watchers, and frees it. */
void deployment_lose(struct deployment *deployment, const struct failure *why);

/* Frees a deployment that has no commands and no watchers. */
void deployment_free(struct deployment *deployment);

/* Stops to take its bundle, if that is in progress: it was canceled, or the gateway stops. */
void deployment_cancel_taking(struct deployment *deployment);

/* Ends commands that are not being written with ERR_CANCELED. */
void deployment_cancel_commands(struct deployment *deployment);

/* Queues the command. Calls done once, later. */
void deployment_command_begin(struct deployment *deployment,
                              struct deployment_command *command);

void deployment_watch(struct deployment *deployment, struct deployment_watcher *watcher);

/* Returns true if it is final, and was promoted if it must be. */
static inline bool deployment_is_settled(const struct deployment *deployment)
{
    return deployment_is_final(deployment->row.status) && !deployment->row.promotes;
}

/* Forgets the version that it registered, if it ended without being DEPLOYED. */
void deployment_forget_worker(struct deployment *deployment);

/* Frees the command. Ignores NULL. */
void deployment_drop_due(struct due_command *due);
