/* fanout.c - measures M changes a second to N subscribers: latency, cost and losses.
 *
 *   make runs ─► changes without subscribers: CPU of a change
 *   connect N ─► one idle second: memory of a connection, CPU of an idle server
 *   changes at the rate, open loop ─► every frame: age of its change, version, bytes
 *   wait until all subscribers have the final versions ─► report
 *
 * With --interleave, changes without subscribers are made between the others, not before
 * them.
 *
 * With --floor the server is the one of floor.c, which makes its changes itself. With
 * --peer it is one without runs, and the first of the subscribers publishes the changes.
 * The clients are the same. */
#include "commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "changes.h"
#include "loopback.h"
#include "runcast/run.h"
#include "server.h"
#include "subscribers.h"
#include "ws_client.h"

enum {
    BASELINE_BURSTS = 200,
    LOOPBACK_ROUNDS = 500,
    LOOPBACK_MAX = 1000,
    FRAME_MAX = 65536,
    PAD_MAX = RUN_METADATA_MAX - 64, /* the rest holds the change's number */
};

static const double BASELINE_RATE = 100; /* bursts per second at least */
static const double WARM_SECONDS = 0.5;
static const int64_t TICK_NS = 20000000;
/* Sending to a sleeping process wakes it, which on loopback costs the sender more than some
 * sends. A reader that is faster than the server would sleep between two frames; so it
 * stays awake. */
static const int64_t AWAKE_NS = 200000;
static const int64_t IDLE_NS = 2000000000;
static const int64_t SETTLE_NS = 200000000;
static const int64_t QUIET_NS =
    3000000000; /* if nothing came for this long, nothing will */
static const int64_t PEER_QUIET_NS =
    15000000000; /* some peers are silent while they queue */

struct fanout {
    const struct options *options;
    struct report report;
    struct poller poller;
    struct fill fill, unheard_fill;
    struct changes changes;
    struct subscribers subs;
    struct turns turns;
    struct deliveries deliveries;             /* before the measurement */
    bool polls;                               /* subscribers are long polls */
    bool measures;                            /* subscribers receive the changes */
    int64_t *n_of;                            /* by run: the last change */
    struct histogram round_trip, to_the_last; /* of a bare echo */
    double change_cpu_ns;                     /* of one change without subscribers */
    int64_t connect_cpu_ns;                   /* until all have subscribed */
    int64_t idle_cpu_ns;                      /* of IDLE_NS with all subscribers */
    int64_t memory_before, memory_after;
    int64_t cpu_ns;
    double seconds;
};

/* Returns true for a gateway: only it has runs, requests and loop turns. */
static bool is_gateway(const struct options *options)
{
    return !options->floor && !options_has_peer(options);
}

static void wait_until(struct fanout *fanout, int64_t until_ns, const char *what)
{
    while (now_ns() < until_ns) {
        int64_t tick = now_ns() + TICK_NS;
        report_progress(&fanout->report, "%s", what);
        poller_wait(&fanout->poller, tick < until_ns ? tick : until_ns);
    }
}

/* Returns the mean number of changes that reached each subscriber. */
static uint64_t heard(const struct fanout *fanout)
{
    const struct subscribers *subs = &fanout->subs;
    return (subs->frames + subs->conflated) / subs->count;
}

/* With --ahead: allows more changes as earlier ones arrive. */
static void allow_more(struct fanout *fanout)
{
    uint64_t ahead = (uint64_t)fanout->options->ahead;
    if (ahead && fanout->measures)
        fanout->changes.allowed = heard(fanout) + ahead;
}

static bool is_quiet(const struct fanout *fanout)
{
    int64_t limit_ns = options_has_peer(fanout->options) ? PEER_QUIET_NS : QUIET_NS;
    return now_ns() - fanout->subs.last_ns > limit_ns;
}

/* Returns true if, with --ahead, all further changes wait for a message that a peer has
 * lost. */
static bool is_stuck(const struct fanout *fanout)
{
    const struct changes *changes = &fanout->changes;
    return changes->publisher && changes->sent == changes->allowed && is_quiet(fanout);
}

