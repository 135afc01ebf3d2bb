/* following.c - connects to the leader, again and again, and hands its frames to the replica. */
#include "server/peers/following.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/random.h"
#include "core/replication/frame_codec.h"
#include "server/peers/peer_link.h"

enum {
    LOOK_MS = 200, /* between looks at who leads */
    PAUSE_MS = 200,
    PAUSE_MAX_MS = 5 * 1000,
    LASTING_MS = 2 * 1000, /* after a connection of this time the pause is short again */
    LOG_AGAIN_MS = 60 * 1000,
    SILENT_MS = REPLICA_SILENCE_MS / 2, /* without a beat, of a connection that has ended */
    UNNAMED_MS = 10 * 1000, /* a leader that has just joined names its peer_url in time */
    REPORT_MS = 1000,       /* between reports to the leader */
    USES_AT_ONCE = 5,       /* frames with last uses per look */
};

struct following {
    struct loop *loop;
    struct following_options options;
    struct replica replica;
    struct timer timer;
    struct peer_link *link; /* NULL: not connected */
    uint64_t leader;        /* of the link */
    char name[sizeof(((struct store_gateway *)0)->name)];
    char url[sizeof(((struct store_gateway *)0)->peer_url)];
    int64_t unnamed_ms; /* since then the leader has no peer_url; 0: it has one */
    bool is_open;       /* the link is authenticated */
    bool was_current;   /* the replica has followed on this link; logged */
    bool paused, ended;
    int64_t opened_ms, retry_ms, pause_ms;
    uint32_t version;  /* of replication with this leader; 0: its hello has not arrived */
    uint64_t received; /* changes of runs on this link */
    int64_t lag_ms;    /* of the last answered ask */
    int64_t report_ms; /* when the next report is due */
    bool has_used;     /* options.uses was called for this link */
    struct leader_commands commands;
    uint64_t answered; /* replica::answered, when note_lag has looked at it */
    char logged[160];  /* why it could not connect, when that was logged last */
    int64_t logged_ms;
    bool was_late; /* it was logged that answers are late, and when */
    int64_t late_ms;
};

static int64_t now_of(const struct following *following)
{
    return loop_now_ms(following->loop);
}

static bool is_same(const struct following *following, const struct store_gateway *leader)
{
    return leader && leader->id == following->leader;
}

int64_t following_left_ms(struct following *following)
{
    bool leads = is_same(following, following->options.leader(following->options.owner));
    return leads ? replica_left_ms(&following->replica) : 0;
}

/* ---- logging ---- */

/* A reason is logged once, and again after a minute. */
static void log_failure(struct following *following, const char *why)
{
    int64_t now_ms = now_of(following);
    if (!strncmp(following->logged, why, sizeof(following->logged) - 1) &&
        now_ms < following->logged_ms + LOG_AGAIN_MS)
        return;
    snprintf(following->logged, sizeof(following->logged), "%s", why);
    following->logged_ms = now_ms;
    log_warn("cannot follow the leader; retrying", "leader", following->name, "url",
             following->url, "reason", why, NULL);
}

static void log_end(struct following *following, const char *why)
{
    if (following->was_current && (following->ended || repl_end_is_planned(why)))
        log_info("no longer follows", "leader", following->name, "reason", why, NULL);
    else if (following->was_current)
        log_warn("no longer follows", "leader", following->name, "reason", why, NULL);
    else if (!following->ended)
        log_failure(following, why);
}

/* Returns true if the leader is connected, and its last answer is not valid any more. */
static bool is_late(const struct following *following)
{
    const struct replica *replica = &following->replica;
    return replica->state == REPLICA_FOLLOWING && !replica->ahead &&
           replica_left_ms(replica) <= 0;
}

