/* pg_writer.c - sends groups of commits: while one is in flight, the next one gathers.
 *
 *   pg_writers   assigns environments to writers, and reports what they have done
 *       │  ▲
 *       ▼  │     each continues when it has something to do, or all rest
 *   pg_writer    a writer with a connection:
 *
 *   commits ─► line ─► group ── commit_v101(writer, number, …) ──► answer ─► done
 *                        ▲                                 │
 *                        └── connection lost: the same ────┘
 *                            group, the same number
 *
 * A group that was sent is repeated until its result arrives. The SQL function remembers
 * the result for each number, so it writes nothing twice, and the outcome is always known.
 *
 * A rejected group (disk full, a value that does not fit) was not written. But if it was
 * also sent earlier, on a connection that was then lost, that statement may still be
 * executed. So its number is voided first: an empty group is written under it. Either that
 * succeeds, and the group will never be written; or the group had been written, and the
 * result for the number is the group's.
 *
 * After two seconds without a response (timeout_ms) all requests that were not sent yet
 * fail, and so do new ones. Requests that were sent stay pending. */
#include "store/pg/pg_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "store/pg/sql/pg_refusal.h"

enum {
    TIMEOUT_MS = 2000,
    DEADLINE_MS = 5000,
    SWEEP_EVERY_MS = 1000,
    SLOW_MS = 100, /* a group that takes longer is logged at debug */
};

static const uint64_t second_ns = 1000000000;

static struct pg_writer *writer_of(struct pg_link *link)
{
    return container_of(link, struct pg_writer, link);
}

bool pg_writer_rests(const struct pg_writer *writer)
{
    return writer->step == PG_REST && list_empty(&writer->alone);
}

bool pg_writer_has_work(const struct pg_writer *writer)
{
    return writer->step != PG_REST || !list_empty(&writer->alone) ||
           !commit_line_empty(&writer->line) || !list_empty(&writer->purges);
}

/* ---- finishing requests ---- */

/* Finishes requests that wait and were never sent. */
static void finish_waiting(struct pg_writer *writer, enum store_status status)
{
    struct list waiting;
    list_init(&waiting);
    list_move_all(&waiting, &writer->alone);
    commit_line_empty_into(&writer->line, &waiting);
    pg_writers_finish_all(writer->all, &waiting, status);
    pg_writers_finish_purges(writer->all, &writer->purges, status);
}

static void finish_step(struct pg_writer *writer, enum store_status status)
{
    pg_writers_finish_all(writer->all, &writer->group, status);
    if (writer->purge)
        pg_writers_finish_purge(writer->all, writer->purge, status);
    writer->purge = NULL;
    writer->step = PG_REST;
    writer->maybe_executing = writer->one_by_one = false;
    uv_timer_stop(&writer->timeout);
}

/* Puts the commits of the group back, to be sent one by one. */
static void part_group(struct pg_writer *writer)
{
    struct list rest;
    list_init(&rest);
    list_move_all(&rest, &writer->alone);
    list_move_all(&writer->alone, &writer->group);
    list_move_all(&writer->alone, &rest);
    finish_step(writer, STORE_FAILED);
}

void pg_writer_give_up(struct pg_writer *writer, enum store_status status)
{
    if (writer->step != PG_REST && writer->link.state == PG_BUSY)
        pg_link_reopen(&writer->link);
    finish_step(writer, status);
    finish_waiting(writer, status);
}

/* ---- state of the store ---- */

static void start_failing(struct pg_writer *writer, const char *trouble)
{
    snprintf(writer->trouble, sizeof(writer->trouble), "%s", trouble);
    writer->failing = true;
    pg_writers_follow(writer->all);
}

/* Called when the database has responded.
 *
 * All writers share its disk, so a write by this one shows that there is space for the
 * others, which may have nothing to write for a long time. */
static void stop_failing(struct pg_writer *writer)
{
    bool wrote = writer->step == PG_GROUP || writer->step == PG_PURGE;
    writer->failing = writer->full = false;
    for (unsigned i = 0; wrote && i < writer->all->count; i++)
        writer->all->writers[i].full = false;
    pg_writers_follow(writer->all);
}

