/* process_metrics.c - see process_metrics.h. */
#include "api/process_metrics.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static void print_gauge(struct buf *out, const char *name, const char *help, int64_t value)
{
    buf_print(out, "# HELP %s %s\n# TYPE %s gauge\n%s %lld\n", name, help, name, name,
              (long long)value);
}

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

/* 0: the kernel does not say. */
static int64_t resident_bytes(void)
{
    long total = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    bool read = file && fscanf(file, "%ld %ld", &total, &resident) == 2;
    if (file)
        fclose(file);
    return read ? (int64_t)resident * sysconf(_SC_PAGESIZE) : 0;
}

/* Calls for a run that are held because there is none. */
static int64_t waiting_workers(const struct api *api)
{
    int64_t seated = 0;
    struct accounts *accounts = api_accounts(api);
    for (struct account *a = NULL; (a = accounts_next(accounts, a));) {
        const struct environment *env = engine_environment(api_engine(api), a->number);
        seated += env ? env->seated : 0;
    }
    return seated;
}

void process_metrics_print(const struct api *api, struct buf *out)
{
    const char *data = api_options(api)->data;
    buf_print(out,
              "# HELP runcast_build_info The version that runs\n"
              "# TYPE runcast_build_info gauge\n"
              "runcast_build_info{version=\"%s\"} 1\n",
              RUNCAST_VERSION);
    print_gauge(out, "process_resident_memory_bytes", "Resident memory", resident_bytes());
    print_gauge(out, "runcast_database_bytes", "Size of the database file",
                file_size(data, "runcast.db"));
    print_gauge(out, "runcast_database_log_bytes", "Size of its write-ahead log",
                file_size(data, "runcast.db-wal"));
    print_gauge(out, "runcast_waiting_workers",
                "Calls of workers for a run that are held because there is none",
                waiting_workers(api));
}
