/* cluster_poller.c - long polls over real feeds, as api/realtime/long_polls.c serves them. */
#include "tests/support/cluster/cluster_poller.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/scan.h"
#include "base/mem.h"
#include "tests/support/cluster/cluster.h"
#include "tests/support/cluster/cluster_faults.h"
#include "tests/support/world/reader.h"

enum { ASK_MS = 5000, HOLD_MS = 1500, PAUSE_MS = 40, LOST_PER_MILLE = 50 };

struct poller_row {
    char id[RUN_ID_MAX];
    uint32_t version;
    char updated_at[TIME_TEXT_LEN + 2]; /* as in the message */
};

static const struct cluster_session_ops session_ops;

static struct cluster_poller *of_session(struct cluster_session *session)
{
    return container_of(session, struct cluster_poller, session);
}

static int64_t now_of(const struct cluster_poller *poller)
{
    return poller->cluster->network.now;
}

/* ---- rows ---- */

static struct slice row_key(const void *value)
{
    return slice_of(((const struct poller_row *)value)->id);
}

static void forget_rows(struct cluster_poller *poller)
{
    size_t at = 0;
    for (struct poller_row *row; (row = table_next(&poller->rows, &at));)
        free(row);
    table_finish(&poller->rows);
    table_init(&poller->rows, row_key);
}

static void take_time(struct poller_row *row, struct slice fields)
{
    char updated_at[sizeof(row->updated_at)];
    snprintf(updated_at, sizeof(updated_at), "%.*s",
             SLICE_ARG(scan_member(fields, "updatedAt")));
    if (strcmp(updated_at, row->updated_at) < 0)
        violated("a poll gets %s of %s after %s", row->id, updated_at, row->updated_at);
    memcpy(row->updated_at, updated_at, sizeof(updated_at));
}

static void take_row(struct cluster_poller *poller, struct slice element)
{
    struct scan_members parts = scan_members(element);
    struct slice id, version, fields, whole;
    uint64_t number = 0;
    scan_next_element(&parts, &id);
    scan_next_element(&parts, &version);
    scan_next_element(&parts, &fields);
    text_to_u64(version, &number);
    id = (struct slice){ id.ptr + 1, id.len - 2 };
    struct poller_row *row = table_find(&poller->rows, id);
    if (!row && !scan_next_element(&parts, &whole))
        violated("a poll gets a delta for %.*s, which it does not have", SLICE_ARG(id));
    if (!row) {
        row = mem_new(struct poller_row);
        snprintf(row->id, sizeof(row->id), "%.*s", SLICE_ARG(id));
        table_insert(&poller->rows, row);
    }
    if (number < row->version)
        violated("a poll gets %s v%llu after v%u", row->id, (unsigned long long)number,
                 row->version);
    row->version = (uint32_t)number;
    take_time(row, fields);
}

static void take_frame(struct cluster_poller *poller, struct slice message)
{
    struct scan_members rows = scan_members(scan_member(message, "rows"));
    struct slice row;
    while (scan_next_element(&rows, &row))
        take_row(poller, row);
}

/* ---- the end of a poll ---- */

static void end_poll(struct cluster_poller *poller)
{
    if (poller->state == POLLER_HELD)
        feed_finish(&poller->feed);
    for (size_t i = 0; i < poller->count; i++)
        bytes_unref(poller->frames[i]);
    poller->count = 0;
    poller->done = poller->refetches = false;
    poller->state = POLLER_IDLE;
    poller->next_at = now_of(poller) + draw(&poller->cluster->draws, PAUSE_MS);
    if (poller->session.gateway)
        cluster_session_close(&poller->session);
}

static void take_answer(struct cluster_poller *poller, uint64_t seen, uint64_t base)
{
    unsigned history = cluster_history_of(poller->session.gateway->epoch);
    if (history != poller->history)
        forget_rows(poller);
    poller->history = history;
    for (size_t i = 0; i < poller->count; i++)
        take_frame(poller, bytes_slice(poller->frames[i]));
    poller->has_position = true;
    poller->seen = seen;
    poller->base = base;
    poller->answers++;
}

