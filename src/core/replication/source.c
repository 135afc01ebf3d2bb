/* source.c - frames from the leader to its followers. */
#include "core/replication/source.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"

enum {
    SUMS_MS = 10 * 1000,
    SUMMED_AT_ONCE = 64,
    SECOND_MS = 1000,
    RUN_BYTES = 256, /* of a frame with a run, without its texts */
    OTHERS = 2,      /* shares of the environments that do not flood, together */
};

static void on_time(struct timer *timer);
static void sum_some(struct deferred *summing);

void source_init(struct source *source, struct loop *loop,
                 const struct source_options *options)
{
    *source = (struct source){ .loop = loop, .options = *options };
    source->summing.fn = sum_some;
    list_init(&source->summing.link);
    list_init(&source->followers);
}

static void stop_sums(struct source *source)
{
    timers_clear(loop_timers(source->loop), &source->timer);
    loop_cancel_deferred(&source->summing);
}

void source_finish(struct source *source)
{
    assert(list_empty(&source->followers));
    stop_sums(source);
    uint32_t at = 0;
    for (struct source_env *env; (env = slots_next(&source->envs, &at));)
        free(env);
    slots_finish(&source->envs);
}

static void send(struct source *source, struct source_follower *to,
                 const struct repl_frame *frame)
{
    source->options.send(source->options.owner, to, frame);
}

static void end(struct source *source, struct source_follower *follower, const char *why)
{
    source_leave(source, follower);
    source->options.end(source->options.owner, follower, why);
}

/* ---- sums ---- */

/* Forgets which environments were compared: a new follower has compared none. */
static void sum_all(struct source *source)
{
    uint32_t at = 0;
    for (struct source_env *env; (env = slots_next(&source->envs, &at));)
        env->summed = 0;
}

static struct source_env *env_of(struct source *source, uint32_t number)
{
    void **place = slots_at(&source->envs, number);
    struct source_env *env = *place;
    if (env)
        return env;
    env = *place = mem_new(struct source_env);
    env->second = -1;
    return env;
}

static void send_sum(struct source *source, const struct environment *env)
{
    struct source_env *known = env_of(source, env->number);
    struct repl_frame frame = { .kind = REPL_SUM,
                                .sum = { .env = env->number,
                                         .seq = env->applied,
                                         .count = env->unfinished,
                                         .sum = env->sum } };
    if (known->summed == env->applied + 1)
        return;
    known->summed = env->applied + 1;
    send(source, NULL, &frame);
}

static void arm(struct source *source)
{
    struct timers *timers = loop_timers(source->loop);
    loop_set_timer(source->loop, &source->timer, timers_kind(timers, on_time), SUMS_MS);
}

static void sum_some(struct deferred *summing)
{
    struct source *source = container_of(summing, struct source, summing);
    struct timeslice timeslice = loop_timeslice(source->loop);
    while (timeslice_left_every(&timeslice, SUMMED_AT_ONCE)) {
        struct environment *env =
            source->options.next(source->options.owner, &source->sum_at);
        if (!env) {
            arm(source);
            return;
        }
        send_sum(source, env);
    }
    loop_defer(source->loop, summing);
}

static void on_time(struct timer *timer)
{
    struct source *source = container_of(timer, struct source, timer);
    source->sum_at = 0;
    loop_defer(source->loop, &source->summing);
}

/* ---- followers ---- */

static void note_version(struct source *source)
{
    source->version = REPL_VERSION;
    list_each (link, &source->followers) {
        uint32_t version = container_of(link, struct source_follower, link)->version;
        if (source->version > version)
            source->version = version;
    }
}

static void join(struct source *source, struct source_follower *follower)
{
    if (list_empty(&source->followers))
        arm(source);
    sum_all(source);
    follower->is_on = true;
    follower->joined_ms = loop_wall_ms(source->loop);
    follower->joined_at = source->changes;
    list_append(&source->followers, &follower->link);
    note_version(source);
}

void source_leave(struct source *source, struct source_follower *follower)
{
    if (!follower->is_on)
        return;
    follower->is_on = false;
    list_remove(&follower->link);
    note_version(source);
    if (source->options.left)
        source->options.left(source->options.owner, follower);
    if (list_empty(&source->followers))
        stop_sums(source);
}

void source_end_all(struct source *source, const char *why)
{
    while (!list_empty(&source->followers))
        end(source, container_of(source->followers.next, struct source_follower, link),
            why);
}

static void send_hello(struct source *source, struct source_follower *follower)
{
    struct repl_frame frame = { .kind = REPL_HELLO,
                                .hello = { .least = follower->version,
                                           .newest = follower->version,
                                           .gateway = source->options.gateway,
                                           .head = source->options.head } };
    send(source, follower, &frame);
}

