/* deployment_commands.h - the deployments in memory, and the one way in which one changes.
 *
 *   command ─► waits for the one before ─► decide on the row as it is ─► written, synced
 *                                                                   ─► on_change ─► done
 *
 * Each change is one commit of the row, and of the variables of its build when they end with
 * it. Whoever wants to know what becomes of a deployment watches it. */
#pragma once

#include "api/deployments/deployment.h"
#include "api/deployments/deployments.h"
#include "base/slots.h"
#include "base/table.h"
#include "base/vault/vault.h"
#include "core/engine/engine.h"

struct api;
struct build;
struct keeping;
struct kept_files;
struct deployment;
struct deployment_command;

/* Embedded by the operation. */
struct deployment_command {
    /* next is a copy of the row as it is: changed on OK. What is refused has a reason in why. */
    enum err (*decide)(struct deployment_command *command,
                       const struct deployment *deployment, struct deployment_row *next);
    void (*done)(struct deployment_command *command, struct deployment *deployment,
                 enum err status);
    struct failure why;
    bool nothing;     /* decide: the row stays as it is, and OK */
    struct list link; // deployment::commands
};

/* Told of each change, and when the deployment could not be written for the first time
 * (deployment::lost); it is gone then. */
struct deployment_watcher {
    void (*changed)(struct deployment_watcher *watcher, struct deployment *deployment);
    struct list link; // deployment::watchers
};

struct deployment {
    struct deployment_row row;
    struct deployments *all;
    uint32_t env;        /* number of its environment */
    uint32_t document;   /* version of its document; 0: not written yet */
    struct failure lost; /* why it was never written; else its code is OK */
    size_t held;         /* bytes of archive and version, as they count for its project */

    /* What its build gets as environment: a JSON object of texts, in clear; NULL: nothing, or
     * they are in the store, sealed (build_variables.h). */
    struct bytes *variables;
    uint32_t variables_document; /* version of their document; 0: none */

    struct list commands; // deployment_command::link
    bool writing;         /* the first of them; next is what it decided */
    struct deployment_row next;
    struct deferred turn;
    struct document_write write;
    struct change changes[2];
    struct store_load load;
    struct vault_waiter vault; /* until variables may be sealed */
    bool holds_vault;

    struct list watchers; // deployment_watcher::link
    unsigned tries;       /* of the call that made it; after a restart the last but one */
    bool handing;    /* its variables are being read, or that a builder has it is written */
    bool promoting;  /* its version is being made the current one */
    bool completing; /* the index of its build is being kept, or the row written */
    struct build *build;  /* NULL: no builder has it */
    struct timer timer;   /* something is due: deployments.c */
    int64_t due_since_ms; /* monotonic: since when it waits, or is built */
    struct list link;     // deployment_set::all
    struct list active;   // deployments::active
};

/* The turns of one project at builders (builds.c). */
struct build_turns {
    const struct project *project;
    uint64_t last; /* when it had its last turn, by deployments::build_turns */
    uint64_t busy; /* the last mark that was given because something of it is built */
};

/* Those of one environment. */
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
    struct list lines;        // build_wait::link; builders that wait, the first first
    struct list heard;        // builder::link; those that asked
    struct list awaited;      // builder_watch::link
    int64_t created_ms; /* monotonic; before, builders asked the process that we were */
    struct table turns; /* of struct build_turns, by project */
    uint64_t build_turns, build_marks; /* the last ones that were given */
    unsigned busy; /* commands, and operations of our own, in progress */
    struct keeping *keeping;
    int64_t started_ms; /* monotonic; valid once started */
    bool started, stopped;
    void (*on_change)(struct deployment *deployment, enum deployment_status before);
    void (*promote)(struct deployment *deployment); /* what is DEPLOYED, and promotes */
};

void deployments_init_turns(struct deployments *all);
void deployments_finish_turns(struct deployments *all);

/* Of the environment, made if it is not there. */
struct deployment_set *deployments_of(struct deployments *all, uint32_t env);

/* NULL: unknown, of another environment, or not written yet. */
struct deployment *deployments_find(struct deployments *all, uint32_t env, struct slice id);
struct deployment *deployments_by_version(struct deployments *all, uint32_t env,
                                          struct slice version);

/* Takes over the row and the reference; it is written by its first command. */
struct deployment *deployments_add(struct deployments *all, uint32_t env,
                                   struct deployment_row *row, struct bytes *variables);

/* One that is not written, and has no commands, will not be: who watches it is told, and it is
 * gone. */
void deployment_lose(struct deployment *deployment, const struct failure *why);

/* Of one that has no commands and nobody watching. */
void deployment_free(struct deployment *deployment);

/* Commands that are not being written end as ERR_CANCELED. */
void deployment_cancel_commands(struct deployment *deployment);

/* done comes once, later. */
void deployment_command_begin(struct deployment *deployment,
                              struct deployment_command *command);

void deployment_watch(struct deployment *deployment, struct deployment_watcher *watcher);

/* It is final, and current if it is to be. */
static inline bool deployment_is_settled(const struct deployment *deployment)
{
    return deployment_is_final(deployment->row.status) && !deployment->row.promotes;
}

/* The version that it has registered goes, if the deployment has ended without being one. */
void deployment_forget_worker(struct deployment *deployment);