static void on_timeout(uv_timer_t *timer)
{
    struct pg_writer *writer = container_of(timer, struct pg_writer, timeout);
    start_failing(writer, "the database does not respond");
    writer->next_try = UINT64_MAX;
    finish_waiting(writer, STORE_FAILED);
    pg_writers_go_on(writer->all);
}

static void begin_timeout(struct pg_writer *writer)
{
    unsigned wanted_ms = writer->all->options->timeout_ms;
    if (!uv_is_active((uv_handle_t *)&writer->timeout))
        uv_timer_start(&writer->timeout, on_timeout, wanted_ms ? wanted_ms : TIMEOUT_MS, 0);
}

/* ---- sending ---- */

static void call(struct pg_writer *writer, const char *function,
                 const struct pg_params *params)
{
    struct buf sql = { 0 };
    const char *schema = pg_schema_name(writer->all->options);
    if (writer->step == PG_LEAD)
        buf_print(&sql, "SELECT %s FROM \"%s\".%s(", pg_lead_columns, schema, function);
    else
        buf_print(&sql, "SELECT \"%s\".%s(", schema, function);
    for (size_t i = 1; i <= params->count; i++)
        buf_print(&sql, "%s$%zu", i > 1 ? ", " : "", i);
    buf_add_text(&sql, ")");
    buf_add_char(&sql, '\0');
    struct pg_statement statement = { .sql = sql.ptr,
                                      .params = params,
                                      .deadline_ms = DEADLINE_MS };
    writer->sent_us = commit_report_now_us();
    begin_timeout(writer);
    pg_link_send(&writer->link, &statement);
    buf_finish(&sql);
}

static void put_header(struct pg_writer *writer)
{
    const char *durability = writer->all->options->durability;
    pg_params_clear(&writer->params);
    pg_param_int8(&writer->params, writer->id);
    pg_param_int8(&writer->params, writer->number);
    pg_param_text(&writer->params, durability ? durability : "on");
}

/* Returns the newest of the commits' times, once a second; otherwise 0.
 *
 * The function removes some claims that have expired by that time. */
static int64_t sweep_time(struct pg_writer *writer)
{
    int64_t now_ms = 0;
    list_each (link, &writer->group) {
        const struct store_commit *req = container_of(link, struct store_commit, link);
        now_ms = req->now_ms > now_ms ? req->now_ms : now_ms;
    }
    bool is_set_back = now_ms < writer->swept_at;
    if (!is_set_back && now_ms < writer->swept_at + SWEEP_EVERY_MS)
        return 0;
    return writer->swept_at = now_ms;
}

static void put_group(struct pg_writer *writer)
{
    const struct pg_types *types = &writer->link.hello.types;
    pg_group_encode(&writer->encoded, &writer->group, types, pg_lead_term,
                    writer->all->lead);
    put_header(writer);
    pg_param_int8(&writer->params, sweep_time(writer));
    pg_group_bind(&writer->encoded, &writer->params, types);
}

static int64_t wall_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void put_purge(struct pg_writer *writer)
{
    const struct store_purge *req = writer->purge;
    put_header(writer);
    pg_param_int4(&writer->params, (int32_t)req->env);
    pg_param_int8(&writer->params, (int64_t)pg_lead_term(writer->all->lead, req->env));
    pg_param_int8(&writer->params, req->before);
    pg_param_int8(&writer->params, req->documents_before);
    pg_param_int4(&writer->params, (int32_t)req->limit);
    pg_param_bool(&writer->params, req->whole);
    pg_param_int8(&writer->params, wall_ms());
}

/* Sends the current step, for the first time or again. */
static void send_step(struct pg_writer *writer)
{
    switch (writer->step) {
    case PG_REST: break;
    case PG_LEAD: call(writer, "lead_v102", &writer->lead_call.params); break;
    case PG_GROUP:
    case PG_VOID: call(writer, "commit_v101", &writer->params); break;
    case PG_PURGE: call(writer, "purge_v101", &writer->params); break;
    }
}

/* ---- the next step ---- */

static void forget_lead_call(struct pg_writer *writer)
{
    if (writer->lead_called)
        pg_lead_call_finish(&writer->lead_call);
    writer->lead_called = false;
}

/* Collects the environments of the current step that we do not lead yet. envs has space for
 * all environments of the step. */
