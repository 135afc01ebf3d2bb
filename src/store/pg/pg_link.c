/* pg_link.c - drives libpq without blocking: polls its socket, reads complete results. */
#include "store/pg/pg_link.h"

#include <assert.h>
#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"

enum {
    BACK_OFF_FIRST_MS = 100,
    BACK_OFF_MAX_MS = 5000,
    DOUBLINGS_MAX = 6,
};

/* Polls our own descriptor, because libpq may close its socket at any time. */
struct pg_socket {
    uv_poll_t poll;
    struct pg_link *link;
    int fd;
};

/* ---- handles ---- */

static void maybe_closed(struct pg_link *link)
{
    if (link->closing && !link->handles && link->state == PG_CLOSED)
        link->on_closed(link);
}

static void on_socket_closed(uv_handle_t *handle)
{
    struct pg_socket *socket = container_of((uv_poll_t *)handle, struct pg_socket, poll);
    struct pg_link *link = socket->link;
    close(socket->fd);
    free(socket);
    link->handles--;
    maybe_closed(link);
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct pg_link *link = container_of((uv_timer_t *)handle, struct pg_link, timer);
    link->handles--;
    maybe_closed(link);
}

static void drop_connection(struct pg_link *link)
{
    uv_timer_stop(&link->timer);
    if (link->socket) {
        uv_poll_stop(&link->socket->poll);
        uv_close((uv_handle_t *)&link->socket->poll, on_socket_closed);
        link->socket = NULL;
    }
    PQclear(link->answer);
    link->answer = NULL;
    PQfinish(link->conn);
    link->conn = NULL;
    link->copies = link->in_rows = false;
}

/* ---- opening ---- */

static void open_work(struct work *work)
{
    struct pg_link *link = container_of(work, struct pg_link, work);
    if (work_may_continue(work))
        link->conn = pg_connect(link->options, work, &link->hello, &link->why);
}

static void after_open(struct work *work);

static void begin_opening(struct pg_link *link)
{
    link->state = PG_OPENING;
    link->work.run = open_work;
    link->work.done = after_open;
    work_begin(link->loop, &link->work, WORK_CONNECT);
}

static void on_timer(uv_timer_t *timer);

/* Waits for at least half of the back-off, and a random part of the other half.
 *
 * Gateways that were cut off together thus do not reconnect together. */
static void wait_and_open(struct pg_link *link)
{
    unsigned doublings = link->tries < DOUBLINGS_MAX ? link->tries : DOUBLINGS_MAX;
    uint64_t most = (uint64_t)BACK_OFF_FIRST_MS << doublings;
    uint64_t limit = link->back_off_max_ms ? link->back_off_max_ms : BACK_OFF_MAX_MS;
    most = most > limit ? limit : most;
    link->tries++;
    link->state = PG_WAITING;
    uv_timer_start(&link->timer, on_timer, most / 2 + uv_hrtime() / 1000 % (most / 2), 0);
}

static void on_poll(uv_poll_t *poll, int status, int what);

static bool begin_polling(struct pg_link *link)
{
    int fd = dup(PQsocket(link->conn));
    if (fd < 0)
        return false;
    struct pg_socket *socket = mem_new(struct pg_socket);
    socket->link = link;
    socket->fd = fd;
    if (uv_poll_init(link->loop, &socket->poll, fd)) {
        close(fd);
        free(socket);
        return false;
    }
    link->handles++;
    link->socket = socket;
    return uv_poll_start(&socket->poll, UV_READABLE, on_poll) == 0;
}

static bool take_connection(struct pg_link *link)
{
    return PQsetnonblocking(link->conn, 1) == 0 &&
           (!link->reads || PQenterPipelineMode(link->conn)) && begin_polling(link);
}

static void after_open(struct work *work)
{
    struct pg_link *link = container_of(work, struct pg_link, work);
    if (link->closing) {
        drop_connection(link);
        link->state = PG_CLOSED;
        maybe_closed(link);
    } else if (link->conn && take_connection(link)) {
        link->state = PG_IDLE;
        link->on_ready(link);
    } else {
        if (!link->conn && link->tries < 2)
            log_warn("cannot connect to the database; retrying", "reason", link->why.text,
                     NULL);
        drop_connection(link);
        wait_and_open(link);
    }
}

/* ---- statements ---- */

