/* builds.h - who builds what: the line of deployments that wait, and the builders that ask.
 *
 *   PENDING, oldest first ─┐
 *                          ├─► INSTALLING, written ─► handed out with a key of its own ─► build
 *   builders that wait ────┘      one of a project at a time
 *
 * Projects take turns: of those that have something pending and nothing being built, the one
 * whose last build began first has the next one. Preview branches share the turn of their project.
 *
 * The variables of a build are in memory in clear only while it is handed out: they are read from
 * the store and unsealed before it is written that the builder has it. The filter of its log is
 * prepared after that, in stints.
 *
 * The key opens what the build says of its version and nothing else, and only as long as the
 * build lasts. It is in memory alone: a build that is begun anew gets another one. */
#pragma once

#include "api/deployments/deployment_commands.h"
#include "api/deployments/secret_filter.h"

enum {
    BUILDER_LOST_MS = 60 * 1000, /* a builder that was silent for so long is not there */
    /* The gateway's own builder asks for the first time within this time after a start. */
    BUILDER_FIRST_MS = 10 * 1000,
    BUILD_KEY_MAX = 48,
    BUILD_LOG_MAX = 1 << 20, /* bytes */
};

struct account;
struct secret;

/* A token of workers with which builders asked. */
struct builder {
    const struct secret *secret;
    int64_t heard_ms;                                    /* monotonic */
    unsigned waiting;                                    /* calls that are held */
    char architecture[MACHINE_TEXT], libc[MACHINE_TEXT]; /* of the last one that asked */
    struct list link;                                    // deployments::heard
};

/* The output of a build, without the secrets that it was given.
 *
 *   pieces ─► secret_filter ─► the last MiB
 *
 * Values of the build's own variables and of secret variables of the environment are replaced
 * (secret_filter.h). */
struct build_log {
    struct buf text;
    struct secret_scan scan;
};

/* One deployment in the hands of a builder. */
struct build {
    const struct secret *secret;   /* the builder's token */
    unsigned char hash[HASH_LEN];  /* of its key */
    int64_t heard_ms, deadline_ms; /* monotonic */
    struct secret_filter filter;
    struct build_log log;
    struct build_wait
        *wait; /* until the filter is prepared: the builder's call; then NULL */
};

/* A builder that waits; embedded by its call. */
struct build_wait {
    const struct secret *secret;
    char architecture[MACHINE_TEXT], libc[MACHINE_TEXT];
    /* Called once, later: deployment with its build and the key, which is wiped after the
     * call, as are the variables. NULL: it was canceled. */
    void (*ready)(struct build_wait *wait, struct deployment *deployment, const char *key);

    struct deployments *all;
    struct deployment *deployment; /* while it is being handed out */
    struct store_load load;        /* of its variables */
    struct bytes *variables;       /* a JSON object of strings; NULL: it has none */
    struct deployment_command command;
    struct deferred turn;    /* the next stint of that */
    char key[BUILD_KEY_MAX]; /* of its build */
    bool canceled;
    struct list link; // deployments::lines
};

/* The first fields are set, to ready. */
void build_wait_begin(struct deployments *all, struct build_wait *wait);

/* ready comes, with NULL unless a deployment is being handed out just now. */
void build_wait_cancel(struct build_wait *wait);

/* Who waits gets what is pending, if there is something for both. */
void builds_match(struct deployments *all);

/* The answer did not reach its builder: the deployment is pending as before. */
void build_give_back(struct deployment *deployment);

/* Something was heard of the deployment's builder. */
void build_hear(struct deployment *deployment);

/* Nobody builds it any more: its key opens nothing, and its log is written to its file. */
void build_end(struct deployment *deployment);

/* A caller that waits for a builder of its environment; embedded by its owner. */
struct builder_watch {
    const struct account *account;
    /* Once, later, unless the link is removed before. The watch is the owner's again. */
    void (*came)(struct builder_watch *watch);
    struct list link; // deployments::awaited
};

/* How long the gateway's own supervise role may still take to ask for the first time, in ms. 0: it
 * is not awaited. */
int64_t builds_await_ms(const struct deployments *all);

/* account and came are set; builds_are_served was false. */
void builder_watch_begin(struct deployments *all, struct builder_watch *watch);

/* Some builder that serves the environment is there. */
bool builds_are_served(const struct deployments *all, const struct account *account);

/* "linux/amd64": what builders of the environment are, or a guess. */
const char *builds_platform(const struct deployments *all, const struct account *account);

void builds_forget_builders(struct deployments *all);

/* The filter is prepared, and the same each time. */
void build_log_add(struct build_log *log, const struct secret_filter *filter,
                   struct slice piece);

/* The log is complete. */
void build_log_end(struct build_log *log);

/* The log that clients get: whole lines, at most the last MiB. */
struct slice build_log_text(const struct build_log *log);

/* The log has ended. */
void build_log_finish(struct build_log *log);