/* Sends the changes of changes_begin and waits until all are answered. */
static void run_changes(struct fanout *fanout, const char *what)
{
    struct changes *changes = &fanout->changes;
    struct subscribers *subs = &fanout->subs;
    while (!changes_done(changes) && !is_stuck(fanout)) {
        allow_more(fanout);
        int64_t next = changes_step(changes);
        int64_t tick = now_ns() + TICK_NS;
        poller_wait(&fanout->poller, next < tick ? next : tick);
        report_progress(&fanout->report,
                        "%s: %" PRIu64 " of %" PRIu64 " changes, %" PRIu64
                        " frames, p99 %" PRId64 " us",
                        what, changes->acked, changes->wanted, subs->frames,
                        histogram_quantile(&subs->latency, 0.99) / 1000);
    }
    if (changes->failed)
        fatal("%" PRIu64 " changes failed, the first with %.*s", changes->failed,
              SLICE_ARG(buf_slice(&changes->failure)));
}

static void measure_change_cost(struct fanout *fanout)
{
    const struct options *options = fanout->options;
    double rate = options->rate / (double)options->burst;
    if (options->pid == 0 || options->rate <= 0 || options->interleave)
        return;
    uint64_t wanted = (uint64_t)(BASELINE_BURSTS * options->burst);
    changes_begin(&fanout->changes, rate > BASELINE_RATE ? rate : BASELINE_RATE, wanted);
    int64_t before = server_cpu_ns(options);
    run_changes(fanout, "without subscribers");
    fanout->change_cpu_ns = (double)(server_cpu_ns(options) - before) / (double)wanted;
}

static void measure_machine(struct fanout *fanout)
{
    const struct options *options = fanout->options;
    report_progress(&fanout->report, "a bare echo");
    loopback_measure(options, 1, LOOPBACK_ROUNDS, &fanout->round_trip);
    if (fanout->subs.count <= LOOPBACK_MAX)
        loopback_measure(options, fanout->subs.count, LOOPBACK_ROUNDS,
                         &fanout->to_the_last);
}

static void connect_all(struct fanout *fanout)
{
    const struct options *options = fanout->options;
    fanout->memory_before = server_memory_bytes(options);
    int64_t connecting = server_cpu_ns(options);
    subscribers_connect(&fanout->subs);
    fanout->connect_cpu_ns = server_cpu_ns(options) - connecting;
    wait_until(fanout, now_ns() + IDLE_NS / 2, "settling");
    int64_t before = server_cpu_ns(options);
    wait_until(fanout, now_ns() + IDLE_NS, "idle");
    fanout->idle_cpu_ns = server_cpu_ns(options) - before;
    fanout->memory_after = server_memory_bytes(options);
}

/* Returns true if the floor sends each change to one connection instead of all. */
static bool floor_sends_to_one(const struct options *options)
{
    return options->floor && subscribers_topic(options->topic) == TOPIC_RUN;
}

static uint64_t count_lost(const struct fanout *fanout)
{
    const struct changes *changes = &fanout->changes;
    if (floor_sends_to_one(fanout->options))
        return changes->acked - fanout->subs.frames;
    if (changes->by_batch)
        return subscribers_missing(&fanout->subs, changes->acked);
    if (fanout->n_of)
        return subscribers_outdated(&fanout->subs, fanout->n_of);
    return subscribers_lost(&fanout->subs, changes->acked_of);
}

/* Counts conflated states. Long polls have no versions, so those are the rows that did not
 * come. */
static uint64_t count_conflated(const struct fanout *fanout)
{
    const struct changes *changes = &fanout->changes;
    if (!fanout->polls || changes->by_batch)
        return fanout->subs.conflated;
    uint64_t wanted = subscribers_due(&fanout->subs, changes->acked_of);
    return wanted > fanout->subs.rows ? wanted - fanout->subs.rows : 0;
}

/* Waits until all have the final state, or nothing came for a while after the last
 * response. */
static void settle(struct fanout *fanout)
{
    if (fanout->polls) {
        fanout->n_of = mem_new_array(int64_t, fanout->fill.count);
        changes_read_newest(&fanout->changes, fanout->options, fanout->n_of);
    }
    fanout->subs.last_ns = now_ns();
    /* Read what has arrived first: for many subscribers and runs, counting takes a
     * while. */
    poller_wait(&fanout->poller, now_ns());
    while (count_lost(fanout) > 0 && !is_quiet(fanout)) {
        report_progress(&fanout->report, "waiting for the last frames");
        poller_wait(&fanout->poller, now_ns() + TICK_NS);
    }
}

