/* server.c - costs of the measured server: its CPU, its memory, its loop turns. */
#include "server.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "http_client.h"

static const char BUCKET[] = "runcast_loop_turn_cpu_seconds_bucket{le=\"";
static const char COMMITS[] = "runcast_store_commits_total{result=\"ok\"} ";
static const char GROUPS[] = "runcast_store_commit_groups_total ";
static const double TURN_LIMIT_S = 0.005;

/* Reads the kernel's clock of another process, which counts nanoseconds and is exact while
 * it runs; /proc/PID/stat counts ticks. Returns 0 or an errno. */
static int read_clock(int64_t pid, int64_t *cpu_ns)
{
    clockid_t clock;
    struct timespec cpu;
    int failed = clock_getcpuclockid((pid_t)pid, &clock);
    if (failed)
        return failed;
    if (clock_gettime(clock, &cpu))
        return errno;
    *cpu_ns = cpu.tv_sec * 1000000000LL + cpu.tv_nsec;
    return 0;
}

static int64_t children_cpu_ns(int64_t pid, const char *thread)
{
    char path[96];
    int64_t child, cpu_ns, total_ns = 0;
    snprintf(path, sizeof(path), "/proc/%" PRId64 "/task/%.20s/children", pid, thread);
    FILE *file = fopen(path, "re");
    if (!file) /* the thread has exited, or the kernel does not report it */
        return 0;
    while (fscanf(file, "%" SCNd64, &child) == 1) {
        if (read_clock(child, &cpu_ns) == 0)
            total_ns += cpu_ns;
    }
    fclose(file);
    return total_ns;
}

int64_t server_cpu_ns(const struct options *options)
{
    char path[64];
    int64_t total_ns = 0;
    if (options->pid == 0)
        return 0;
    int failed = read_clock(options->pid, &total_ns);
    if (failed)
        fatal("--pid: cannot read the CPU time of process %" PRId64 ": %s", options->pid,
              strerror(failed));
    snprintf(path, sizeof(path), "/proc/%" PRId64 "/task", options->pid);
    DIR *threads = opendir(path);
    struct dirent *thread;
    while (threads && (thread = readdir(threads)))
        total_ns += children_cpu_ns(options->pid, thread->d_name);
    if (threads)
        closedir(threads);
    return total_ns;
}

int64_t server_memory_bytes(const struct options *options)
{
    char path[64], line[256];
    long long kilobytes = -1;
    if (options->pid == 0)
        return 0;
    snprintf(path, sizeof(path), "/proc/%" PRId64 "/smaps_rollup", options->pid);
    FILE *file = fopen(path, "re");
    if (!file)
        fatal("--pid: cannot read %s: %s", path, strerror(errno));
    while (kilobytes < 0 && fgets(line, sizeof(line), file)) {
        if (sscanf(line, "Private_Dirty: %lld", &kilobytes) != 1)
            kilobytes = -1;
    }
    fclose(file);
    if (kilobytes < 0)
        fatal("--pid: %s does not say Private_Dirty", path);
    return kilobytes * 1024;
}

static void read_bucket(struct turns *turns, struct slice line)
{
    if (!slice_starts(line, BUCKET) || turns->count == TURN_BUCKETS_MAX)
        return;
    char text[128];
    char *end;
    snprintf(text, sizeof(text), "%.*s", SLICE_ARG(slice_from(line, sizeof(BUCKET) - 1)));
    double bound_s = strtod(text, &end); /* "+Inf" is a number, too */
    char *value = strchr(end, ' ');
    if (!value)
        return;
    turns->bound_s[turns->count] = bound_s;
    turns->total[turns->count] = strtoull(value, NULL, 10);
    turns->count++;
}

