/* upgrade.c - measures an upgrade from the clients' view.
 *
 * The gateway is restarted on a socket that stays bound, as under systemd:
 *
 *   start ─► runs ─► clients, all live ─► changes, calm ─► SIGTERM ─► ended ─► start again
 *        ─► all clients are back ─► changes, calm ─► which states does each know? ─► report
 *
 * Changes continue all the time, one request each, at an even rate. */
#include "commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "returning.h"
#include "server.h"
#include "unit.h"

enum {
    STEP_MS = 500,  /* of the histogram */
    STEPS_MAX = 12, /* later ones are in the last row */
    PEAK_MS = 100,  /* window for counting simultaneous connections */
    TARGET_MS = 5000,
};

static const int64_t NS_PER_MS = 1000000;
static const int64_t TICK_NS = 2000000;
static const int64_t CALM_NS = 3000000000;
static const int64_t PATIENCE_NS = 90000000000;
static const int64_t QUIET_NS =
    5000000000; /* a client without the newest states by then has missed them */

struct upgrade {
    const struct options *options;
    struct report report;
    struct poller poller;
    struct unit unit;
    struct fill fill; /* runs that only make the start longer */
    struct writer writer;
    struct returning clients;
    struct turns turns;
    struct histogram calm; /* latency of changes before the stop */
    uint64_t missed;
    int64_t stop_ns, ended_ns, ready_ns;
    /* CPU of the new process: until it is ready, and from then until all clients are back. */
    int64_t start_cpu_ns, back_cpu_ns;
    int64_t memory_before, memory_after;
    int64_t *times;
};

/* Returns the options with the pid of the running process, for server.h. */
static struct options of_process(const struct upgrade *upgrade)
{
    struct options options = *upgrade->options;
    options.pid = upgrade->unit.pid;
    return options;
}

static void turn(struct upgrade *upgrade, const char *what)
{
    writer_step(&upgrade->writer);
    returning_step(&upgrade->clients);
    poller_wait(&upgrade->poller, now_ns() + TICK_NS);
    report_progress(&upgrade->report, "%s: %zu of %zu are live, %" PRIu64 " changes", what,
                    upgrade->clients.live, upgrade->clients.count, upgrade->writer.done);
}

static void pass(struct upgrade *upgrade, int64_t ns, const char *what)
{
    int64_t until_ns = now_ns() + ns;
    while (now_ns() < until_ns)
        turn(upgrade, what);
}

/* Begins endless changes at the rate of the options. */
static void begin_changes(struct upgrade *upgrade)
{
    writer_begin(&upgrade->writer, upgrade->options->rate, UINT64_MAX);
}

static void start_first(struct upgrade *upgrade)
{
    const struct options *options = upgrade->options;
    unit_start(&upgrade->unit);
    unit_await(&upgrade->unit);
    fill_init(&upgrade->fill, options, &upgrade->report);
    fill_to(&upgrade->fill, (size_t)options->runs);
    writer_begin(&upgrade->writer, 1000, 4 * upgrade->writer.tags);
    while (upgrade->writer.begun < upgrade->writer.wanted ||
           !writer_is_idle(&upgrade->writer))
        turn(upgrade, "making runs");
    int64_t until_ns = now_ns() + PATIENCE_NS;
    while (upgrade->clients.live < upgrade->clients.count) {
        returning_connect(&upgrade->clients);
        turn(upgrade, "connecting");
        if (now_ns() > until_ns)
            fatal("the server does not answer: %zu of %zu are live", upgrade->clients.live,
                  upgrade->clients.count);
    }
}

static void be_calm(struct upgrade *upgrade)
{
    struct options process = of_process(upgrade);
    writer_measure(&upgrade->writer);
    begin_changes(upgrade);
    pass(upgrade, CALM_NS, "calm");
    upgrade->calm = upgrade->writer.latency;
    if (upgrade->writer.told_again + upgrade->writer.cut_off + upgrade->writer.refused)
        fatal("requests failed before the stop: %.*s",
              SLICE_ARG(buf_slice(&upgrade->writer.failure)));
    upgrade->memory_before = server_memory_bytes(&process);
    server_read_turns(&process, &upgrade->turns);
    memset(upgrade->turns.total, 0,
           sizeof(upgrade->turns.total)); /* the next process begins at 0 */
}