void following_log_late(struct following *following)
{
    int64_t now_ms = now_of(following);
    bool is_logged = following->was_late && now_ms < following->late_ms + LOG_AGAIN_MS;
    if (following->ended || is_logged || !is_late(following))
        return;
    following->was_late = true;
    following->late_ms = now_ms;
    log_warn("answers of the leader are late; polls get 503", "leader", following->name,
             NULL);
}

/* Once an ask is answered, memory has what the leader had applied by then. */
static void note_lag(struct following *following)
{
    const struct replica *replica = &following->replica;
    if (!replica->answered || replica->answered == following->answered)
        return;
    following->answered = replica->answered;
    int64_t asked_ms = replica->asked_at[replica->answered % REPLICA_ASKS];
    following->lag_ms = loop_boot_ms(following->loop) - asked_ms;
    metric_observe_us(H_REPLICATION_LAG, following->lag_ms * 1000);
}

static void note_current(struct following *following)
{
    bool is_current = replica_is_complete(&following->replica);
    metrics[M_FOLLOWS] = is_current && following_left_ms(following) > 0;
    metrics[M_SUMS_EQUAL] = (int64_t)following->replica.equals;
    metrics[M_SUMS_DIFFERENT] = (int64_t)following->replica.differences;
    metrics[M_REPLICATION_WAITING] = (int64_t)following->replica.waiting.bytes;
    metrics[M_REPLICATION_BEHIND] = (int64_t)following->replica.waiting.changes;
    if (!is_current || following->was_current)
        return;
    following->was_current = true;
    following->logged[0] = '\0';
    log_info("follows", "leader", following->name, NULL);
}

/* ---- the link ---- */

static void report_end(const struct following *following)
{
    if (following->options.disconnected && !following->ended)
        following->options.disconnected(following->options.owner);
}

static void end_commands(struct following *following)
{
    following->version = 0;
    leader_commands_end(
        &following->commands,
        "the connection to the leading gateway was lost, and the command may "
        "have taken effect; look, and then try again");
}

/* Ends trust with the connection, not when that has closed. */
static void cut(struct following *following, const char *why)
{
    replica_disconnected(&following->replica);
    peer_link_cut(following->link, why);
    report_end(following);
    end_commands(following);
}

/* Doubles the pause, of which the last half is drawn: followers of a dead leader do not all
 * come at once. */
static void set_retry(struct following *following)
{
    int64_t pause_ms = following->pause_ms;
    bool lasted =
        following->is_open && now_of(following) - following->opened_ms >= LASTING_MS;
    if (!pause_ms || lasted)
        pause_ms = PAUSE_MS;
    following->retry_ms = now_of(following) + pause_ms / 2 +
                          (int64_t)random_below((uint64_t)(pause_ms / 2) + 1);
    following->pause_ms = 2 * pause_ms < PAUSE_MAX_MS ? 2 * pause_ms : PAUSE_MAX_MS;
}

static void on_open(void *owner)
{
    struct following *following = owner;
    following->is_open = true;
    following->opened_ms = now_of(following);
    following->received = 0;
    following->has_used = false;
    following->replica.options.gateway = following->options.me(following->options.owner);
    replica_connected(&following->replica);
}

/* Takes what the replica does not need to know. Returns false if the frame is for it. */
static bool take_frame(struct following *following, const struct repl_frame *frame)
{
    if (frame->kind == REPL_HELLO)
        following->version = frame->hello.newest;
    following->received += frame->kind == REPL_CHANGE;
    if (frame->kind != REPL_ANSWER)
        return false;
    leader_commands_take(&following->commands, &frame->command);
    return true;
}

static void note_unknown(const struct following *following, const struct repl_frame *frame)
{
    if (frame->has_unknown && following->options.unknown)
        following->options.unknown(following->options.owner);
}