/* Responds with the position, unless the response is lost: then the poll is repeated. */
static void respond(struct cluster_poller *poller, uint64_t seen, uint64_t base)
{
    if (!chance(&poller->cluster->draws, LOST_PER_MILLE))
        take_answer(poller, seen, base);
    end_poll(poller);
}

/* ---- the feed ---- */

static uint64_t seq_of(const struct bytes *frame)
{
    uint64_t seq = 0;
    text_to_u64(scan_member(bytes_slice(frame), "seq"), &seq);
    return seq;
}

/* The frame completes the response, which leaves now and arrives later. */
static void complete(struct cluster_poller *poller, const struct bytes *frame)
{
    struct cluster_gateway *gateway = poller->session.gateway;
    poller->done = true;
    cluster_check_shown(&poller->cluster->check, gateway->name, now_of(poller),
                        cluster_gateway_moment(gateway, seq_of(frame)), poller->asked);
}

static bool send_frames(struct feed *feed, struct bytes *const *frames, size_t count)
{
    struct cluster_poller *poller = container_of(feed, struct cluster_poller, feed);
    for (size_t i = 0; i < count; i++) {
        if (poller->count == poller->capacity) {
            poller->capacity = poller->capacity ? 2 * poller->capacity : 16;
            poller->frames =
                mem_resize(poller->frames, poller->capacity * sizeof(struct bytes *));
        }
        poller->frames[poller->count++] = bytes_ref(frames[i]);
        if (!scan_member(bytes_slice(frames[i]), "more").ptr)
            complete(poller, frames[i]);
    }
    return !poller->done;
}

static bool is_busy(struct feed *feed)
{
    const struct cluster_poller *poller = container_of(feed, struct cluster_poller, feed);
    return poller->done || poller->refetches;
}

static void on_lost(struct feed *feed)
{
    struct cluster_poller *poller = container_of(feed, struct cluster_poller, feed);
    poller->held_until = 0;
}

static void begins_again(struct feed *feed)
{
    container_of(feed, struct cluster_poller, feed)->refetches = true;
}

static const struct feed_ops feed_ops = {
    .send = send_frames, .busy = is_busy, .lost = on_lost, .begins_again = begins_again
};

/* ---- a poll ---- */

static bool is_accepted(struct cluster_poller *poller)
{
    const struct cluster_gateway *gateway = poller->session.gateway;
    if (gateway->accounts.generation[poller->key] != poller->generation)
        return false;
    /* A position may be reached before the question has its answer. */
    bool is_answered = cluster_gateway_is_answered(gateway, poller->question);
    cluster_check_accepted(&poller->cluster->check, now_of(poller), poller->key,
                           poller->generation, poller->begun, poller->asks && is_answered);
    return true;
}

static bool is_of_history(const struct cluster_poller *poller)
{
    const struct cluster_gateway *gateway = poller->session.gateway;
    return poller->has_position && poller->history == cluster_history_of(gateway->epoch);
}

static void hold(struct cluster_poller *poller)
{
    struct environment *env = poller->session.gateway->env;
    struct view view = view_of(ENCODING_JSON, FIELDS_ALL);
    struct filter filter = filter_about("all");
    bool goes_on = is_of_history(poller) && poller->seen <= env->applied &&
                   poller->seen >= env->purged;
    uint64_t seen = goes_on ? poller->seen : 0, base = goes_on ? poller->base : 0;
    feed_init(&poller->feed, &feed_ops, env, environment_view(env, &view));
    poller->state = POLLER_HELD;
    poller->held_until = now_of(poller) + HOLD_MS;
    if (!goes_on || seen != base || !feed_follow(&poller->feed, 1, &filter, seen))
        feed_subscribe(&poller->feed, 1, &filter, seen, base);
}

/* Returns true if the poll may start: its position is applied, or of another history. */
static bool is_reached(const struct cluster_poller *poller)
{
    const struct cluster_gateway *gateway = poller->session.gateway;
    bool answered = cluster_gateway_is_answered(gateway, poller->question);
    if (!is_of_history(poller))
        return answered;
    if (poller->seen <= gateway->env->applied || has_fault(FAULT_POLL_BEHIND))
        return true;
    return answered && !has_fault(FAULT_EARLY_SNAPSHOT);
}