static size_t environments_to_lead(const struct pg_writer *writer, uint32_t *envs)
{
    const struct pg_lead *lead = writer->all->lead;
    size_t count = 0;
    if (writer->purge) {
        envs[0] = writer->purge->env;
        return !pg_lead_term(lead, envs[0]);
    }
    for (size_t i = 0; i < writer->encoded.head_count; i++)
        if (!pg_lead_term(lead, writer->encoded.heads[i].env))
            envs[count++] = writer->encoded.heads[i].env;
    return count;
}

static void put_step(struct pg_writer *writer)
{
    writer->step = writer->purge ? PG_PURGE : PG_GROUP;
    if (writer->purge)
        put_purge(writer);
    else
        put_group(writer);
}

/* Begins with PG_LEAD if there are environments without a row. */
static void begin_step(struct pg_writer *writer)
{
    put_step(writer);
    uint32_t *envs =
        mem_new_array(uint32_t, writer->purge ? 1 : writer->encoded.head_count);
    size_t count = environments_to_lead(writer, envs);
    if (count) {
        forget_lead_call(writer);
        pg_lead_call_init(&writer->lead_call, writer->all->lead, envs, count, NULL);
        writer->lead_called = true;
        writer->step = PG_LEAD;
    }
    free(envs);
    send_step(writer);
}

/* Takes the next group or purge. A commit of several writers waits until all of them
 * rest. */
static bool take_next(struct pg_writer *writer)
{
    struct pg_writers *writers = writer->all;
    if (!list_empty(&writer->alone)) {
        list_append(&writer->group, list_take(&writer->alone));
    } else if (!list_empty(&writers->wide)) {
        if (writer != &writers->writers[0] || !pg_writers_rest(writers))
            return false;
        list_append(&writer->group, list_take(&writers->wide));
    } else if (!list_empty(&writer->purges) &&
               (commit_line_empty(&writer->line) || !writer->purge_was_last)) {
        writer->purge = container_of(list_take(&writer->purges), struct store_purge, link);
    } else {
        commit_line_take(&writer->line, &writer->group);
    }
    writer->purge_was_last = writer->purge;
    return writer->purge || !list_empty(&writer->group);
}

void pg_writer_go_on(struct pg_writer *writer)
{
    struct pg_writers *writers = writer->all;
    if (writer->step != PG_REST || writers->closing)
        return;
    if (writer->link.state == PG_IDLE && take_next(writer))
        begin_step(writer);
    else if (pg_writer_has_work(writer) && writer->link.state != PG_IDLE)
        begin_timeout(writer);
}

/* ---- answers ---- */

static void note_group(struct pg_writer *writer)
{
    struct pg_writers *writers = writer->all;
    int64_t took_us = commit_report_now_us() - writer->sent_us;
    metric_add(M_COMMIT_GROUPS, 1);
    struct buckets commits = { 0 };
    buckets_note(&commits, metric_bounds(H_GROUP), writer->encoded.request_count);
    metric_merge(H_GROUP, &commits);
    metric_observe_us(H_SYNC, took_us);
    if (log_has_debug() && took_us > SLOW_MS * 1000)
        log_decision("slow commit", NULL, NULL, "the database or the amount", "ms",
                     log_number(took_us / 1000), "commits",
                     log_number(writer->encoded.request_count), NULL);
    for (size_t i = 0; i < writer->encoded.head_count; i++)
        if (writer->encoded.heads[i].grown)
            commit_report_growth(&writers->report, writer->encoded.heads[i].env,
                                 writer->encoded.heads[i].grown);
}

/* Each commit already has its own status. */
static void finish_group(struct pg_writer *writer)
{
    note_group(writer);
    list_each (link, &writer->group) {
        struct store_commit *req = container_of(link, struct store_commit, link);
        pg_writers_finish(writer->all, req, req->status);
    }
    writer->number++;
    finish_step(writer, STORE_OK);
}

static void finish_voided(struct pg_writer *writer)
{
    writer->number++;
    if (writer->one_by_one)
        part_group(writer);
    else
        finish_step(writer, writer->verdict);
}

