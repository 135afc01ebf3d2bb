/* server.h - what the measured server costs: its CPU, its memory, its loop turns.
 *
 * CPU and memory come from the kernel, for the process the user named with --pid on the
 * same machine; loop turns from the server's own /metrics. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "options.h"
#include "report.h"

enum { TURN_BUCKETS_MAX = 32 };

/* The cumulative histogram of thread CPU time of the loop's turns. */
struct turns {
    bool known;
    unsigned count; /* of buckets */
    double bound_s[TURN_BUCKETS_MAX];
    uint64_t total[TURN_BUCKETS_MAX];
};

/* CPU time of all threads of the process and of its children since they started; 0 without a
 * pid. */
int64_t server_cpu_ns(const struct options *options);

/* Memory that only this process has and that is written to (Private_Dirty); 0 without a
 * pid. The kernel's socket buffers are not in it. */
int64_t server_memory_bytes(const struct options *options);

/* Not known when the server has no /metrics for us. */
void server_read_turns(const struct options *options, struct turns *turns);

/* The turns since before: how many, how many above 5 ms, the longest. Nothing when they
 * are not known. */
void server_report_turns(const struct options *options, const struct turns *before,
                         struct report *report);

/* How long changes have taken in the server, all together, since it started. */
struct deliveries {
    double commits, commit_s; /* from a commit asked for to acknowledged */
    double writes, write_s;   /* from a change applied to its last frame written */
};

/* 0 when the server has no /metrics for us. */
struct deliveries server_read_deliveries(const struct options *options);

/* How long one took since before, from the commit that was asked for to its last frame, where each
 * commit is one change and each is written by itself; nothing when that is not known. */
void server_report_deliveries(const struct options *options, struct deliveries before,
                              struct report *report);

/* What the server's store has written since it started. */
struct commits {
    uint64_t count, groups; /* groups: transactions, each of one commit or more */
};

/* 0 when the server has no /metrics for us. */
struct commits server_read_commits(const struct options *options);

/* How many commits a group had since before; nothing when that is not known. */
void server_report_groups(const struct options *options, struct commits before,
                          struct report *report);
