/* pg_group.h - encodes commits as parameters of commit_v101, and decodes its result.
 *
 *   commits ─► pg_group_encode ─► arrays ─► commit_v101 ─► bytes ─► pg_group_decode ─► …
 *
 * Pure. The SQL function only sees rows as they were before the commit. So if a commit
 * writes the same run, document or claim twice, that is checked here: the second version
 * must be based on the first one, and the second claim refers to the first one.
 *
 * A result has the counters before the group and the status of each commit. From these,
 * positions and run numbers are counted here in the same way as in the function. */
#pragma once

#include "base/table.h"
#include "runcast/store.h"
#include "store/pg/sql/pg_bind.h"

/* The numbers (OIDs) that the server has assigned to our types. */
struct pg_types {
    uint32_t request, requests; /* the type, and an array of it */
    uint32_t claim, claims;
    uint32_t document, documents;
    uint32_t run, runs;
};

/* An environment of the group. */
struct pg_head {
    uint32_t env;
    uint64_t seq;  /* from the result: its sequence number before the group */
    int64_t grown; /* from the result: change of the stored bytes */
};

struct pg_group {
    struct pg_head *heads; /* sorted by env */
    size_t head_count, head_capacity;
    struct table tasks; /* struct task, for new runs */
    uint32_t task_count;
    struct pg_array envs, terms, task_envs, task_names;
    struct pg_array requests, claims, runs, documents;
    uint32_t request_count;
    struct table seen; /* struct seen; what the commit being encoded has written */
    struct buf text;
};

/* Returns the term in which we lead the environment. */
typedef uint64_t pg_term_fn(const void *owner, uint32_t env);

void pg_group_init(struct pg_group *group);
void pg_group_finish(struct pg_group *group);

/* Encodes the commits (store_commit::link) into the arrays. */
void pg_group_encode(struct pg_group *group, const struct list *commits,
                     const struct pg_types *types, pg_term_fn *term_of, const void *owner);

/* Appends the arrays as parameters, in the order of commit_v101. Borrowed. */
void pg_group_bind(struct pg_group *group, struct pg_params *params,
                   const struct pg_types *types);

enum pg_outcome {
    PG_ANSWERED, /* each commit has its status */
    PG_VOIDED,   /* an empty group took this number: the group will never be written */
    PG_GONE,     /* the writer's row was removed: another process leads */
    PG_STRAY,    /* its number does not follow the last one stored: another history */
    PG_GARBLED   /* malformed */
};

/* Sets status, positions, numbers and owners of claims of each commit, and heads[].grown.
 *
 * They are valid only if it returns PG_ANSWERED. Before PG_GARBLED, some may have been
 * set. */
enum pg_outcome pg_group_decode(struct pg_group *group, struct slice answer,
                                const struct list *commits);
