/* pg_group.h - the commits that go to the database together, as the parameters of commit_v100, and
 * its answer as theirs.
 *
 *   commits ─► pg_group_encode ─► arrays ─► commit_v100 ─► bytes ─► pg_group_decode ─► commits
 *
 * Pure. What a commit does twice to the same run, document or claim is found here, for the
 * function looks at what was there before the commit: a second version must be made of the
 * first one, a second claim knows the one before it.
 *
 * An answer says where the counters stood, and whether each commit was written: positions and
 * numbers of runs are counted again from that, as the function has counted them. */
#pragma once

#include "base/table.h"
#include "runcast/store.h"
#include "store/pg/sql/pg_bind.h"

/* The numbers that the server has given to our types. */
struct pg_types {
    uint32_t request, requests; /* one, and an array of them */
    uint32_t claim, claims;
    uint32_t document, documents;
    uint32_t run, runs;
};

/* An environment of the group: the head of what is written in it. */
struct pg_head {
    uint32_t env;
    uint64_t seq;  /* the answer's: where it stood before */
    int64_t grown; /* the answer's: bytes */
};

struct pg_group {
    struct pg_head *heads; /* by env */
    size_t head_count, head_capacity;
    struct table tasks; /* of struct task: those of new runs */
    uint32_t task_count;
    struct pg_array envs, terms, task_envs, task_names;
    struct pg_array requests, claims, runs, documents;
    uint32_t request_count;
    struct table seen; /* while a commit is encoded: what it has written */
    struct buf text;
};

/* In which term we lead the environment. */
typedef uint64_t pg_term_fn(const void *owner, uint32_t env);

void pg_group_init(struct pg_group *group);
void pg_group_finish(struct pg_group *group);

/* Puts the commits (store_commit::link) into the arrays. */
void pg_group_encode(struct pg_group *group, const struct list *commits,
                     const struct pg_types *types, pg_term_fn *term_of, const void *owner);

/* Appends the arrays as parameters, in the order in which commit_v100 takes them. Borrowed. */
void pg_group_bind(struct pg_group *group, struct pg_params *params,
                   const struct pg_types *types);

enum pg_outcome {
    PG_ANSWERED,
    PG_BURNT,  /* its number was given to an empty group: nothing was or will be written */
    PG_GONE,   /* the writer was removed: another process leads */
    PG_STRAY,  /* the database is behind: it has lost what it had acknowledged */
    PG_GARBLED /* not an answer */
};

/* Gives each commit its status, positions, numbers and owners of claims; heads say how
 * much each environment has grown. Unless PG_ANSWERED the commits are left alone. */
enum pg_outcome pg_group_decode(struct pg_group *group, struct slice answer,
                                const struct list *commits);
