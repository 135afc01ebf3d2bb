/* process_metrics.c - looks at the process and at what waits when somebody reads the metrics. */
#include "api/process_metrics.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fleet/sessions.h"
#include "fleet/waiting.h"

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

/* Figures of all environments of a type together: one of each would be a series for each
 * preview branch. */
struct figures {
    int64_t seated;                    /* dequeues that are held */
    int64_t sessions;                  /* CLIs */
    int64_t unserved;                  /* environments */
    int64_t oldest[ENVIRONMENT_TYPES]; /* Unix ms; 0: no run is queued */
};

static void look_at(const struct environment *env, int64_t *oldest, struct figures *figures)
{
    int64_t since = waiting_oldest(env);
    struct session *session = NULL;
    figures->seated += env->fleet->seated;
    figures->unserved += waiting_is_unserved(env);
    while (env->is_dev && (session = sessions_next(env, session)))
        figures->sessions++;
    if (since && (!*oldest || since < *oldest))
        *oldest = since;
}

static struct figures look(const struct api *api)
{
    struct figures figures = { 0 };
    struct accounts *accounts = api_accounts(api);
    for (struct account *a = NULL; (a = accounts_next(accounts, a));) {
        const struct environment *env = engine_environment(api_engine(api), a->number);
        if (env)
            look_at(env, &figures.oldest[a->type], &figures);
    }
    return figures;
}

static void print_oldest(const struct api *api, const struct figures *figures,
                         struct buf *out)
{
    static const char name[] = "runcast_oldest_queued_seconds";
    int64_t now = loop_wall_ms(engine_loop(api_engine(api)));
    buf_print(out,
              "# HELP %s How long the run has been queued that has been for longest, by "
              "type of environment\n# TYPE %s gauge\n",
              name, name);
    for (int type = 0; type < ENVIRONMENT_TYPES; type++) {
        int64_t since = figures->oldest[type];
        int64_t ms = since && since < now ? now - since : 0;
        buf_print(out, "%s{type=\"%s\"} %lld.%03d\n", name,
                  environment_path_slug((enum environment_type)type),
                  (long long)(ms / 1000), (int)(ms % 1000));
    }
}

void process_metrics_print(const struct api *api, struct buf *out)
{
    struct figures figures = look(api);
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
                figures.seated);
    print_gauge(out, "runcast_sessions",
                "CLIs that are there, executing or not, heard of in the last minute",
                figures.sessions);
    print_gauge(out, "runcast_unserved_environments",
                "Environments that have queued runs, and no worker", figures.unserved);
    print_oldest(api, &figures, out);
}
