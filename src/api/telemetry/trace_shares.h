/* trace_shares.h - limits the bytes of spans and logs that environments and projects keep.
 *
 *   a commit of traces.h ─► too much, perhaps? ─► sweep: count ─► remove the oldest
 *
 * An environment above its limit loses the logs of its ended runs, oldest first, until it
 * has 7/8 of the limit. A project also has a limit, whatever the number of its branches:
 * above it, the environments with the most logs lose theirs first, all down to one level.
 * The preview branches of a project count as one environment there, so that many of them
 * take nothing from the others; among these, the branches with the most lose theirs first.
 * The document of each of these runs stays and counts what was removed.
 *
 * Logs of unfinished runs stay. An environment with too many of them is full: its records
 * are dropped until a sweep finds fewer. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct accounts;
struct engine;
struct trace_shares;
struct traces;

/* Bytes; 0: no limit. */
struct trace_share_limits {
    int64_t environment, project;
};

struct trace_shares *trace_shares_create(struct engine *engine, struct accounts *accounts,
                                         struct traces *traces,
                                         const struct trace_share_limits *limits);

/* Stops sweeps; removes nothing more. */
void trace_shares_stop(struct trace_shares *shares);

/* Frees shares. A request in flight ends later and then touches nothing. Ignores NULL. */
void trace_shares_destroy(struct trace_shares *shares);

/* An environment of a project. */
struct trace_part {
    uint32_t env, group; /* numbers; environments of one group count as one */
    int64_t bytes, goal; /* what it has, and what it may keep */
    int64_t before;      /* bytes written since the last sweep when this one began */
};

/* Sets the goals of all environments of a project, which are sorted by group. */
void trace_shares_set_goals(struct trace_part *parts, size_t count,
                            const struct trace_share_limits *limits);

/* Returns the highest level at which all environments together keep at most target. have:
 * the bytes of each; sorted by the call. */
int64_t trace_shares_level(int64_t *have, size_t count, int64_t target);