/* Returns false if /metrics is not accessible. Warns once if a token was given. */
static bool read_metrics(const struct options *options, struct buf *text)
{
    static bool is_told;
    struct options asking = *options;
    const char *token = getenv("RUNCAST_METRICS_TOKEN");
    if (token)
        asking.key = token;
    if (http_call(&asking, "GET", "/metrics", (struct slice){ 0 }, text) == 200)
        return true;
    if (token && !is_told)
        fputs("runcast-bench: RUNCAST_METRICS_TOKEN is not the token of this gateway: loop "
              "turns and times of its store are left out\n",
              stderr);
    is_told = true;
    return false;
}

void server_read_turns(const struct options *options, struct turns *turns)
{
    struct buf text = { 0 };
    *turns = (struct turns){ .count = 0 };
    if (read_metrics(options, &text)) {
        struct slice line, lines = buf_slice(&text);
        while (slice_split(&lines, '\n', &line))
            read_bucket(turns, line);
    }
    turns->known = turns->count > 0;
    buf_finish(&text);
}

void server_report_turns(const struct options *options, const struct turns *before,
                         struct report *report)
{
    struct turns after;
    if (!before->known) /* the floor does not respond at all */
        return;
    server_read_turns(options, &after);
    if (before->count != after.count)
        return;
    unsigned last = after.count - 1, longest = 0;
    uint64_t all = after.total[last] - before->total[last];
    uint64_t within = 0;
    for (unsigned i = 0; i <= last; i++) {
        uint64_t so_far = after.total[i] - before->total[i];
        if (so_far < all)
            longest = i + 1;
        if (after.bound_s[i] <= TURN_LIMIT_S)
            within = so_far;
    }
    report_count(report, "turns", "loop turns of the server", (int64_t)all);
    report_count(report, "turns_over_5ms", "  of them above 5 ms CPU",
                 (int64_t)(all - within));
    if (all && longest < last)
        report_number(report, "turn_max_ms", "  the longest, at most",
                      after.bound_s[longest] * 1000, "ms");
}

/* Returns the value after the name of a sample; 0 if it is missing. */
static double find_sample(struct slice text, const char *name)
{
    struct slice line;
    while (slice_split(&text, '\n', &line))
        if (slice_starts(line, name))
            return strtod(line.ptr + strlen(name), NULL);
    return 0;
}

struct commits server_read_commits(const struct options *options)
{
    struct commits commits = { 0 };
    struct buf text = { 0 };
    if (read_metrics(options, &text)) {
        commits.count = (uint64_t)find_sample(buf_slice(&text), COMMITS);
        commits.groups = (uint64_t)find_sample(buf_slice(&text), GROUPS);
    }
    buf_finish(&text);
    return commits;
}

struct deliveries server_read_deliveries(const struct options *options)
{
    struct deliveries all = { 0 };
    struct buf text = { 0 };
    if (read_metrics(options, &text)) {
        struct slice samples = buf_slice(&text);
        all.commits = find_sample(samples, "runcast_store_commit_seconds_count ");
        all.commit_s = find_sample(samples, "runcast_store_commit_seconds_sum ");
        all.writes = find_sample(samples, "runcast_change_to_write_seconds_count ");
        all.write_s = find_sample(samples, "runcast_change_to_write_seconds_sum ");
    }
    buf_finish(&text);
    return all;
}

void server_report_deliveries(const struct options *options, struct deliveries before,
                              struct report *report)
{
    struct deliveries now = server_read_deliveries(options);
    if (now.commits <= before.commits || now.writes <= before.writes)
        return;
    double commit_s = (now.commit_s - before.commit_s) / (now.commits - before.commits);
    double write_s = (now.write_s - before.write_s) / (now.writes - before.writes);
    report_number(report, "commit_to_write_us",
                  "from a commit asked for to its last frame, mean",
                  (commit_s + write_s) * 1e6, "us");
}

void server_report_groups(const struct options *options, struct commits before,
                          struct report *report)
{
    struct commits now = server_read_commits(options);
    if (now.groups <= before.groups)
        return;
    report_number(report, "group", "commits of a group",
                  (double)(now.count - before.count) / (double)(now.groups - before.groups),
                  "");
}
