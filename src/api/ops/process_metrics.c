/* process_metrics.c - measures the process whenever the metrics are read. */
#include "api/ops/process_metrics.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "api/ops/descriptors.h"
#include "api/ops/unready.h"
#include "base/metrics.h"
#include "net/certificates.h"

static int64_t file_size(const char *folder, const char *name)
{
    struct stat found;
    if (!folder)
        return 0;
    struct buf path = { 0 };
    buf_print(&path, "%s/%s", folder, name);
    buf_add_char(&path, '\0');
    int64_t size = stat(path.ptr, &found) ? 0 : found.st_size;
    buf_finish(&path);
    return size;
}

/* Returns 0 if the kernel does not report it. */
static int64_t resident_bytes(void)
{
    long total = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    bool read = file && fscanf(file, "%ld %ld", &total, &resident) == 2;
    if (file)
        fclose(file);
    return read ? (int64_t)resident * sysconf(_SC_PAGESIZE) : 0;
}

static double cpu_seconds(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

/* Returns the Unix time at which the kernel started the process. The kernel reports it in
 * ticks since boot. */
static double start_seconds(void)
{
    struct timespec boot, now;
    unsigned long long ticks = 0;
    FILE *file = fopen("/proc/self/stat", "re");
    /* The second field is a name in parentheses; the 22nd is the start. */
    if (file && fscanf(file,
                       "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u "
                       "%*u %*d %*d %*d %*d %*d %*d %llu",
                       &ticks) != 1)
        ticks = 0;
    if (file)
        fclose(file);
    clock_gettime(CLOCK_BOOTTIME, &boot);
    clock_gettime(CLOCK_REALTIME, &now);
    double age = (double)boot.tv_sec - (double)ticks / (double)sysconf(_SC_CLK_TCK);
    return floor((double)now.tv_sec - age);
}

static void print_number(struct buf *out, const char *name, const char *type,
                         const char *help, double value)
{
    metrics_print_head(out, name, type, help);
    buf_print(out, "%s ", name);
    buf_add_json_double(out, value);
    buf_add_char(out, '\n');
}

#ifdef RUNCAST_DASHBOARD
static const char has_dashboard[] = "yes";
#else
static const char has_dashboard[] = "no";
#endif

static void print_build(struct buf *out)
{
    metrics_print_head(
        out, "runcast_build_info", "gauge",
        "The version that runs, and whether it was built with the dashboard");
    buf_print(out, "runcast_build_info{version=\"%s\",dashboard=\"%s\"} 1\n",
              RUNCAST_VERSION, has_dashboard);
}

static bool stands_by(const struct api *api)
{
    const char *why_not = api_not_ready(api);
    return why_not && !strcmp(why_not, "standby");
}

void process_metrics_print(const struct api *api, int64_t descriptors, struct buf *out)
{
    const char *data = api_options(api)->data;
    const char *obstacles[UNREADY_REASONS_MAX];
    int64_t limit = descriptors_limit();
    print_build(out);
    metrics_print_gauge(out, "runcast_ready", "1 if the gateway is ready (/readyz)",
                        !unready_reasons(api, obstacles));
    metrics_print_gauge(out, "runcast_standby", "1 while another gateway leads",
                        stands_by(api));
    metrics_print_gauge(out, "process_resident_memory_bytes", "Resident memory",
                        resident_bytes());
    print_number(out, "process_cpu_seconds_total", "counter", "CPU time of all threads",
                 cpu_seconds());
    print_number(out, "process_start_time_seconds", "gauge",
                 "When the process was started, since 1970", start_seconds());
    metrics_print_gauge(out, "process_open_fds", "Open files, sockets and pipes",
                        descriptors);
    if (limit < INT64_MAX)
        metrics_print_gauge(out, "process_max_fds",
                            "Maximum number of open files, sockets and pipes", limit);
    if (!engine_store(api_engine(api))->ops->lead) { /* the database is a file */
        metrics_print_gauge(out, "runcast_database_bytes", "Size of the database file",
                            file_size(data, "runcast.db"));
        metrics_print_gauge(out, "runcast_database_log_bytes",
                            "Size of the database's write-ahead log",
                            file_size(data, "runcast.db-wal"));
    }
    if (api_options(api)->certificates)
        certificates_print_metrics(api_options(api)->certificates,
                                   loop_wall_ms(engine_loop(api_engine(api))) / 1000, out);
}