static void start(struct cluster_poller *poller)
{
    const struct cluster_gateway *gateway = poller->session.gateway;
    if (!cluster_gateway_is_certain(gateway) || now_of(poller) > poller->begun + ASK_MS)
        end_poll(poller); /* 503 */
    else if (is_reached(poller) && !is_accepted(poller))
        end_poll(poller); /* 401 */
    else if (is_reached(poller))
        hold(poller);
}

static void go_on(struct cluster_poller *poller)
{
    struct cluster_gateway *gateway = poller->session.gateway;
    if (poller->refetches) {
        end_poll(poller);
        cluster_poller_forget(poller);
        return;
    }
    if (poller->done) {
        uint64_t seq = seq_of(poller->frames[poller->count - 1]);
        respond(poller, seq, seq);
        return;
    }
    if (!cluster_gateway_is_certain(gateway) || !poller->held_until) {
        end_poll(poller);
        return;
    }
    if (now_of(poller) < poller->held_until || !feed_in_sync(&poller->feed))
        return;
    cluster_check_sync(&poller->cluster->check, gateway->name, now_of(poller),
                       cluster_gateway_moment(gateway, poller->feed.seen), poller->asked);
    respond(poller, poller->feed.seen, poller->feed.base);
}

static void tick(struct cluster_session *session)
{
    struct cluster_poller *poller = of_session(session);
    if (poller->state == POLLER_ASKING)
        start(poller);
    else
        go_on(poller);
}

static void cut(struct cluster_session *session)
{
    end_poll(of_session(session));
}

static const struct cluster_session_ops session_ops = { tick, cut };

void cluster_poller_step(struct cluster_poller *poller)
{
    struct cluster *cluster = poller->cluster;
    if (poller->state != POLLER_IDLE || now_of(poller) < poller->next_at)
        return;
    struct cluster_gateway *gateway = &cluster->gateways[poller->turn++ % CLUSTER_GATEWAYS];
    poller->next_at = now_of(poller) + PAUSE_MS;
    if (!gateway->running || gateway->suspended || !cluster_gateway_is_certain(gateway))
        return;
    cluster_session_open(&poller->session, gateway);
    poller->state = POLLER_ASKING;
    poller->begun = now_of(poller);
    poller->asks = !is_of_history(poller) || poller->seen > gateway->env->applied;
    poller->question = poller->asks ? cluster_gateway_ask(gateway) : 0;
    poller->asked = (struct cluster_moment){ 0 };
    if (!is_of_history(poller))
        poller->asked = cluster_check_asked(&cluster->check, now_of(poller));
    cluster_draw_key(cluster, &poller->key, &poller->generation);
}

void cluster_poller_forget(struct cluster_poller *poller)
{
    if (poller->state != POLLER_IDLE)
        return;
    poller->has_position = false;
    forget_rows(poller);
}

/* ---- made, gone ---- */

void cluster_poller_init(struct cluster_poller *poller, struct cluster *cluster,
                         unsigned number)
{
    *poller = (struct cluster_poller){ .cluster = cluster, .turn = number };
    poller->session.ops = &session_ops;
    list_init(&poller->session.link);
    table_init(&poller->rows, row_key);
}

void cluster_poller_finish(struct cluster_poller *poller)
{
    end_poll(poller);
    forget_rows(poller);
    table_finish(&poller->rows);
    free(poller->frames);
}

bool cluster_poller_rests(const struct cluster_poller *poller)
{
    const struct cluster_check *check = &poller->cluster->check;
    return poller->has_position && poller->history == check->history &&
           poller->seen == check->histories[check->history]->seq;
}

void cluster_poller_check_end(const struct cluster_poller *poller)
{
    list_each (link, &poller->cluster->check.histories[poller->history]->stories) {
        const struct story *story = container_of(link, struct story, link);
        const struct poller_row *row = table_find(&poller->rows, slice_of(story->id));
        if (!story->purged && (!row || row->version != story->count))
            violated("%s rests at v%u and a poll's client has v%u", story->id, story->count,
                     row ? row->version : 0);
    }
}