static void lose(struct pg_link *link, const char *reason)
{
    bool was_busy = link->state == PG_BUSY;
    log_warn("connection to the database lost", "reason", reason, NULL);
    drop_connection(link);
    wait_and_open(link);
    link->on_lost(link, was_busy);
}

static void lose_by_libpq(struct pg_link *link)
{
    char reason[PG_REASON_MAX];
    pg_reason(reason, PQerrorMessage(link->conn));
    lose(link, reason);
}

static void on_timer(uv_timer_t *timer)
{
    struct pg_link *link = container_of(timer, struct pg_link, timer);
    uv_timer_stop(timer);
    if (link->state == PG_WAITING)
        begin_opening(link);
    else
        lose(link, "timed out");
}

/* The rest is written when the socket is writable. */
static void flush(struct pg_link *link)
{
    int left = PQflush(link->conn);
    if (left < 0)
        lose_by_libpq(link);
    else
        uv_poll_start(&link->socket->poll, left ? UV_READABLE | UV_WRITABLE : UV_READABLE,
                      on_poll);
}

static void answer(struct pg_link *link)
{
    PGresult *result = link->answer;
    uv_timer_stop(&link->timer);
    if (link->copies && !PQenterPipelineMode(link->conn)) {
        lose_by_libpq(link);
        return;
    }
    link->copies = false;
    link->answer = NULL;
    link->state = PG_IDLE;
    link->tries = 0;
    link->on_answer(link, result);
}

/* Keeps the last of several results, or the first that is an error. */
static void keep(struct pg_link *link, PGresult *result)
{
    if (PQresultStatus(link->answer) == PGRES_FATAL_ERROR && link->answer) {
        PQclear(result);
        return;
    }
    PQclear(link->answer);
    link->answer = result;
}

static bool is_piped(const struct pg_link *link)
{
    return link->reads && !link->copies;
}

/* Reads the results that have arrived. */
static void collect(struct pg_link *link)
{
    while (link->state == PG_BUSY && !link->in_rows && !PQisBusy(link->conn)) {
        PGresult *result = PQgetResult(link->conn);
        bool at_end = is_piped(link)
                          ? PQresultStatus(result) == PGRES_PIPELINE_SYNC && result
                          : !result;
        if (PQstatus(link->conn) != CONNECTION_OK) {
            PQclear(result);
            lose_by_libpq(link);
            return;
        }
        if (at_end) {
            PQclear(result);
            answer(link);
            return;
        }
        if (PQresultStatus(result) == PGRES_COPY_IN ||
            PQresultStatus(result) == PGRES_COPY_BOTH) {
            PQclear(result);
            lose(link, "it asks for rows that are never sent");
            return;
        }
        link->in_rows = PQresultStatus(result) == PGRES_COPY_OUT;
        if (result)
            keep(link, result);
    }
}

/* Rows of a COPY go to the owner, who may pause; results before and after them do not. */
static void give(struct pg_link *link)
{
    collect(link);
    if (!link->in_rows)
        return;
    link->on_rows(link);
    collect(link);
}

static void report_notified(struct pg_link *link)
{
    for (PGnotify *one; (one = PQnotifies(link->conn)); PQfreemem(one))
        if (link->on_notified)
            link->on_notified(link, one->extra);
}

static void fill(struct pg_link *link)
{
    if (!PQconsumeInput(link->conn)) {
        lose_by_libpq(link);
        return;
    }
    report_notified(link);
    give(link);
}

static void on_poll(uv_poll_t *poll, int status, int what)
{
    struct pg_link *link = container_of(poll, struct pg_socket, poll)->link;
    if (status < 0) {
        if (PQconsumeInput(link->conn))
            lose(link, "the socket failed");
        else
            lose_by_libpq(link); /* libpq knows the reason */
        return;
    }
    if (what & UV_WRITABLE)
        flush(link);
    if (what & UV_READABLE && (link->state == PG_IDLE || link->state == PG_BUSY)) {
        link->last_received_ms = uv_now(link->loop);
        if (uv_is_active((uv_handle_t *)&link->timer))
            uv_timer_again(&link->timer); /* a long result may take its time */
        fill(link);
    }
}

