/* builds.h - the queue of deployments waiting for a build, and the builders that take them.
 *
 *   PENDING, oldest first ─┐
 *                          ├─► INSTALLING, written ─► handed out with its own key ─► build
 *   builders that wait ────┘      one of a project at a time
 *
 * Projects take turns. Among those with something pending and nothing being built, the one
 * whose last build began earliest gets the next one. Preview branches share their project's
 * turn.
 *
 * A build's variables are in memory in clear text only while it is handed out: they are
 * read from the store and unsealed before the hand-out is written. The filter for its log
 * is prepared after that, in time slices.
 *
 * A build's key lets it report on its version and nothing else, and only as long as the
 * build lasts. It is only in memory: a restarted build gets another one. */
#pragma once

#include "api/deployments/deployment_commands.h"
#include "api/deployments/secret_filter.h"

enum {
    BUILDER_LOST_MS = 60 * 1000, /* a builder silent for this long is gone */
    /* The gateway's own builder sends its first request within this time after startup. */
    BUILDER_FIRST_MS = 10 * 1000,
    BUILD_KEY_MAX = 48,
    BUILD_LOG_MAX = 1 << 20, /* bytes */
};

struct account;
struct secret;

/* A workers' token that builders have used. */
struct builder {
    const struct secret *secret;
    int64_t last_request_ms;                             /* last request; monotonic */
    unsigned waiting;                                    /* held calls */
    char architecture[MACHINE_TEXT], libc[MACHINE_TEXT]; /* of the last request */
    struct list link;                                    // deployments::builders
};

/* The output of a build, without the secrets that it was given.
 *
 *   pieces ─► secret_filter ─► the last MiB
 *
 * Values of the build's own variables and of secret variables of the environment are
 * replaced (secret_filter.h). */
struct build_log {
    struct buf text;
    struct secret_scan scan;
};

/* A deployment that a builder is working on. */
struct build {
    const struct secret *secret;          /* the builder's token */
    unsigned char hash[HASH_LEN];         /* of its key */
    int64_t last_request_ms, deadline_ms; /* monotonic */
    struct secret_filter filter;
    struct build_log log;
    struct build_wait *wait; /* the builder's call; NULL once the filter is prepared */
};

/* A waiting builder; embedded by its call. */
struct build_wait {
    const struct secret *secret;
    char architecture[MACHINE_TEXT], libc[MACHINE_TEXT];
    /* Called once, later, with the deployment, its build and the key. The key and the
     * variables are wiped after the call. deployment NULL: the wait was canceled. */
    void (*ready)(struct build_wait *wait, struct deployment *deployment, const char *key);

    struct deployments *all;
    struct deployment *deployment; /* while it is being handed out */
    struct store_load load;        /* reads its variables */
    struct bytes *variables;       /* a JSON object of strings; NULL: none */
    struct deployment_command command;
    struct deferred turn;    /* the next time slice of the filter */
    char key[BUILD_KEY_MAX]; /* of its build */
    bool canceled;
    struct list link; // deployments::lines
};

/* Begins to wait. The fields up to ready must be set. */
void build_wait_begin(struct deployments *all, struct build_wait *wait);

/* Ends the wait: calls ready with NULL, unless a deployment is just being handed out. */
void build_wait_cancel(struct build_wait *wait);

/* Hands pending deployments to waiting builders that can build them. */
void builds_match(struct deployments *all);

/* Makes the deployment pending again because the response did not reach its builder. */
void build_give_back(struct deployment *deployment);

/* Notes a request of the deployment's builder. */
void build_touch(struct deployment *deployment);

/* Ends the build: its key no longer grants anything, and its log is written to its file. */
void build_end(struct deployment *deployment);

/* A caller that waits for a builder of its environment; embedded by its owner. */
struct builder_watch {
    const struct account *account;
    /* Called once, later, unless the link is removed first. The watch then belongs to the
     * owner again. */
    void (*arrived)(struct builder_watch *watch);
    struct list link; // deployments::awaited
};

/* Returns how long the gateway's own supervise role may still take to send its first
 * request, in ms; 0: it is not awaited. */
int64_t builds_expected_in_ms(const struct deployments *all);

/* Begins to watch. account and arrived must be set, and builds_are_served must have
 * returned false. */
void builder_watch_begin(struct deployments *all, struct builder_watch *watch);

/* Returns true if a builder serves the environment, or is expected after startup. */
bool builds_are_served(const struct deployments *all, const struct account *account);

/* Returns the platform of the environment's builders, like "linux/amd64", or a guess. */
const char *builds_platform(const struct deployments *all, const struct account *account);

void builds_forget_builders(struct deployments *all);

/* Adds a piece of output. The filter must be prepared, and the same each time. */
void build_log_add(struct build_log *log, const struct secret_filter *filter,
                   struct slice piece);

/* Ends the log, when it is complete. */
void build_log_end(struct build_log *log);

/* Returns the log that clients get: whole lines, at most the last MiB. */
struct slice build_log_text(const struct build_log *log);

/* Frees the log, which must have ended. */
void build_log_finish(struct build_log *log);
