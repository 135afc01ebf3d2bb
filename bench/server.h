/* server.h - costs of the measured server: its CPU, its memory, its loop turns.
 *
 * CPU and memory come from the kernel, for the process given with --pid on the same
 * machine; loop turns come from the server's /metrics. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "options.h"
#include "report.h"

enum { TURN_BUCKETS_MAX = 32 };

/* Cumulative histogram of the CPU time of the loop's turns. */
struct turns {
    bool known;
    unsigned count; /* of buckets */
    double bound_s[TURN_BUCKETS_MAX];
    uint64_t total[TURN_BUCKETS_MAX];
};

/* Returns the CPU time of all threads of the process and of its children since they
 * started; 0 without a pid. */
int64_t server_cpu_ns(const struct options *options);

/* Returns the memory that only this process has and has written to (Private_Dirty); 0
 * without a pid. The kernel's socket buffers are not included. */
int64_t server_memory_bytes(const struct options *options);

/* turns->known is false if /metrics is not accessible. */
void server_read_turns(const struct options *options, struct turns *turns);

/* Reports the turns since `before`: their number, those above 5 ms, the longest. Reports
 * nothing if they are unknown. */
void server_report_turns(const struct options *options, const struct turns *before,
                         struct report *report);

/* Sums of the durations of changes in the server since it started. */
struct deliveries {
    double commits, commit_s; /* from the request of a commit to its acknowledgement */
    double writes, write_s;   /* from applying a change to writing its last frame */
};

/* Zeroed if /metrics is not accessible. */
struct deliveries server_read_deliveries(const struct options *options);

/* Reports the mean time since `before`, from the request of a commit to its last frame, if
 * each commit is one change and is written by itself. Reports nothing if it is unknown. */
void server_report_deliveries(const struct options *options, struct deliveries before,
                              struct report *report);

/* Writes of the server's store since it started. */
struct commits {
    uint64_t count, groups; /* groups: transactions, each of one commit or more */
};

/* Zeroed if /metrics is not accessible. */
struct commits server_read_commits(const struct options *options);

/* Reports the mean number of commits per group since `before`; nothing if it is unknown. */
void server_report_groups(const struct options *options, struct commits before,
                          struct report *report);