/* The last frame has less than REPL_POSITIONS_MAX positions, maybe none. */
static void send_positions(struct source *source, struct source_follower *follower)
{
    struct repl_position list[REPL_POSITIONS_MAX];
    struct repl_frame frame = { .kind = REPL_POSITIONS,
                                .positions = { .list = list, .count = 1 } };
    uint32_t at = 0;
    list[0] = (struct repl_position){ ENV_INSTALLATION, source->options.accounts_seq };
    for (struct environment *env;
         (env = source->options.next(source->options.owner, &at));) {
        list[frame.positions.count++] = (struct repl_position){ env->number, env->applied };
        if (frame.positions.count < REPL_POSITIONS_MAX)
            continue;
        send(source, follower, &frame);
        frame.positions.count = 0;
        if (!follower->is_on)
            return; /* its connection has ended */
    }
    send(source, follower, &frame);
}

static const char *refusal(const struct source *source,
                           const struct source_follower *follower,
                           const struct repl_hello *hello)
{
    if (follower->is_on)
        return "a second hello";
    if (!repl_version_common(hello->least, hello->newest))
        return "no version of replication in common";
    if (!source->options.left_ms(source->options.owner))
        return "this leader is in doubt";
    return NULL;
}

static void answer_hello(struct source *source, struct source_follower *follower,
                         const struct repl_hello *hello)
{
    const char *why = refusal(source, follower, hello);
    if (why) {
        end(source, follower, why);
        return;
    }
    follower->gateway = hello->gateway;
    follower->version = repl_version_common(hello->least, hello->newest);
    join(source, follower);
    send_hello(source, follower);
    if (follower->is_on)
        send_positions(source, follower);
}

static void answer_ask(struct source *source, struct source_follower *follower,
                       uint64_t number)
{
    int64_t left = source->options.left_ms(source->options.owner);
    struct repl_frame frame = {
        .kind = REPL_BEAT,
        .beat = { .head = source->options.head, .number = number, .left_ms = left }
    };
    if (left > 0)
        send(source, follower, &frame);
}

static void note_report(struct source *source, struct source_follower *follower,
                        const struct repl_report *report)
{
    uint64_t sent = source->changes - follower->joined_at;
    follower->report = *report;
    follower->behind = sent > report->taken ? sent - report->taken : 0;
    follower->reported_ms = loop_now_ms(source->loop);
}

/* Takes a frame that a follower sends after its hello. */
static bool take(struct source *source, struct source_follower *follower,
                 const struct repl_frame *frame)
{
    switch (frame->kind) {
    case REPL_ASK: answer_ask(source, follower, frame->ask.number); return true;
    case REPL_REPORT: note_report(source, follower, &frame->report); return true;
    case REPL_USES:
    case REPL_COMMAND:
        if (source->options.take)
            source->options.take(source->options.owner, follower, frame);
        return true;
    default: return false;
    }
}

void source_receive(struct source *source, struct source_follower *follower,
                    const struct repl_frame *frame)
{
    if (frame->kind == REPL_HELLO)
        answer_hello(source, follower, &frame->hello);
    else if (!follower->is_on || !take(source, follower, frame))
        end(source, follower, "an unexpected frame");
}

/* ---- changes ---- */

static bool is_slow(const struct source *source)
{
    const struct source_options *options = &source->options;
    return options->is_slow && options->is_slow(options->owner);
}

/* Returns the length of the longest packet that may travel. An older follower lacks the reads
 * of the others. */
static size_t packet_max(const struct source *source)
{
    if (source->version < REPL_VERSION_LEFT_OUT)
        return SIZE_MAX;
    return is_slow(source) ? SOURCE_PACKET_SLOW : SOURCE_PACKET_MAX;
}

static bool is_longer(const struct bytes *packet, size_t most)
{
    return bytes_slice(packet).len > most;
}

/* Returns the marks of the packets that are left out. A delayed run may get another payload, and
 * a run that is not settled another output: the database may have the later one already. */
static unsigned left_out(const struct run *run, size_t most)
{
    unsigned marks = 0;
    if (run->status != RUN_DELAYED && is_longer(run->payload, most))
        marks |= REPL_LEFT_PAYLOAD;
    if (run_is_settled(run) &&
        (is_longer(run->output, most) || is_longer(run->error, most)))
        marks |= REPL_LEFT_OUTPUT;
    return marks;
}

/* Removes the packets that do not travel with these marks. */
static void remove_packets(struct run *sent, unsigned marks)
{
    if (!(marks & MARK_PAYLOAD))
        sent->payload = sent->metadata_seed = NULL;
    if (!(marks & MARK_METADATA))
        sent->metadata = NULL;
    if (!(marks & MARK_OUTPUT))
        sent->output = sent->error = NULL;
}

static void leave_out(struct run *sent, unsigned marks)
{
    if (marks & REPL_LEFT_PAYLOAD)
        sent->payload = NULL;
    if (marks & REPL_LEFT_OUTPUT)
        sent->output = sent->error = NULL;
}

static struct repl_frame make_run(const struct source *source, enum repl_kind kind,
                                  uint32_t env, const struct run *run, unsigned marks)
{
    struct repl_frame frame = {
        .kind = kind, .run = { .env = env, .seq = run->rev, .marks = marks, .run = *run }
    };
    remove_packets(&frame.run.run, marks);
    if (marks & REPL_PACKETS)
        frame.run.marks |= left_out(&frame.run.run, packet_max(source));
    leave_out(&frame.run.run, frame.run.marks);
    return frame;
}