static void restart(struct upgrade *upgrade)
{
    struct unit *unit = &upgrade->unit;
    writer_measure(&upgrade->writer);
    returning_measure(&upgrade->clients);
    upgrade->stop_ns = now_ns();
    unit_stop(unit);
    while (unit->pid)
        turn(upgrade, "stopping");
    upgrade->ended_ns = unit->ended_ns - upgrade->stop_ns;
    upgrade->clients.has_next = true;
    unit_start(unit);
    while (!unit->ready && unit->pid)
        turn(upgrade, "starting");
    if (!unit->pid)
        fatal("the gateway has ended instead of starting");
    struct options process = of_process(upgrade);
    upgrade->ready_ns = unit->ready_ns - upgrade->stop_ns;
    upgrade->start_cpu_ns = server_cpu_ns(&process);
    while (upgrade->clients.back < upgrade->clients.count &&
           now_ns() - upgrade->stop_ns < PATIENCE_NS)
        turn(upgrade, "coming back");
    upgrade->back_cpu_ns = server_cpu_ns(&process) - upgrade->start_cpu_ns;
    upgrade->memory_after = server_memory_bytes(&process);
}

/* Waits until all clients know what the database has, or nothing more arrives. */
static void settle(struct upgrade *upgrade)
{
    pass(upgrade, CALM_NS, "calm again");
    writer_end(&upgrade->writer);
    while (!writer_is_idle(&upgrade->writer))
        turn(upgrade, "waiting for answers");
    uint32_t *newest_of = mem_new_array(uint32_t, upgrade->writer.run_count);
    writer_read_newest(&upgrade->writer, newest_of);
    int64_t until_ns = now_ns() + QUIET_NS;
    do {
        turn(upgrade, "waiting for the last rows");
        upgrade->missed = returning_count_missed(&upgrade->clients, newest_of);
    } while (upgrade->missed && now_ns() < until_ns);
    free(newest_of);
}

/* ---- report ---- */

static void report_ms(struct upgrade *upgrade, const char *key, const char *label,
                      int64_t ns)
{
    report_number(&upgrade->report, key, label, (double)ns / (double)NS_PER_MS, "ms");
}

/* Returns the largest number of them within PEAK_MS. */
static size_t find_peak(const int64_t *times, size_t count)
{
    size_t most = 0, first = 0;
    for (size_t i = 0; i < count; i++) {
        while (times[i] - times[first] >= PEAK_MS * NS_PER_MS)
            first++;
        if (i - first + 1 > most)
            most = i - first + 1;
    }
    return most;
}

static void report_steps(struct upgrade *upgrade, size_t count)
{
    size_t steps[STEPS_MAX + 1] = { 0 };
    for (size_t i = 0; i < count; i++) {
        size_t step = (size_t)(upgrade->times[i] / NS_PER_MS / STEP_MS);
        steps[step < STEPS_MAX ? step : STEPS_MAX]++;
    }
    for (size_t i = 0; i <= STEPS_MAX; i++) {
        char key[32], label[64];
        if (steps[i] == 0)
            continue;
        snprintf(key, sizeof(key), "came_from_%zu_ms", i * STEP_MS);
        snprintf(label, sizeof(label), "  from %.1f s on", (double)(i * STEP_MS) / 1000);
        report_count(&upgrade->report, key, label, (int64_t)steps[i]);
    }
}

static void report_kind(struct upgrade *upgrade, enum returning_kind kind, const char *name,
                        const char *words)
{
    char key[40], label[64];
    size_t count = returning_list_times(&upgrade->clients, kind, upgrade->times);
    if (count == 0)
        return;
    snprintf(key, sizeof(key), "%s", name);
    report_count(&upgrade->report, key, words, (int64_t)count);
    snprintf(key, sizeof(key), "%s_p50_ms", name);
    report_ms(upgrade, key, "  back after, p50", upgrade->times[(count - 1) / 2]);
    snprintf(key, sizeof(key), "%s_last_ms", name);
    report_ms(upgrade, key, "  back after, the last", upgrade->times[count - 1]);
    snprintf(key, sizeof(key), "%s_peak", name);
    snprintf(label, sizeof(label), "  most within %d ms", PEAK_MS);
    report_count(&upgrade->report, key, label, (int64_t)find_peak(upgrade->times, count));
}