static uint64_t changes_in(const struct options *options, double seconds)
{
    double bursts = options->rate / (double)options->burst * seconds;
    uint64_t whole = bursts < 1 ? 1 : (uint64_t)bursts;
    return whole * (uint64_t)options->burst;
}

/* Lets the first subscriber of a peer publish from now on, and warms up servers that
 * compile their code while they run. */
static void begin_to_publish(struct fanout *fanout)
{
    const struct options *options = fanout->options;
    fanout->changes.publisher = &fanout->subs.all[0].client;
    fanout->measures = true;
    changes_begin(&fanout->changes, options->rate / (double)options->burst,
                  changes_in(options, WARM_SECONDS));
    run_changes(fanout, "warming up");
    settle(fanout);
}

/* Measures a gateway or a peer. */
static void measure_server(struct fanout *fanout)
{
    const struct options *options = fanout->options;
    subscribers_measure(&fanout->subs);
    fanout->measures = true;
    struct changes *changes = &fanout->changes;
    uint64_t wanted = changes_in(options, options->seconds);
    if (is_gateway(options))
        fanout->deliveries = server_read_deliveries(options);
    int64_t before = server_cpu_ns(options), started = now_ns();
    changes_begin(changes, options->rate / (double)options->burst, wanted);
    if (!options->ahead) /* with --ahead, changes have no intended instant */
        subscribers_expect(&fanout->subs, changes->start_ns, changes->interval_ns,
                           wanted / changes->burst);
    run_changes(fanout, "measuring");
    settle(fanout);
    if (fanout->polls) /* the polls after the last responses belong to it */
        wait_until(fanout, now_ns() + SETTLE_NS, "settling");
    fanout->cpu_ns = server_cpu_ns(options) - before;
    fanout->seconds = (double)(now_ns() - started) / 1e9;
}

/* The floor makes the changes; its only run counts as changed by us. */
static void measure_floor(struct fanout *fanout)
{
    const struct options *options = fanout->options;
    struct subscribers *subs = &fanout->subs;
    uint64_t wanted = changes_in(options, options->seconds);
    double interval_ns = 1e9 * (double)options->burst / options->rate;
    char start[200];
    snprintf(start, sizeof(start),
             "{\"op\":\"start\",\"interval_ns\":%.0f,\"burst\":%" PRId64
             ",\"count\":%" PRIu64 ",\"bytes\":%" PRId64 ",\"ahead\":%" PRId64
             ",\"one\":%d}",
             interval_ns, options->burst, wanted, options->frame_bytes, options->ahead,
             floor_sends_to_one(options));
    subscribers_measure(subs);
    int64_t before = server_cpu_ns(options), started = now_ns();
    int64_t end_ns = started + (int64_t)(interval_ns * (double)wanted) + 2 * QUIET_NS;
    ws_client_send(&subs->all[0].client, slice_of(start));
    uint64_t told = 0; /* arrivals that the floor was notified of */
    while (!subs->done && (now_ns() < end_ns || (options->ahead && !is_quiet(fanout)))) {
        poller_wait(&fanout->poller, now_ns() + TICK_NS);
        for (; options->ahead && told < heard(fanout); told++)
            ws_client_send(&subs->all[0].client, SLICE("{\"op\":\"next\"}"));
        report_progress(&fanout->report, "measuring: %" PRIu64 " frames", subs->frames);
    }
    fanout->changes.sent = fanout->changes.acked = wanted;
    fanout->changes.acked_of[0] = (uint32_t)wanted;
    settle(fanout);
    fanout->cpu_ns = server_cpu_ns(options) - before;
    fanout->seconds = (double)(now_ns() - started) / 1e9;
}