static bool read_purge(struct pg_writer *writer, struct slice answer)
{
    struct store_purge *req = writer->purge;
    int32_t count, more;
    int64_t seq, purged, floor, grown;
    if (!answer.len || *answer.ptr != 'p')
        return false;
    answer = slice_from(answer, 1);
    if (!pg_take_int4(&answer, &count) || !pg_take_int4(&answer, &more) ||
        !pg_take_int8(&answer, &seq) || !pg_take_int8(&answer, &purged) ||
        !pg_take_int8(&answer, &floor) || !pg_take_int8(&answer, &grown))
        return false;
    req->count = (size_t)count;
    req->more_documents = more;
    req->position = (struct store_position){
        .env = req->env, .seq = (uint64_t)seq, .purged = (uint64_t)purged, .floor = floor
    };
    if (grown)
        commit_report_growth(&writer->all->report, req->env, grown);
    return true;
}

/* Reads the result of the purge, or of its number. */
static enum pg_outcome take_purge(struct pg_writer *writer, struct slice answer)
{
    if (read_purge(writer, answer)) {
        writer->number++;
        finish_step(writer, STORE_OK);
        return PG_ANSWERED;
    }
    if (slice_is(answer, "m")) {
        writer->number++;
        finish_step(writer, STORE_MOVED);
        return PG_ANSWERED;
    }
    writer->encoded.request_count = 1;
    struct list none;
    list_init(&none);
    return pg_group_decode(&writer->encoded, answer, &none);
}

static void take_answer(struct pg_writer *writer, struct slice answer)
{
    enum pg_outcome outcome;
    if (writer->purge) {
        outcome = take_purge(writer, answer);
    } else {
        outcome = pg_group_decode(&writer->encoded, answer, &writer->group);
        if (outcome == PG_ANSWERED)
            finish_group(writer);
    }
    switch (outcome) {
    case PG_ANSWERED: break;
    case PG_VOIDED: finish_voided(writer); break;
    case PG_GONE: pg_writers_lose(writer->all, "another gateway has taken over"); break;
    case PG_STRAY:
        pg_writers_lose(writer->all, "the database has lost what it had acknowledged");
        break;
    case PG_GARBLED:
        pg_writers_lose(writer->all, "malformed response from the database");
        break;
    }
}

static void take_lead(struct pg_writer *writer, const PGresult *answer)
{
    forget_lead_call(writer);
    if (!pg_lead_take(writer->all->lead, answer)) {
        pg_writers_lose(writer->all, "another gateway leads");
        return;
    }
    put_step(writer); /* again, now that the terms are known */
    send_step(writer);
}

/* None of the step was written. Gives it the verdict, or sends its commits one by one.
 *
 * If the step may still be executed on a lost connection, first burns its number. */
static void refuse_step(struct pg_writer *writer, enum store_status verdict,
                        bool one_by_one)
{
    writer->verdict = verdict;
    writer->one_by_one = one_by_one;
    if (!writer->maybe_executing) {
        if (one_by_one)
            part_group(writer);
        else
            finish_step(writer, verdict);
        return;
    }
    /* The result may be the group's, which therefore stays encoded. */
    writer->step = PG_VOID;
    put_header(writer);
    pg_param_int8(&writer->params, 0);
    pg_group_bind(&writer->nothing, &writer->params, &writer->link.hello.types);
    send_step(writer);
}

static bool is_one_of_many(const struct pg_writer *writer)
{
    return !list_empty(&writer->group) && writer->group.next != writer->group.prev;
}

static void report_refused(struct pg_writer *writer, const PGresult *answer)
{
    pg_reason(writer->trouble, PQresultErrorMessage(answer));
    log_warn("the database rejected a write", "reason", writer->trouble, NULL);
}

static void take_error(struct pg_writer *writer, const PGresult *answer)
{
    enum pg_remedy remedy = pg_remedy_of(PQresultErrorField(answer, PG_DIAG_SQLSTATE));
    if (remedy == PG_REPEAT || remedy == PG_STOPPED || writer->step == PG_VOID) {
        pg_reason(writer->trouble, PQresultErrorMessage(answer));
        writer->maybe_executing = true;
        pg_link_reopen(&writer->link);
        return;
    }
    report_refused(writer, answer);
    writer->next_try = uv_hrtime() + second_ns;
    if (remedy == PG_NO_SPACE) {
        writer->full = true;
        refuse_step(writer, STORE_NO_SPACE, false);
    } else if (remedy == PG_ONE_BY_ONE) {
        refuse_step(writer, STORE_FAILED, is_one_of_many(writer));
    } else {
        writer->failing = true;
        refuse_step(writer, STORE_FAILED, false);
    }
    pg_writers_follow(writer->all);
}