static bool send_params(struct pg_link *link, const char *sql,
                        const struct pg_params *params)
{
    size_t count = params->count;
    Oid *types = mem_new_array(Oid, count);
    const char **values = mem_new_array(const char *, count);
    int *lens = mem_new_array(int, count), *formats = mem_new_array(int, count);
    for (size_t i = 0; i < count; i++) {
        types[i] = params->items[i].type;
        values[i] = pg_param_value(params, i);
        lens[i] = (int)params->items[i].len;
        formats[i] = params->items[i].type != PG_TEXT;
    }
    bool sent = PQsendQueryParams(link->conn, sql, (int)count, types, values, lens, formats,
                                  1) == 1;
    free(types);
    free(values);
    free(lens);
    free(formats);
    return sent;
}

/* Sets limits and tables for this transaction alone.
 *
 * So nothing is left in a connection that a pooler gives to another client next. */
static bool send_limits(struct pg_link *link, const struct pg_statement *statement)
{
    struct pg_params params = { 0 };
    char stop[24], lock[24];
    snprintf(stop, sizeof(stop), "%lld", (long long)statement->stop_ms);
    snprintf(lock, sizeof(lock), "%lld", (long long)statement->lock_ms);
    pg_param_text(&params, stop);
    pg_param_text(&params, lock);
    pg_param_text(&params, pg_schema_name(link->options));
    bool sent = send_params(link,
                            "SELECT set_config('statement_timeout', $1, true),"
                            " set_config('lock_timeout', $2, true),"
                            " set_config('search_path', $3, true),"
                            " set_config('enable_seqscan', 'off', true),"
                            " set_config('jit', 'off', true)",
                            &params);
    pg_params_finish(&params);
    return sent;
}

void pg_link_send(struct pg_link *link, const struct pg_statement *statement)
{
    assert(link->state == PG_IDLE);
    link->state = PG_BUSY;
    bool sent = (!link->reads || send_limits(link, statement)) &&
                send_params(link, statement->sql, statement->params) &&
                (!link->reads || PQpipelineSync(link->conn) == 1);
    /* If libpq refuses to send, an expired deadline reports it at once. */
    if (statement->deadline_ms || !sent)
        uv_timer_start(&link->timer, on_timer, sent ? statement->deadline_ms : 0,
                       statement->deadline_ms);
    if (sent && PQflush(link->conn) > 0)
        uv_poll_start(&link->socket->poll, UV_READABLE | UV_WRITABLE, on_poll);
}

/* ---- COPY ---- */

/* libpq has no function with values for a COPY, and no COPY in a pipeline. Limits and COPY
 * are one message, and therefore one transaction. */
void pg_link_copy(struct pg_link *link, const char *sql)
{
    assert(link->state == PG_IDLE && link->reads);
    link->state = PG_BUSY;
    link->copies = true;
    bool sent = PQexitPipelineMode(link->conn) == 1 && PQsendQuery(link->conn, sql) == 1;
    if (!sent)
        uv_timer_start(&link->timer, on_timer, 0, 0);
    else if (PQflush(link->conn) > 0)
        uv_poll_start(&link->socket->poll, UV_READABLE | UV_WRITABLE, on_poll);
}

struct slice pg_link_take_row(struct pg_link *link)
{
    char *row = NULL;
    int len = link->in_rows ? PQgetCopyData(link->conn, &row, 1) : 0;
    link->in_rows &= len >= 0; /* the next result is an error if rows are missing */
    return (struct slice){ row, len > 0 ? (size_t)len : 0 };
}

void pg_link_pause(struct pg_link *link)
{
    uv_poll_stop(&link->socket->poll);
}

void pg_link_resume(struct pg_link *link)
{
    uv_poll_start(&link->socket->poll, UV_READABLE, on_poll);
    give(link);
}

/* ---- beginning and ending ---- */

void pg_link_begin(struct pg_link *link)
{
    uv_timer_init(link->loop, &link->timer);
    link->handles = 1;
    if (link->conn && take_connection(link)) {
        link->state = PG_IDLE;
        return;
    }
    drop_connection(link);
    begin_opening(link);
}

void pg_link_reopen(struct pg_link *link)
{
    drop_connection(link);
    wait_and_open(link);
}

void pg_link_close(struct pg_link *link)
{
    link->closing = true;
    uv_timer_stop(&link->timer);
    uv_close((uv_handle_t *)&link->timer, on_timer_closed);
    if (link->state == PG_OPENING) {
        work_stop(&link->work); /* after_open ends it */
        return;
    }
    drop_connection(link);
    link->state = PG_CLOSED;
}
