/* version_sweep.c - requests one version after another, and removes those not found. */
#include "supervisor/versions/version_sweep.h"

#include <dirent.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/work.h"
#include "supervisor/versions/build_job.h"
#include "supervisor/versions/version_folder.h"

enum {
    SOON_MS = 2 * 1000,
    EVERY_MS = 5 * 60 * 1000,
};

enum sweep_state {
    SWEEP_RESTING,
    SWEEP_CLEARING,
    SWEEP_LISTING,
    SWEEP_ASKING,
    SWEEP_REMOVING
};

struct version_sweep {
    struct version_sweep_options options;
    enum sweep_state state;
    bool stopped;
    bool again; /* a version was made or set aside during this round */
    bool cleared;
    struct timer timer;
    uint32_t kind;
    struct work work;
    struct gateway_call call;
    /* names of the versions of this round, each with a terminating zero */
    struct buf names;
    size_t at;        /* offset of the next name */
    const char *name; /* name of the version being asked about or removed */
};

static void rest(struct version_sweep *sweep)
{
    sweep->state = SWEEP_RESTING;
    if (!sweep->stopped)
        loop_set_timer(sweep->options.loop, &sweep->timer, sweep->kind,
                       sweep->again ? SOON_MS : EVERY_MS);
    sweep->again = false;
}

static bool is_used(const struct version_sweep *sweep)
{
    return sweep->options.is_used(sweep->options.owner, slice_of(sweep->name));
}

static void go_on(struct version_sweep *sweep);

static void begin_work(struct version_sweep *sweep, void (*run)(struct work *),
                       void (*done)(struct work *), enum work_kind kind)
{
    sweep->work.run = run;
    sweep->work.done = done;
    work_begin(loop_uv(sweep->options.loop), &sweep->work, kind);
}

/* ---- removing ---- */

/* Sets the version aside; its files are removed in the next round. */
static void remove_work(struct work *work)
{
    const struct version_sweep *sweep = container_of(work, struct version_sweep, work);
    version_folder_set_aside(site_versions(sweep->options.site), sweep->name);
}

static void on_removed(struct work *work)
{
    struct version_sweep *sweep = container_of(work, struct version_sweep, work);
    sweep->again = true;
    log_info("version removed", "deployment", sweep->name, NULL);
    go_on(sweep);
}

/* ---- asking ---- */

/* The header shows that the 404 comes from the gateway and not from a proxy. */
static bool is_not_kept(const struct gateway_call *call)
{
    return call->status == 404 &&
           slice_is(fetch_header(&call->fetch, "x-should-retry"), "false");
}

static void on_asked(struct gateway_call *call)
{
    struct version_sweep *sweep = container_of(call, struct version_sweep, call);
    if (is_not_kept(call) && !sweep->stopped && !is_used(sweep)) {
        sweep->state = SWEEP_REMOVING;
        begin_work(sweep, remove_work, on_removed, WORK_VERSIONS);
    } else if (call->status) {
        go_on(sweep);
    } else {
        rest(sweep); /* the gateway is unreachable */
    }
}

static void ask(struct version_sweep *sweep)
{
    struct failure why;
    struct buf path = { 0 };
    buf_print(&path, "/deployments/%s/archive", sweep->name);
    buf_add_char(&path, '\0');
    sweep->state = SWEEP_ASKING;
    sweep->call = (struct gateway_call){ .fetch = { .method = "HEAD" },
                                         .path = path.ptr,
                                         .done = on_asked };
    bool asked =
        gateway_call_begin(sweep->options.gateway_client, &sweep->call, &why) == OK;
    buf_finish(&path);
    if (!asked)
        rest(sweep);
}

static void go_on(struct version_sweep *sweep)
{
    while (sweep->at < sweep->names.len && !sweep->stopped) {
        sweep->name = sweep->names.ptr + sweep->at;
        sweep->at += strlen(sweep->name) + 1;
        if (!is_used(sweep)) {
            ask(sweep);
            return;
        }
    }
    rest(sweep);
}

/* ---- listing ---- */

/* Returns true for a complete version of a deployment, not for one installed by hand. */
static bool is_version(struct slice name)
{
    return slice_starts(name, "deployment_") && build_id_is_right(name);
}

static void list_work(struct work *work)
{
    struct version_sweep *sweep = container_of(work, struct version_sweep, work);
    DIR *all = opendir(site_versions(sweep->options.site));
    for (const struct dirent *entry;
         all && work_may_continue(work) && (entry = readdir(all));)
        if (is_version(slice_of(entry->d_name))) {
            buf_add_text(&sweep->names, entry->d_name);
            buf_add_char(&sweep->names, '\0');
        }
    if (all)
        closedir(all);
}

static void on_listed(struct work *work)
{
    go_on(container_of(work, struct version_sweep, work));
}

/* ---- clearing ---- */

static void clear_work(struct work *work)
{
    struct version_sweep *sweep = container_of(work, struct version_sweep, work);
    sweep->cleared = version_folder_remove_old(site_versions(sweep->options.site), work);
}

static void on_cleared(struct work *work)
{
    struct version_sweep *sweep = container_of(work, struct version_sweep, work);
    if (sweep->stopped) {
        rest(sweep);
        return;
    }
    if (!sweep->cleared) {
        begin_work(sweep, clear_work, on_cleared, WORK_REMOVAL);
        return;
    }
    sweep->state = SWEEP_LISTING;
    begin_work(sweep, list_work, on_listed, WORK_VERSIONS);
}

static void on_time(struct timer *timer)
{
    struct version_sweep *sweep = container_of(timer, struct version_sweep, timer);
    buf_clear(&sweep->names);
    sweep->at = 0;
    sweep->state = SWEEP_CLEARING;
    begin_work(sweep, clear_work, on_cleared, WORK_REMOVAL);
}

/* ---- interface ---- */

struct version_sweep *version_sweep_create(const struct version_sweep_options *options)
{
    struct version_sweep *sweep = mem_new(struct version_sweep);
    sweep->options = *options;
    sweep->kind = timers_kind(loop_timers(options->loop), on_time);
    version_sweep_soon(sweep);
    return sweep;
}

void version_sweep_soon(struct version_sweep *sweep)
{
    sweep->again = true;
    if (sweep->state == SWEEP_RESTING)
        rest(sweep);
}

void version_sweep_stop(struct version_sweep *sweep)
{
    sweep->stopped = true;
    timers_clear(loop_timers(sweep->options.loop), &sweep->timer);
    if (sweep->state == SWEEP_ASKING)
        fetch_cancel(&sweep->call.fetch);
    work_stop(&sweep->work);
}

bool version_sweep_is_idle(const struct version_sweep *sweep)
{
    return sweep->state == SWEEP_RESTING;
}

void version_sweep_destroy(struct version_sweep *sweep)
{
    if (!sweep)
        return;
    buf_finish(&sweep->names);
    free(sweep);
}