static double share(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

static double cost_of_change(const struct burst_cost *cost, size_t burst)
{
    return share((double)cost->cpu_ns, (double)(cost->bursts * burst));
}

/* With --interleave. The first burst has subscribers, and so does every second burst after
 * it. If most bursts began before the last was answered, their cost is unknown. */
static void report_burst_cost(struct fanout *fanout)
{
    struct report *report = &fanout->report;
    const struct changes *changes = &fanout->changes;
    double heard_ns = cost_of_change(&changes->heard, changes->burst);
    double unheard_ns = cost_of_change(&changes->unheard, changes->burst);
    uint64_t heard_bursts = (changes->acked / changes->burst + 1) / 2;
    uint64_t apart = changes->heard.bursts + changes->unheard.bursts;
    double frames =
        share((double)fanout->subs.frames, (double)(heard_bursts * changes->burst));
    report_count(report, "bursts_apart", "bursts begun when the last was answered",
                 (int64_t)apart);
    if (apart < heard_bursts || !changes->heard.bursts || !changes->unheard.bursts) {
        fputs(
            "runcast-bench: too few bursts were apart, or there were too few: what a frame "
            "costs is not known; lower --rate, or measure longer\n",
            stderr);
        return;
    }
    report_number(report, "fanout_us_per_frame", "server CPU a frame, without its change",
                  share(heard_ns - unheard_ns, frames) / 1000, "us");
    report_number(report, "change_us", "server CPU a change that nobody hears of",
                  unheard_ns / 1000, "us");
}

/* Reports the cost of the fan-out alone: minus that of the same changes without
 * subscribers. */
static void report_change_cost(struct fanout *fanout, double total_ns)
{
    struct report *report = &fanout->report;
    double changes_ns = fanout->change_cpu_ns * (double)fanout->changes.acked;
    double frames = (double)fanout->subs.frames;
    report_number(report, "fanout_us_per_frame", "  without what its changes cost alone",
                  share(total_ns - changes_ns, frames) / 1000, "us");
    report_number(report, "change_us", "server CPU a change, no subscribers",
                  fanout->change_cpu_ns / 1000, "us");
}

static void report_cost(struct fanout *fanout)
{
    const struct options *options = fanout->options;
    struct report *report = &fanout->report;
    struct subscribers *subs = &fanout->subs;
    double frames = (double)subs->frames;
    if (options->pid == 0)
        return;
    double total = (double)fanout->cpu_ns;
    if (options->rate > 0) {
        if (!options->interleave)
            report_number(report, "cpu_us_per_frame",
                          fanout->polls ? "server CPU a change delivered, and the next poll"
                                        : "server CPU a frame, all of it",
                          share(total, frames) / 1000, "us");
        if (options->interleave)
            report_burst_cost(fanout);
        else if (is_gateway(options))
            report_change_cost(fanout, total);
        report_number(report, "busy_percent", "server busy", total / fanout->seconds / 1e7,
                      "%");
    }
    if (options->floor && subs->done)
        report_number(report, "floor_us_per_frame", "the floor's own figure a frame",
                      share((double)subs->floor_cpu_ns, (double)subs->floor_frames) / 1000,
                      "us");
    report_number(report, "connect_us", "server CPU a connection, until it has subscribed",
                  share((double)fanout->connect_cpu_ns, (double)subs->count) / 1000, "us");
    report_number(report, "idle_percent", "server busy while all are idle",
                  (double)fanout->idle_cpu_ns / (double)IDLE_NS * 100, "%");
    report_number(
        report, "bytes_per_connection", "server memory a connection",
        share((double)(fanout->memory_after - fanout->memory_before), (double)subs->count),
        "bytes");
}

/* Reports the time from a change to the last subscriber, and the same for the machine
 * alone. */
static void report_last(struct fanout *fanout)
{
    struct report *report = &fanout->report;
    const struct subscribers *subs = &fanout->subs;
    if (subs->bursts == 0)
        return;
    report_count(report, "heard_by_all", "instants whose changes all heard of",
                 (int64_t)subs->last.count);
    report_latency(report, "last", "change to the last subscriber", &subs->last);
    report_latency(report, "echo", "bare loopback round trip", &fanout->round_trip);
    if (fanout->to_the_last.count)
        report_latency(report, "echo_last", "  to the last of as many",
                       &fanout->to_the_last);
}

static void report_all(struct fanout *fanout)
{
    const struct options *options = fanout->options;
    struct report *report = &fanout->report;
    struct subscribers *subs = &fanout->subs;
    report_count(report, "subscribers", "subscribers", (int64_t)subs->count);
    if (options_has_peer(options))
        report_text(report, "peer", "  of", options->peer);
    else
        report_text(report, "topic", "  of one", options->topic);
    report_text(report, "transport", "  transport", options->transport);
    report_text(report, "encoding", "  encoding", options->encoding);
    if (options->rate > 0) {
        report_number(report, "rate", "changes a second, wanted", options->rate, "/s");
        report_count(report, "changes", "changes", (int64_t)fanout->changes.acked);
        report_count(report, "frames",
                     fanout->polls ? "answers with rows" : "frames received",
                     (int64_t)subs->frames);
        if (fanout->polls)
            report_count(report, "idle", "  polls answered without a row",
                         (int64_t)subs->idle);
        report_count(report, "rows", "  rows in them", (int64_t)subs->rows);
        report_number(report, "frames_per_second", "  a second",
                      (double)subs->frames / fanout->seconds, "/s");
        report_number(report, "frame_bytes", "bytes of a frame's payload",
                      share((double)subs->payload_bytes, (double)subs->frames), "");
        report_number(report, "frames_per_read", "frames that arrived together",
                      share((double)subs->frames, (double)subs->group.reads), "");
        report_count(report, "lost", "final states not seen", (int64_t)count_lost(fanout));
        report_count(report, "conflated", "versions conflated",
                     (int64_t)count_conflated(fanout));
        report_count(report, "closed", "connections closed", (int64_t)subs->closed);
        report_latency(report, "latency", "latency", &subs->latency);
        report_last(fanout);
        if (is_gateway(options))
            report_latency(report, "ack", "change answered after",
                           &fanout->changes.latency);
    }
    report_cost(fanout);
    server_report_turns(options, &fanout->turns, report);
    if (is_gateway(options) && options->rate > 0 && options->burst == 1 &&
        !options->interleave)
        server_report_deliveries(options, fanout->deliveries, report);
}

static void check_transport(struct fanout *fanout)
{
    const struct options *options = fanout->options;
    bool ws = client_transport(options->transport) == &ws_transport;
    bool json = strcmp(options->encoding, "json") == 0;
    if (!json && strcmp(options->encoding, "msgpack") != 0)
        fatal("--encoding: '%s' is none of json, msgpack", options->encoding);
    if (!json && !ws)
        fatal("--encoding msgpack needs --transport ws");
    if (!is_gateway(options) && (!ws || !json))
        fatal("--floor and --peer need --transport ws and --encoding json");
    bool topic_fits = strcmp(options->topic, "tag") == 0 || floor_sends_to_one(options);
    if (!is_gateway(options) && (!topic_fits || strcmp(options->by, "metadata") != 0))
        fatal("--floor and --peer know neither --topic nor --by, but --floor --topic run");
    if (options->pad && (!is_gateway(options) || strcmp(options->by, "metadata") != 0))
        fatal("--pad makes metadata longer: it needs a gateway and --by metadata; see "
              "--frame-bytes for the others");
    if (options->interleave &&
        (!is_gateway(options) || strcmp(options->by, "metadata") != 0 || options->ahead ||
         subscribers_topic(options->topic) == TOPIC_ALL ||
         strcmp(options->transport, "longpoll") == 0))
        fatal("--interleave also changes runs that nobody hears of: it needs a gateway, "
              "--by metadata, a --topic that is not all, a --transport that is not "
              "longpoll, and no --ahead");
    if (options->interleave && (options->pid == 0 || options->rate <= 0))
        fatal("--interleave measures what a change costs the server: it needs --pid and a "
              "--rate above 0");
    if (options->frame_bytes && is_gateway(options))
        fatal("--frame-bytes is of messages that are made up: it needs --floor or --peer");
    if (options->floor && options_has_peer(options))
        fatal("the server is --floor or a --peer, not both");
    fanout->polls = strcmp(options->transport, "longpoll") == 0;
    if (fanout->polls && options->runs && options->runs < options->burst)
        fatal("--transport longpoll needs as many --runs as --burst: polls tell no "
              "versions, and changes of one instant could not be told apart");
}

/* Returns true if some subscribers do not receive some changes. */
static bool is_divided(const struct options *options, int64_t runs)
{
    switch (subscribers_topic(options->topic)) {
    case TOPIC_RUN: return options->floor || runs > 1;
    case TOPIC_BATCH: return runs > FILL_BATCH;
    default: return false;
    }
}

static void prepare(struct fanout *fanout)
{
    const struct options *options = fanout->options;
    int64_t runs = options->runs ? options->runs : options->burst;
    bool by_batch = strcmp(options->by, "batch") == 0;
    if (options->burst < 1 || (by_batch && options->burst > FILL_BATCH))
        fatal("--burst is at least 1, and at most %d with --by batch", FILL_BATCH);
    if (!by_batch && strcmp(options->by, "metadata") != 0)
        fatal("--by: '%s' is none of metadata, batch", options->by);
    enum topic topic = subscribers_topic(options->topic);
    if (by_batch && (topic == TOPIC_RUN || topic == TOPIC_BATCH))
        fatal("--topic %s needs runs that change: --by metadata", options->topic);
    check_transport(fanout);
    if (options->ahead && is_divided(options, runs))
        fatal(
            "--ahead counts changes that all hear of: with --topic run that is one run of "
            "a gateway, with --topic batch at most %d",
            FILL_BATCH);
    if (runs < 1)
        fatal("--runs is at least 1");
    if (options->ahead < 0 || options->pad < 0)
        fatal("--ahead and --pad are at least 0");
    if (options->frame_bytes < 0 || options->frame_bytes > FRAME_MAX)
        fatal("--frame-bytes is from 0 to %d", FRAME_MAX);
    if (options->floor && options->runs)
        fatal(
            "--runs are the gateway's: the floor has one run, or with --topic run one for "
            "each subscriber");
    if (options->ahead && options->rate <= 0)
        fatal("--ahead bounds changes on their way: it needs a --rate above 0");
    if (options->pad > PAD_MAX)
        fatal(
            "--pad is at most %d: with the rest of it, that is all that the metadata of a "
            "run may be long",
            PAD_MAX);
    subscribers_check(options, is_gateway(options) ? runs : 1);
    fill_init(&fanout->fill, options, &fanout->report);
    if (!is_gateway(options)) {
        fanout->fill.ids = mem_new(struct fill_id);
        snprintf(fanout->fill.ids[0].text, FILL_ID_SIZE, "run_floor");
        fanout->fill.count = 1;
    } else if (!by_batch) {
        fill_to(&fanout->fill, (size_t)runs);
    }
    fill_init(&fanout->unheard_fill, options, &fanout->report);
    if (options->interleave)
        fill_to(&fanout->unheard_fill, (size_t)runs);
}

int fanout_main(const struct options *options)
{
    struct fanout *fanout = mem_new(struct fanout);
    fanout->options = options;
    report_init(&fanout->report, options->json, "fanout");
    poller_init(&fanout->poller);
    fanout->poller.awake_ns = AWAKE_NS;
    prepare(fanout);
    changes_init(&fanout->changes, &fanout->poller, options, &fanout->fill);
    if (options->interleave)
        fanout->changes.unheard_fill = &fanout->unheard_fill;
    subscribers_init(&fanout->subs, &fanout->poller, options, &fanout->fill,
                     &fanout->report);

    if (is_gateway(options)) {
        server_read_turns(options, &fanout->turns);
        measure_change_cost(fanout);
        measure_machine(fanout);
    }
    connect_all(fanout);
    if (options->rate > 0 && options_has_peer(options))
        begin_to_publish(fanout);
    if (options->rate > 0 && options->floor)
        measure_floor(fanout);
    else if (options->rate > 0)
        measure_server(fanout);
    report_all(fanout);

    uint64_t lost = options->rate > 0 ? count_lost(fanout) : 0;
    report_finish(&fanout->report);
    subscribers_finish(&fanout->subs);
    changes_finish(&fanout->changes);
    fill_finish(&fanout->fill);
    fill_finish(&fanout->unheard_fill);
    poller_finish(&fanout->poller);
    free(fanout->n_of);
    free(fanout);
    return lost ? 1 : 0;
}