static void on_answer(struct pg_link *link, PGresult *answer)
{
    struct pg_writer *writer = writer_of(link);
    if (PQresultStatus(answer) != PGRES_TUPLES_OK || !PQntuples(answer)) {
        if (writer->step == PG_LEAD && PQresultStatus(answer) == PGRES_TUPLES_OK)
            take_lead(writer, answer);
        else
            take_error(writer, answer);
    } else {
        uv_timer_stop(&writer->timeout);
        stop_failing(writer);
        if (writer->step == PG_LEAD)
            take_lead(writer, answer);
        else
            take_answer(writer, (struct slice){ PQgetvalue(answer, 0, 0),
                                                (size_t)PQgetlength(answer, 0, 0) });
    }
    PQclear(answer);
    pg_writers_go_on(writer->all);
}

/* ---- the connection ---- */

/* A promoted server may lack writes that the old primary had acknowledged. Restarting this
 * process then gives the database a new epoch. A gateway that follows does without, and so
 * does one that has just taken the lead, and has not asked for the epoch yet. */
static void leave_history(struct pg_writers *writers)
{
    const struct store *store = writers->report.store;
    if (store->on_history)
        store->on_history(store->history_owner);
    else
        pg_writers_lose(writers, "another server has become the primary one");
}

static void on_ready(struct pg_link *link)
{
    struct pg_writer *writer = writer_of(link);
    struct pg_writers *all = writer->all;
    if (!all->lost && pg_is_another_history(all->options, all->timeline, &link->hello))
        leave_history(all);
    if (writer->step != PG_REST)
        send_step(writer);
    else
        stop_failing(writer);
    pg_writers_go_on(writer->all);
}

static void on_lost(struct pg_link *link, bool was_busy)
{
    struct pg_writer *writer = writer_of(link);
    writer->maybe_executing |= was_busy && writer->step != PG_REST;
    pg_writer_go_on(writer);
}

/* ---- beginning and ending ---- */

static void on_link_closed(struct pg_link *link)
{
    pg_writers_closed(writer_of(link)->all);
}

static void on_timeout_closed(uv_handle_t *handle)
{
    pg_writers_closed(container_of((uv_timer_t *)handle, struct pg_writer, timeout)->all);
}

void pg_writer_close(struct pg_writer *writer)
{
    uv_close((uv_handle_t *)&writer->timeout, on_timeout_closed);
    pg_link_close(&writer->link);
}

void pg_writer_finish(struct pg_writer *writer)
{
    commit_line_finish(&writer->line);
    forget_lead_call(writer);
    pg_group_finish(&writer->encoded);
    pg_group_finish(&writer->nothing);
    pg_params_finish(&writer->params);
}

void pg_writer_begin(struct pg_writers *writers, unsigned which, PGconn *conn,
                     const struct pg_hello *hello)
{
    struct pg_writer *writer = &writers->writers[which];
    writer->all = writers;
    writer->id = writers->lead->me * PG_WRITERS_MAX + which;
    writer->number = 1;
    commit_line_init(&writer->line);
    list_init(&writer->purges);
    list_init(&writer->alone);
    list_init(&writer->group);
    pg_group_init(&writer->encoded);
    pg_group_init(&writer->nothing);
    struct list none;
    list_init(&none);
    pg_group_encode(&writer->nothing, &none, &writers->types, pg_lead_term, writers->lead);
    uv_timer_init(writers->loop, &writer->timeout);
    writer->link.loop = writers->loop;
    writer->link.conn = conn;
    writer->link.hello = *hello;
    writer->link.options = writers->options;
    writer->link.on_ready = on_ready;
    writer->link.on_answer = on_answer;
    writer->link.on_lost = on_lost;
    writer->link.on_closed = on_link_closed;
    pg_link_begin(&writer->link);
}