static void on_message(void *owner, struct slice message)
{
    struct following *following = owner;
    struct failure why;
    while (following->replica.state != REPLICA_OFF) {
        struct repl_frame frame = { 0 };
        size_t left = message.len;
        if (repl_read(&message, &frame, &why)) {
            cut(following, why.text);
            return;
        }
        if (frame.kind == REPL_NONE)
            break;
        note_unknown(following, &frame);
        if (take_frame(following, &frame))
            repl_frame_finish(&frame);
        else
            replica_receive(&following->replica, &frame, left - message.len);
    }
    replica_message_end(&following->replica);
    note_lag(following);
}

/* The replica or the link ends a connection on which nothing arrives. */
static void report_silence(const struct following *following)
{
    int64_t since_ms = loop_boot_ms(following->loop) - following->replica.heard_at;
    bool was_silent = following->was_current && since_ms >= SILENT_MS;
    if (was_silent && following->options.silent && !following->ended)
        following->options.silent(following->options.owner);
}

static void on_closed(void *owner, const char *why)
{
    struct following *following = owner;
    following->link = NULL;
    replica_disconnected(&following->replica);
    end_commands(following);
    log_end(following, why);
    set_retry(following);
    report_silence(following);
    following->is_open = following->was_current = false;
    report_end(following);
}

static void note_leader(struct following *following, const struct store_gateway *leader)
{
    following->leader = leader->id;
    snprintf(following->name, sizeof(following->name), "%s", leader->name);
    snprintf(following->url, sizeof(following->url), "%s", leader->peer_url);
}

static void open_link(struct following *following, const struct store_gateway *leader)
{
    struct peer_link_options options = { .url = leader->peer_url,
                                         .leader = leader->id,
                                         .me = following->options.me(
                                             following->options.owner),
                                         .vault = following->options.vault,
                                         .trust = following->options.trust,
                                         .on_open = on_open,
                                         .on_message = on_message,
                                         .on_closed = on_closed,
                                         .owner = following };
    struct failure why;
    note_leader(following, leader);
    if (!peer_link_open(following->loop, &options, &following->link, &why))
        return;
    following->link = NULL;
    log_failure(following, why.text);
    set_retry(following);
}

/* ---- the replica ---- */

static void on_send(void *owner, const struct repl_frame *frame)
{
    struct following *following = owner;
    struct buf content = { 0 };
    repl_write(frame, &content);
    peer_link_send(following->link, buf_slice(&content));
    buf_finish(&content);
}

static void on_end(void *owner, const char *why)
{
    struct following *following = owner;
    peer_link_cut(following->link, why);
    report_end(following);
    end_commands(following);
}

/* ---- what the leader does not need to know ---- */

/* Returns true once the leader has accepted our hello. */
static bool is_connected(const struct following *following)
{
    return following->link && following->version && following->replica.state != REPLICA_OFF;
}

static void report(struct following *following)
{
    const struct replica *replica = &following->replica;
    struct repl_frame frame = { .kind = REPL_REPORT,
                                .report = { .program = RUNCAST_VERSION,
                                            .is_current = metrics[M_FOLLOWS],
                                            .taken = following->received -
                                                     replica->waiting.changes,
                                            .lag_ms = following->lag_ms } };
    if (!is_connected(following) || now_of(following) < following->report_ms)
        return;
    following->report_ms = now_of(following) + REPORT_MS;
    on_send(following, &frame);
}

/* Returns true if there may be more. */
static bool report_some_uses(struct following *following)
{
    const struct following_options *options = &following->options;
    struct repl_use list[REPL_USES_MAX];
    struct repl_frame frame = { .kind = REPL_USES, .uses.list = list };
    if (!is_connected(following) || !options->uses)
        return false;
    frame.uses.count =
        options->uses(options->owner, !following->has_used, list, REPL_USES_MAX);
    following->has_used = true;
    if (frame.uses.count)
        on_send(following, &frame);
    return frame.uses.count == REPL_USES_MAX;
}

static void report_uses(struct following *following)
{
    for (int i = 0; i < USES_AT_ONCE && report_some_uses(following); i++)
        ;
}

