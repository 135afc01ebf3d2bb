/* trace_shares.h - how many bytes of spans and logs the environments of a project keep.
 *
 *   a commit of traces.h ─► may the project have too much? ─► sweep: count ─► remove the oldest
 *
 * Beyond its share an environment loses the logs of those of its ended runs that began first,
 * until it has 7/8 of it. A project has a share, too, however many branches it makes: beyond
 * it the environments with the most logs give first, all down to one level. The document of each
 * such run stays and counts what was removed.
 *
 * Logs of runs that have not ended stay. An environment that has too much of them is full: its
 * records are dropped until a sweep finds less. */
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

/* Removes nothing more. */
void trace_shares_stop(struct trace_shares *shares);

/* A request in flight is answered later and touches nothing then. Accepts NULL. */
void trace_shares_destroy(struct trace_shares *shares);

/* Returns the level that no environment may exceed, so that all together keep at most target.
 * have holds the bytes that each keeps, and is sorted by the call. */
int64_t trace_shares_level(int64_t *have, size_t count, int64_t target);
