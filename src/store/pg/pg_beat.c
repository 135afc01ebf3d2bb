/* pg_beat.c - calls beat_v102, lead_v102 and leave_v101 on a separate connection.
 *
 * No commit or read thus delays them.
 *
 * A process that leaves notifies the others on a channel named after the schema. Each of
 * them listens to it on this connection, before its first beat, so that this beat finds
 * anything notified earlier. A notification is only a hint, which a pooler may drop; then
 * the next beat finds the lead free.
 *
 * A request fails after two seconds without a connection, or without a response (five
 * seconds for taking the lead, one for leaving). The caller then knows that the database is
 * unreachable, and retries. */
#include "store/pg/pg_beat.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
    BEAT_DEADLINE_MS = 2000,
    TAKE_DEADLINE_MS = 5000, /* lead_v102 waits 3 s for other writers */
    LEAVE_DEADLINE_MS = 1000,
    /* After a restart of the server, every gateway beats before any counts as dead. */
    BACK_OFF_MAX_MS = 1000,
};

/* Columns of the result of beat_v102. */
enum { CLOCK, LEADER, ID, BEAT, DRAINING, NAME, PEER_URL, SESSION };

static struct pg_beats *beats_of(struct pg_link *link)
{
    return container_of(link, struct pg_beats, link);
}

/* ---- finishing requests ---- */

static void finish_beat(struct pg_beats *beats, enum store_status status)
{
    struct store_beat *req = beats->beat;
    beats->beat = NULL;
    if (!req)
        return;
    req->status = status;
    req->done(req, status);
}

static void finish_take(struct pg_beats *beats, enum store_status status)
{
    struct store_lead *req = beats->take;
    beats->take = NULL;
    if (!req)
        return;
    req->status = status;
    req->done(req, status);
}

static void finish_forget(struct pg_beats *beats, enum store_status status)
{
    struct store_forget *req = beats->forget;
    beats->forget = NULL;
    if (!req)
        return;
    req->status = status;
    req->done(req, status);
}

static void finish_recount(struct pg_beats *beats, enum store_status status)
{
    struct store_recount *req = beats->recount;
    beats->recount = NULL;
    if (!req)
        return;
    req->status = status;
    req->done(req, status);
}

static void finish_renew(struct pg_beats *beats, enum store_status status)
{
    struct store_renew *req = beats->renew;
    beats->renew = NULL;
    if (!req)
        return;
    req->status = status;
    req->done(req, status);
}

static void finish_leave(struct pg_beats *beats, enum store_status status)
{
    struct store_leave *req = beats->leave;
    beats->leave = NULL;
    if (!req)
        return;
    req->status = status;
    req->done(req, status);
}

static void finish_all(struct pg_beats *beats, enum store_status status)
{
    beats->step = PG_BEAT_REST;
    finish_beat(beats, status);
    finish_take(beats, status);
    finish_forget(beats, status);
    finish_recount(beats, status);
    finish_renew(beats, status);
    finish_leave(beats, status);
}

/* ---- responses ---- */

static void take_text(char *text, size_t size, const PGresult *answer, int row, int column)
{
    snprintf(text, size, "%.*s", PQgetlength(answer, row, column),
             PQgetvalue(answer, row, column));
}

static void take_gateway(struct store_gateway *gateway, const PGresult *answer, int row)
{
    *gateway = (struct store_gateway){
        .id = (uint64_t)pg_lead_number(answer, row, ID),
        .beat = (uint64_t)pg_lead_number(answer, row, BEAT),
        .session = (enum store_session)pg_lead_number(answer, row, SESSION),
        .draining = PQgetvalue(answer, row, DRAINING)[0],
    };
    take_text(gateway->name, sizeof(gateway->name), answer, row, NAME);
    take_text(gateway->peer_url, sizeof(gateway->peer_url), answer, row, PEER_URL);
}

/* Fails with STORE_MOVED if the row of this process is gone. */
static void take_beat(struct pg_beats *beats, const PGresult *answer)
{
    struct store_beat *req = beats->beat;
    int count = PQntuples(answer);
    struct store_gateway *gateways = mem_new_array(struct store_gateway, (size_t)count);
    bool is_there = false;
    req->me = (uint64_t)beats->lead->me;
    for (int i = 0; i < count; i++) {
        take_gateway(&gateways[i], answer, i);
        is_there |= gateways[i].id == req->me;
        req->leader = (uint64_t)pg_lead_number(answer, i, LEADER);
        req->clock_ms = pg_lead_number(answer, i, CLOCK);
    }
    req->gateways = gateways;
    req->gateway_count = (size_t)count;
    finish_beat(beats, is_there ? STORE_OK : STORE_MOVED);
    free(gateways);
}