static enum err explain_unconnected(const struct following *following, struct failure *why)
{
    if (following->logged[0])
        return explain(why, ERR_DRAINING,
                       "cannot reach the leading gateway \"%s\" at %s: %s; run this on its "
                       "machine, or try again in a few seconds if it is down",
                       following->name, following->url, following->logged);
    return explain(why, ERR_DRAINING,
                   "this gateway is not connected to a leading one yet; try again in a few "
                   "seconds");
}

enum err following_command(struct following *following, struct leader_command *command,
                           struct slice line, struct failure *why)
{
    struct repl_frame frame;
    if (!is_connected(following))
        return explain_unconnected(following, why);
    if (following->version < REPL_VERSION_COMMANDS)
        return explain(why, ERR_DRAINING,
                       "the leading gateway \"%s\" is of an older version; run this on its "
                       "machine",
                       following->name);
    if (!leader_commands_may_add(&following->commands, now_of(following)))
        return explain(why, ERR_BUSY, "too many commands are in progress; try again");
    leader_commands_add(&following->commands, command, line, &frame);
    on_send(following, &frame);
    repl_frame_finish(&frame);
    return OK;
}

/* ---- looking for a leader ---- */

static bool may_connect(const struct following *following,
                        const struct store_gateway *leader)
{
    return leader && leader->peer_url[0] && !following->paused &&
           replica_is_idle(&following->replica) &&
           following->options.me(following->options.owner) &&
           (now_of(following) >= following->retry_ms || !is_same(following, leader));
}

static void note_unnamed(struct following *following, const struct store_gateway *leader)
{
    int64_t now_ms = now_of(following);
    if (!leader || leader->peer_url[0])
        following->unnamed_ms = 0;
    else if (!following->unnamed_ms)
        following->unnamed_ms = now_ms;
    if (!following->unnamed_ms || now_ms < following->unnamed_ms + UNNAMED_MS)
        return;
    note_leader(following, leader);
    log_failure(following, "the leader has no peer-listen; set it there, too");
}

static void look(struct following *following)
{
    const struct store_gateway *leader =
        following->options.leader(following->options.owner);
    if (following->link && !is_same(following, leader))
        cut(following, "the database names another leader, or none");
    else if (!following->link && may_connect(following, leader))
        open_link(following, leader);
    note_unnamed(following, leader);
    note_current(following);
    report(following);
    report_uses(following);
}

static void on_look(struct timer *timer)
{
    struct following *following = container_of(timer, struct following, timer);
    look(following);
    loop_set_timer(following->loop, timer, timer->kind, LOOK_MS);
}

/* ---- making ---- */

struct following *following_create(struct loop *loop,
                                   const struct following_options *options)
{
    struct following *following = mem_new(struct following);
    struct replica_options replica = options->replica;
    replica.send = on_send;
    replica.end = on_end;
    replica.link = following;
    following->loop = loop;
    following->options = *options;
    leader_commands_init(&following->commands, options->vault);
    replica_init(&following->replica, loop, options->store, &replica);
    loop_set_timer(loop, &following->timer, timers_kind(loop_timers(loop), on_look),
                   LOOK_MS);
    return following;
}

void following_pause(struct following *following, const char *why)
{
    following->paused = true;
    if (following->link)
        cut(following, why);
}

void following_resume(struct following *following)
{
    following->paused = false;
    following->retry_ms = 0;
}

void following_end(struct following *following, const char *why)
{
    following->ended = true;
    timers_clear(loop_timers(following->loop), &following->timer);
    if (following->link)
        peer_link_cut(following->link, why);
    replica_disconnected(&following->replica);
    end_commands(following);
    metrics[M_FOLLOWS] = 0;
}

struct replica *following_replica(struct following *following)
{
    return &following->replica;
}

bool following_may_end(const struct following *following)
{
    return following->ended && !following->link && replica_is_idle(&following->replica);
}

void following_destroy(struct following *following)
{
    if (!following)
        return;
    replica_finish(&following->replica);
    free(following);
}