/* Returns about how long the frame is on the wire. */
static size_t frame_bytes(const struct repl_frame *frame)
{
    const struct run *run = &frame->run.run;
    return frame->kind ? RUN_BYTES + run_text_bytes(run) + run_tag_bytes(run) : 0;
}

/* The two are of the present second from now on. */
static void begin_second(struct source *source, struct source_env *env)
{
    int64_t second = loop_now_ms(source->loop) / SECOND_MS;
    if (source->second != second) {
        source->were_floods = source->second == second - 1 ? source->floods : 0;
        source->floods = source->active = 0;
        source->others = 0;
        source->second = second;
    }
    if (env->second == second)
        return;
    env->second = second;
    env->sent = 0;
    env->floods = false;
    source->active++;
}

/* Returns how many bytes an environment may send in this second. If many send too much only
 * together, none may send more than the average of what they may. */
static size_t share_of(const struct source *source)
{
    unsigned floods =
        source->floods > source->were_floods ? source->floods : source->were_floods;
    size_t allowance = source->options.allowance(source->options.owner);
    size_t share = allowance / (floods + 1), average;
    if (source->others / OTHERS < allowance)
        return share;
    average = OTHERS * allowance / source->active;
    return average < share ? average : share;
}

/* Returns true if that many bytes more are too many. A short change alone never is. */
static bool is_too_much(const struct source *source, const struct source_env *env,
                        size_t bytes)
{
    return env->sent + bytes > share_of(source) && (env->sent || bytes > SOURCE_LITTLE);
}

/* Returns true if the change is omitted, with the state before it. */
static bool omits(struct source *source, const struct repl_frame *before,
                  const struct repl_frame *change)
{
    if (source->version < REPL_VERSION_OMITTED || !is_slow(source))
        return false;
    struct source_env *env = env_of(source, change->run.env);
    size_t bytes = frame_bytes(before) + frame_bytes(change);
    begin_second(source, env);
    if (!env->floods && is_too_much(source, env, bytes)) {
        env->floods = true;
        source->floods++;
        source->others -= env->sent;
    }
    env->sent += bytes;
    source->others += env->floods ? 0 : bytes;
    return env->floods;
}

static void send_omitted(struct source *source, const struct change *change)
{
    struct repl_frame frame = { .kind = REPL_OMITTED,
                                .passed = { change->env, change->seq, change->seq } };
    send(source, NULL, &frame);
}

static void send_run(struct source *source, const struct run *before,
                     const struct change *change)
{
    unsigned marks = change->expected ? change->marks : change->marks | REPL_PACKETS;
    struct repl_frame frame =
        make_run(source, REPL_CHANGE, change->env, &change->run, marks);
    struct repl_frame former = { 0 };
    if (before && run_is_final(before))
        former = make_run(source, REPL_BEFORE, change->env, before, REPL_PACKETS);
    if (omits(source, &former, &frame)) {
        send_omitted(source, change);
        return;
    }
    if (former.kind)
        send(source, NULL, &former);
    source->changes++;
    send(source, NULL, &frame);
}

static void send_document(struct source *source, const struct change *change)
{
    struct repl_frame frame = {
        .kind = REPL_DOCUMENT, .document = { change->env, change->seq, change->document }
    };
    if (change->env != ENV_INSTALLATION || !repl_document_follows(change->document.kind))
        frame = (struct repl_frame){ .kind = REPL_PASSED,
                                     .passed = { change->env, change->seq, change->seq } };
    send(source, NULL, &frame);
}

/* A change without a number has no place in the order. The database has it at the next
 * number or a later one, so followers that come back find that they lack it, and read it
 * there. */
static void apply_unnumbered(struct source *source)
{
    source->options.accounts_seq++;
    source_end_all(source, "the outcome of a commit was unknown");
}

void source_apply(struct source *source, const struct run *before,
                  const struct change *change)
{
    if (!change->seq) {
        apply_unnumbered(source);
        return;
    }
    if (change->env == ENV_INSTALLATION)
        source->options.accounts_seq = change->seq;
    if (list_empty(&source->followers))
        return;
    if (change->kind == CHANGE_DOCUMENT)
        send_document(source, change);
    else
        send_run(source, before, change);
}

void source_add(struct source *source, const struct environment *env)
{
    struct repl_position position = { env->number, env->applied };
    struct repl_frame frame = { .kind = REPL_POSITIONS,
                                .positions = { .list = &position, .count = 1 } };
    if (!list_empty(&source->followers))
        send(source, NULL, &frame);
}

void source_floor(struct source *source, const struct store_position *position)
{
    struct repl_frame frame = { .kind = REPL_FLOOR, .floor = *position };
    if (!list_empty(&source->followers))
        send(source, NULL, &frame);
}

void source_drop(struct source *source, uint32_t env)
{
    struct repl_frame frame = { .kind = REPL_DROPPED, .dropped.env = env };
    if (!list_empty(&source->followers))
        send(source, NULL, &frame);
}