static void take_lead(struct pg_beats *beats, const PGresult *answer)
{
    bool leads = pg_lead_take(beats->lead, answer);
    beats->store->term = beats->lead->term;
    finish_take(beats, leads ? STORE_OK : STORE_TAKEN);
}

static void take_recount(struct pg_beats *beats, const PGresult *answer)
{
    pg_lead_note(beats->lead, answer);
    finish_recount(beats, STORE_OK);
}

static bool is_another_history(const struct pg_beats *beats)
{
    return pg_is_another_history(beats->link.options, beats->timeline, &beats->link.hello);
}

static void take_renewed(struct pg_beats *beats, const PGresult *answer)
{
    bool is_there = PQntuples(answer) && beats->renew;
    if (is_there) {
        take_text(beats->renew->epoch, sizeof(beats->renew->epoch), answer, 0, 0);
        beats->renew->is_other = is_another_history(beats);
    }
    finish_renew(beats, is_there ? STORE_OK : STORE_FAILED);
}

static void go_on(struct pg_beats *beats);
static void close_all(struct pg_beats *beats);

static void on_answer(struct pg_link *link, PGresult *answer)
{
    struct pg_beats *beats = beats_of(link);
    enum pg_beat_step step = beats->step;
    ExecStatusType status = PQresultStatus(answer);
    bool refused = status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK;
    beats->step = PG_BEAT_REST;
    if (step == PG_BEAT_LEAVES)
        finish_leave(beats, refused ? STORE_FAILED : STORE_OK);
    if (step == PG_BEAT_LEAVES && beats->leaving)
        close_all(beats);
    else if (step == PG_BEAT_SHOWS_KEYS)
        memcpy(beats->lead->key_ids, beats->key_ids, sizeof(beats->key_ids));
    else if (step == PG_BEAT_BEATS && refused)
        finish_beat(beats, STORE_FAILED);
    else if (step == PG_BEAT_BEATS)
        take_beat(beats, answer);
    else if (step == PG_BEAT_TAKES && refused)
        finish_take(beats, STORE_FAILED);
    else if (step == PG_BEAT_TAKES)
        take_lead(beats, answer);
    else if (step == PG_BEAT_FORGETS)
        finish_forget(beats, refused ? STORE_FAILED : STORE_OK);
    else if (step == PG_BEAT_RECOUNTS && refused)
        finish_recount(beats, STORE_FAILED);
    else if (step == PG_BEAT_RECOUNTS)
        take_recount(beats, answer);
    else if (step == PG_BEAT_RENEWS && refused)
        finish_renew(beats, STORE_FAILED);
    else if (step == PG_BEAT_RENEWS)
        take_renewed(beats, answer);
    PQclear(answer);
    go_on(beats);
}

/* ---- sending ---- */

/* Sends and frees the statement. */
static void send_statement(struct pg_beats *beats, enum pg_beat_step step, struct buf *sql,
                           const struct pg_params *params)
{
    static const unsigned deadlines[] = {
        [PG_BEAT_LISTENS] = BEAT_DEADLINE_MS, [PG_BEAT_SHOWS_KEYS] = BEAT_DEADLINE_MS,
        [PG_BEAT_BEATS] = BEAT_DEADLINE_MS,   [PG_BEAT_TAKES] = TAKE_DEADLINE_MS,
        [PG_BEAT_FORGETS] = BEAT_DEADLINE_MS, [PG_BEAT_RECOUNTS] = BEAT_DEADLINE_MS,
        [PG_BEAT_RENEWS] = BEAT_DEADLINE_MS,  [PG_BEAT_LEAVES] = LEAVE_DEADLINE_MS
    };
    buf_add_char(sql, '\0');
    struct pg_statement statement = { .sql = sql->ptr,
                                      .params = params,
                                      .deadline_ms = deadlines[step] };
    beats->step = step;
    uv_timer_stop(&beats->timeout);
    pg_link_send(&beats->link, &statement);
    buf_finish(sql);
}

static void say(struct pg_beats *beats, enum pg_beat_step step, const char *columns,
                const char *call, const struct pg_params *params)
{
    struct buf sql = { 0 };
    buf_print(&sql, "SELECT %s FROM \"%s\".%s", columns,
              pg_schema_name(beats->link.options), call);
    send_statement(beats, step, &sql, params);
}

static void send_listen(struct pg_beats *beats)
{
    struct pg_params params = { 0 };
    struct buf sql = { 0 };
    buf_print(&sql, "LISTEN \"%s\"", pg_schema_name(beats->link.options));
    beats->listens = true;
    send_statement(beats, PG_BEAT_LISTENS, &sql, &params);
}

/* Returns true if the row of this gateway has other keys than it opens, because the key was
 * replaced. */
static bool shows_other_keys(struct pg_beats *beats)
{
    pg_lead_key_ids(beats->link.options, beats->key_ids);
    return strcmp(beats->key_ids, beats->lead->key_ids) != 0;
}