static void report_clients(struct upgrade *upgrade)
{
    struct report *report = &upgrade->report;
    const struct returning *clients = &upgrade->clients;
    report_count(report, "clients", "clients", (int64_t)clients->count);
    report_kind(upgrade, RETURNING_WS, "ws", "WebSockets back");
    report_kind(upgrade, RETURNING_POLL, "polls", "long polls back");
    report_kind(upgrade, RETURNING_EVENTS, "events", "event streams back");
    report_kind(upgrade, RETURNING_KINDS, "back", "all that are back");
    report_steps(upgrade, returning_list_times(clients, RETURNING_KINDS, upgrade->times));
    report_count(report, "returns_refused", "connections refused on the way back",
                 (int64_t)clients->refused);
    if (clients->refusal.len) {
        buf_add_char(&upgrade->clients.refusal, 0);
        report_text(report, "return_refusal", "  the first with", clients->refusal.ptr);
    }
    report_count(report, "snapshots", "snapshots instead of what was missed",
                 (int64_t)clients->snapshots);
    report_count(report, "missed", "newest states that a client does not know",
                 (int64_t)upgrade->missed);
}

static void report_requests(struct upgrade *upgrade)
{
    struct report *report = &upgrade->report;
    struct writer *writer = &upgrade->writer;
    report_count(report, "requests", "requests from the stop on, done",
                 (int64_t)writer->done);
    report_count(report, "refused", "  refused", (int64_t)writer->refused);
    report_count(report, "told_again", "  told to come again", (int64_t)writer->told_again);
    report_count(report, "cut_off", "  cut off", (int64_t)writer->cut_off);
    if (writer->failure.len) {
        buf_add_char(&writer->failure, 0);
        report_text(report, "failure", "  the first with", writer->failure.ptr);
    }
    report_latency(report, "calm", "request before the stop", &upgrade->calm);
    report_latency(report, "request", "request from the stop on", &writer->latency);
}

static void report_process(struct upgrade *upgrade)
{
    struct report *report = &upgrade->report;
    struct options process = of_process(upgrade);
    report_ms(upgrade, "ended_ms", "SIGTERM to the end of the old process",
              upgrade->ended_ns);
    report_ms(upgrade, "ready_ms", "SIGTERM to the new one ready", upgrade->ready_ns);
    report_ms(upgrade, "start_cpu_ms", "CPU of its start", upgrade->start_cpu_ns);
    report_ms(upgrade, "back_cpu_ms", "CPU from then until all are back",
              upgrade->back_cpu_ns);
    report_number(report, "memory_before_mib", "memory of the old one, all live",
                  (double)upgrade->memory_before / (1 << 20), "MiB");
    report_number(report, "memory_after_mib", "memory of the new one, all back",
                  (double)upgrade->memory_after / (1 << 20), "MiB");
    server_report_turns(&process, &upgrade->turns, report);
}

/* Returns true if the upgrade has met its target. */
static bool judge(const struct upgrade *upgrade)
{
    const struct writer *writer = &upgrade->writer;
    const struct returning *clients = &upgrade->clients;
    size_t count = returning_list_times(clients, RETURNING_KINDS, upgrade->times);
    bool all =
        count == clients->count && upgrade->times[count - 1] <= TARGET_MS * NS_PER_MS;
    return all && !upgrade->missed && !clients->refused && !writer->refused &&
           !writer->told_again && !writer->cut_off;
}

static void check(const struct options *options)
{
    if (!options->gateway[0] || !options->data[0])
        fatal("upgrade starts the gateway by itself: say --gateway PROGRAM and --data DIR");
    if (options->subscribers < 1 || options->subscribers > 19000)
        fatal("--clients is from 1 to 19000");
    if (options->tags < 1 || options->tags > 10000)
        fatal("--tags is from 1 to 10000");
    if (options->rate <= 0 || options->secure)
        fatal("--rate is above 0, and --url one of http");
}

int upgrade_main(const struct options *options)
{
    check(options);
    struct upgrade *upgrade = mem_new(struct upgrade);
    upgrade->options = options;
    report_init(&upgrade->report, options->json, "upgrade");
    poller_init(&upgrade->poller);
    unit_open(&upgrade->unit, &upgrade->poller, options);
    writer_init(&upgrade->writer, &upgrade->poller, options);
    returning_init(&upgrade->clients, &upgrade->poller, options, &upgrade->writer);
    upgrade->times = mem_new_array(int64_t, upgrade->clients.count);

    start_first(upgrade);
    be_calm(upgrade);
    restart(upgrade);
    settle(upgrade);
    report_process(upgrade);
    report_clients(upgrade);
    report_requests(upgrade);
    bool kept = judge(upgrade);

    report_finish(&upgrade->report);
    returning_finish(&upgrade->clients);
    writer_finish(&upgrade->writer);
    fill_finish(&upgrade->fill);
    unit_close(&upgrade->unit);
    poller_finish(&upgrade->poller);
    free(upgrade->times);
    free(upgrade);
    return kept ? 0 : 1;
}