static void send_key_ids(struct pg_beats *beats)
{
    struct pg_params params = { 0 };
    struct buf sql = { 0 };
    pg_param_int8(&params, beats->lead->me);
    pg_param_text(&params, beats->key_ids);
    buf_print(&sql, "UPDATE \"%s\".gateway SET key_ids = $2::text[] WHERE id = $1",
              pg_schema_name(beats->link.options));
    send_statement(beats, PG_BEAT_SHOWS_KEYS, &sql, &params);
    pg_params_finish(&params);
}

static void send_beat(struct pg_beats *beats)
{
    const struct store_beat *req = beats->beat;
    struct pg_params params = { 0 };
    pg_param_int8(&params, beats->lead->me);
    pg_param_int4(&params, req->draining);
    pg_param_int4(&params, req->registers ? PQbackendPID(beats->link.conn) : 0);
    say(beats, PG_BEAT_BEATS,
        "seen_clock, seen_leader, seen_id, seen_beat, seen_draining, seen_name, seen_url,"
        " seen_session",
        "beat_v102($1, $2, $3)", &params);
    pg_params_finish(&params);
}

static void send_recount(struct pg_beats *beats)
{
    struct pg_params params = { 0 };
    say(beats, PG_BEAT_RECOUNTS, pg_lead_position_columns, "environment", &params);
}

/* Like the start (pg_schema.c), in one statement. If several gateways do so at once, one of them
 * renews the epoch. The others may read the one before, and have to repeat this. */
static void send_renew(struct pg_beats *beats)
{
    const char *schema = pg_schema_name(beats->link.options);
    bool is_lossless = beats->link.options->lossless;
    struct pg_params params = { 0 };
    struct buf sql = { 0 };
    pg_param_text(&params, is_lossless ? "" : beats->link.hello.timeline);
    buf_print(&sql,
              "WITH moved AS (UPDATE \"%s\".meta SET value = $1 WHERE name = 'timeline'"
              " AND $1 <> '' AND value NOT IN ('', $1) RETURNING 1),"
              " renewed AS (UPDATE \"%s\".meta SET"
              " value = left(replace(gen_random_uuid()::text, '-', ''), 16)"
              " WHERE name = 'epoch' AND EXISTS (SELECT FROM moved) RETURNING value)"
              " SELECT coalesce((SELECT value FROM renewed), value) FROM \"%s\".meta"
              " WHERE name = 'epoch'",
              schema, schema, schema);
    send_statement(beats, PG_BEAT_RENEWS, &sql, &params);
    pg_params_finish(&params);
}

static void send_take(struct pg_beats *beats)
{
    struct pg_lead_call call;
    pg_lead_call_init(&call, beats->lead, NULL, 0, beats->take);
    say(beats, PG_BEAT_TAKES, pg_lead_columns, "lead_v102($1, $2, $3, $4, $5, $6)",
        &call.params);
    pg_lead_call_finish(&call);
}

static void send_leave(struct pg_beats *beats)
{
    struct pg_params params = { 0 };
    uint64_t successor = beats->leave ? beats->leave->successor : 0;
    char payload[24] = "";
    if (successor)
        snprintf(payload, sizeof(payload), "%" PRIu64, successor);
    pg_param_int8(&params, beats->lead->me);
    pg_param_text(&params, pg_schema_name(beats->link.options));
    pg_param_text(&params, payload);
    say(beats, PG_BEAT_LEAVES, "pg_notify($2, $3)", "leave_v101($1)", &params);
    pg_params_finish(&params);
}

/* One statement, so that no writer row outlives the row of its gateway. */
static void send_forget(struct pg_beats *beats)
{
    const char *schema = pg_schema_name(beats->link.options);
    const struct store_forget *req = beats->forget;
    struct pg_array dead = { 0 }, dead_beats = { 0 };
    struct pg_params params = { 0 };
    struct buf sql = { 0 };
    pg_array_begin(&dead, PG_INT8);
    pg_array_begin(&dead_beats, PG_INT8);
    for (size_t i = 0; i < req->dead_count; i++) {
        pg_put_int8(&dead, (int64_t)req->dead[i].id);
        pg_put_int8(&dead_beats, (int64_t)req->dead[i].beat);
    }
    pg_param_array(&params, PG_INT8_ARRAY, pg_array_end(&dead));
    pg_param_array(&params, PG_INT8_ARRAY, pg_array_end(&dead_beats));
    buf_print(&sql,
              "WITH gone AS (DELETE FROM \"%s\".gateway g USING unnest($1, $2) d(id, beat)"
              " WHERE g.id = d.id AND g.beat = d.beat RETURNING g.id)"
              " DELETE FROM \"%s\".writer w USING gone WHERE w.gateway = gone.id",
              schema, schema);
    send_statement(beats, PG_BEAT_FORGETS, &sql, &params);
    pg_params_finish(&params);
    pg_array_finish(&dead);
    pg_array_finish(&dead_beats);
}

/* Sends the next request. Taking the lead comes first, because clients wait for it. */
static void go_on(struct pg_beats *beats)
{
    if (beats->link.state != PG_IDLE || beats->step != PG_BEAT_REST)
        return;
    if (beats->take)
        send_take(beats);
    else if (!beats->listens && !beats->leaving)
        send_listen(beats);
    else if (beats->beat && shows_other_keys(beats))
        send_key_ids(beats);
    else if (beats->beat)
        send_beat(beats);
    else if (beats->renew)
        send_renew(beats);
    else if (beats->forget)
        send_forget(beats);
    else if (beats->recount)
        send_recount(beats);
    else if (beats->leaving || beats->leave)
        send_leave(beats);
}

static void on_timeout(uv_timer_t *timer)
{
    struct pg_beats *beats = container_of(timer, struct pg_beats, timeout);
    finish_all(beats, STORE_FAILED);
    if (beats->leaving)
        close_all(beats);
}

/* Sends the request now, or waits for a connection. */
static void ask(struct pg_beats *beats)
{
    go_on(beats);
    if (beats->step == PG_BEAT_REST && !uv_is_active((uv_handle_t *)&beats->timeout))
        uv_timer_start(&beats->timeout, on_timeout, BEAT_DEADLINE_MS, 0);
}

void pg_beats_beat(struct pg_beats *beats, struct store_beat *req)
{
    beats->beat = req;
    ask(beats);
}

void pg_beats_take(struct pg_beats *beats, struct store_lead *req)
{
    beats->take = req;
    ask(beats);
}

void pg_beats_forget(struct pg_beats *beats, struct store_forget *req)
{
    beats->forget = req;
    ask(beats);
}

void pg_beats_recount(struct pg_beats *beats, struct store_recount *req)
{
    beats->recount = req;
    ask(beats);
}

void pg_beats_renew(struct pg_beats *beats, struct store_renew *req)
{
    beats->renew = req;
    ask(beats);
}

void pg_beats_leave(struct pg_beats *beats, struct store_leave *req)
{
    beats->leave = req;
    ask(beats);
}

/* ---- the connection ---- */

/* A leader finds it out by its writers. */
static void on_ready(struct pg_link *link)
{
    struct pg_beats *beats = beats_of(link);
    const struct store *store = beats->store;
    if (!beats->lead->term && store->on_history && is_another_history(beats))
        store->on_history(store->history_owner);
    go_on(beats);
}

static void on_lost(struct pg_link *link, bool was_busy)
{
    struct pg_beats *beats = beats_of(link);
    (void)was_busy;
    beats->listens = false;
    finish_all(beats, STORE_FAILED);
    if (beats->leaving)
        close_all(beats);
    else if (beats->store->on_cut)
        beats->store->on_cut(beats->store->moved_owner);
}

/* The payload is the number of the successor, or empty. */
static void on_notified(struct pg_link *link, const char *payload)
{
    const struct store *store = beats_of(link)->store;
    if (store->on_left)
        store->on_left(store->moved_owner, strtoull(payload, NULL, 10));
}

/* ---- beginning and ending ---- */

static void maybe_stopped(struct pg_beats *beats)
{
    if (--beats->open == 0)
        beats->stopped_fn(beats);
}

static void on_link_closed(struct pg_link *link)
{
    maybe_stopped(beats_of(link));
}

static void on_timeout_closed(uv_handle_t *handle)
{
    maybe_stopped(container_of((uv_timer_t *)handle, struct pg_beats, timeout));
}

static void close_all(struct pg_beats *beats)
{
    beats->leaving = false;
    beats->open = 2;
    uv_close((uv_handle_t *)&beats->timeout, on_timeout_closed);
    pg_link_close(&beats->link);
}

void pg_beats_start(struct pg_beats *beats, uv_loop_t *loop,
                    const struct pg_options *options)
{
    uv_timer_init(loop, &beats->timeout);
    beats->link.loop = loop;
    beats->link.options = options;
    beats->link.back_off_max_ms = BACK_OFF_MAX_MS;
    beats->link.on_ready = on_ready;
    beats->link.on_answer = on_answer;
    beats->link.on_lost = on_lost;
    beats->link.on_closed = on_link_closed;
    beats->link.on_notified = on_notified;
    pg_link_begin(&beats->link);
}

void pg_beats_stop(struct pg_beats *beats, void (*stopped)(struct pg_beats *beats))
{
    beats->stopped_fn = stopped;
    beats->leaving = true;
    go_on(beats);
    uv_timer_start(&beats->timeout, on_timeout, LEAVE_DEADLINE_MS, 0);
}
