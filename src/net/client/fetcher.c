/* fetcher.c - assigns requests to connections, and retries requests.
 *
 * Requests are matched with connections once, at the end of a turn, in the order in which
 * they were made. A retried request comes first. */
#include "net/client/fetcher.h"

#include <errno.h>

#include "base/mem.h"
#include "net/client/client_conn.h"

enum {
    CONNECTIONS_MAX = 16,
    WAITING_MAX = 1000,
    CONNECT_MS = 10 * 1000,
    IDLE_MS = 30 * 1000,
};

static const int64_t total_ms = INT64_C(15) * 60 * 1000;

struct fetcher {
    struct loop *loop;
    struct url url;
    const struct trust *trust;
    unsigned connections_max, waiting_max;
    int64_t connect_ms, idle_ms;
    struct readiness readiness;

    struct list jobs;         // job::link; all that were not reported yet
    struct list waiting;      // job::waiting; those without a connection, in order
    struct list client_conns; // client_conn::link; also those that close
    unsigned waiting_count;
    struct deferred pump;
    bool closing;
    fetcher_closed_fn *closed;
    void *owner; /* argument of closed */
};

static void pump_later(struct fetcher *fetcher)
{
    loop_defer(fetcher->loop, &fetcher->pump);
}

/* ---- requests in line ---- */

static void put_in_line(struct fetcher *fetcher, struct job *job, struct list *before)
{
    list_append(before, &job->waiting);
    fetcher->waiting_count++;
    pump_later(fetcher);
}

static void leave_line(struct fetcher *fetcher, struct job *job)
{
    if (list_empty(&job->waiting))
        return;
    list_remove(&job->waiting);
    fetcher->waiting_count--;
}

/* ---- connections ---- */

unsigned fetcher_connections(const struct fetcher *fetcher)
{
    unsigned count = 0;
    list_each (link, &fetcher->client_conns)
        count += !container_of(link, struct client_conn, link)->is_closing;
    return count;
}

/* Finds the connection that has been idle for the shortest time, so that the others can
 * end. */
static struct client_conn *find_idle(struct fetcher *fetcher)
{
    list_each (link, &fetcher->client_conns) {
        struct client_conn *client_conn = container_of(link, struct client_conn, link);
        if (client_conn_is_idle(client_conn))
            return client_conn;
    }
    return NULL;
}

/* Returns true if the request may be sent again, on a new connection, because the server
 * may have closed a reused one. */
static bool may_try_again(const struct client_conn *client_conn, const struct job *job,
                          enum err error)
{
    return error == ERR_LOST && client_conn->is_used && !job->is_again &&
           !job->answer.begun && (job->is_idempotent || !job->sent_some);
}

static void on_off(struct client_conn *client_conn, struct job *job, enum err error,
                   const char *why)
{
    struct fetcher *fetcher = client_conn->fetcher;
    list_remove(&client_conn->link);
    list_append(fetcher->client_conns.next, &client_conn->link);
    if (!error) {
        job_complete(job);
    } else if (may_try_again(client_conn, job, error)) {
        job->is_again = true;
        job_rewind(job);
        put_in_line(fetcher, job, fetcher->waiting.next);
    } else {
        job_end(job, error, why);
    }
    pump_later(fetcher);
}

static void on_gone(struct client_conn *client_conn)
{
    struct fetcher *fetcher = client_conn->fetcher;
    list_remove(&client_conn->link);
    free(client_conn);
    pump_later(fetcher);
}

static const struct client_conn_ops client_conn_ops = { on_off, on_gone };

static void open_client_conn(struct fetcher *fetcher, struct job *job)
{
    const struct channel_options options = {
        .loop = fetcher->loop,
        .readiness = &fetcher->readiness,
        .url = &fetcher->url,
        .trust = fetcher->trust,
        .connect_ms = fetcher->connect_ms,
    };
    struct client_conn *client_conn = mem_new(struct client_conn);
    client_conn->fetcher = fetcher;
    client_conn->idle_ms = fetcher->idle_ms;
    client_conn_open(client_conn, &options, &client_conn_ops, job);
    list_append(&fetcher->client_conns, &client_conn->link);
}

/* Returns false if no connection is available now. */
static bool dispatch(struct fetcher *fetcher, struct job *job)
{
    struct client_conn *idle = find_idle(fetcher);
    bool has_room = fetcher_connections(fetcher) < fetcher->connections_max;
    if (idle && !job->is_again) {
        leave_line(fetcher, job);
        client_conn_send(idle, job);
        return true;
    }
    if (!has_room && idle)
        client_conn_close(idle);
    else if (!has_room)
        return false;
    leave_line(fetcher, job);
    open_client_conn(fetcher, job);
    return true;
}

/* ---- the end of a fetcher ---- */

static void on_readiness_closed(uv_handle_t *handle)
{
    struct readiness *readiness =
        container_of((uv_poll_t *)handle, struct readiness, handle);
    struct fetcher *fetcher = container_of(readiness, struct fetcher, readiness);
    fetcher_closed_fn *closed = fetcher->closed;
    void *owner = fetcher->owner;
    free(fetcher);
    closed(owner);
}

static void maybe_closed(struct fetcher *fetcher)
{
    if (list_empty(&fetcher->jobs) && list_empty(&fetcher->client_conns))
        readiness_close(&fetcher->readiness, on_readiness_closed);
}

static void on_pump(struct deferred *deferred)
{
    struct fetcher *fetcher = container_of(deferred, struct fetcher, pump);
    if (fetcher->closing) {
        maybe_closed(fetcher);
        return;
    }
    struct timeslice timeslice = loop_timeslice(fetcher->loop);
    while (!list_empty(&fetcher->waiting)) {
        struct job *job = container_of(fetcher->waiting.next, struct job, waiting);
        if (!timeslice_left(&timeslice)) {
            pump_later(fetcher);
            return;
        }
        if (!dispatch(fetcher, job))
            return;
    }
}

static void end_job(struct job *job, enum err error, const char *why)
{
    leave_line(job->fetcher, job);
    if (job->client_conn)
        client_conn_close(job->client_conn);
    job_end(job, error, why);
    pump_later(job->fetcher);
}

void fetcher_close(struct fetcher *fetcher, fetcher_closed_fn *closed, void *owner)
{
    fetcher->closing = true;
    fetcher->closed = closed;
    fetcher->owner = owner;
    list_each (link, &fetcher->jobs)
        end_job(container_of(link, struct job, link), ERR_CANCELED,
                "the client is closing");
    list_each (link, &fetcher->client_conns)
        client_conn_close(container_of(link, struct client_conn, link));
    pump_later(fetcher);
}

/* ---- requests ---- */

/* Removes a job that has ended. done may close the fetcher; on_pump finds out later. */
static void on_over(struct job *job)
{
    pump_later(job->fetcher);
    list_remove(&job->link);
    job_report(job);
}

static void on_moved(struct job *job)
{
    if (job->client_conn)
        client_conn_resume(job->client_conn);
}

static void on_total(struct deadline *deadline)
{
    struct job *job = container_of(deadline, struct job, total);
    end_job(job, ERR_NO_ANSWER, "timed out before the end of the response");
}

enum err fetch_begin(struct fetcher *fetcher, struct fetch *fetch, struct failure *why)
{
    struct job *job;
    if (fetcher->closing)
        return explain(why, ERR_DRAINING, "the client is closing");
    if (fetcher->waiting_count >= fetcher->waiting_max)
        return explain(why, ERR_BUSY, "too many requests wait for a connection");
    enum err err = job_create(fetcher->loop, &fetcher->url, fetch, &job, why);
    if (err)
        return err;
    fetch->job = job;
    job->fetcher = fetcher;
    job->on_over = on_over;
    job->on_moved = on_moved;
    job->total.fn = on_total;
    deadline_set(fetcher->loop, &job->total, fetch->total_ms ? fetch->total_ms : total_ms);
    list_append(&fetcher->jobs, &job->link);
    put_in_line(fetcher, job, &fetcher->waiting);
    return OK;
}

void fetch_cancel(struct fetch *fetch)
{
    end_job(fetch->job, ERR_CANCELED, "canceled");
}

struct slice fetch_header(const struct fetch *fetch, const char *name)
{
    return answer_header(&fetch->job->answer, name);
}

/* ---- making ---- */

enum err fetcher_create(struct loop *loop, const struct fetcher_options *options,
                        struct fetcher **fetcher, struct failure *why)
{
    if (options->url->secure && !options->trust)
        return explain(why, ERR_INVALID, "a URL with TLS needs certificates to trust");
    struct fetcher *made = mem_new(struct fetcher);
    made->loop = loop;
    made->url = *options->url;
    made->trust = options->trust;
    made->connections_max =
        options->connections_max ? options->connections_max : CONNECTIONS_MAX;
    made->waiting_max = options->waiting_max ? options->waiting_max : WAITING_MAX;
    made->connect_ms = options->connect_ms ? options->connect_ms : CONNECT_MS;
    made->idle_ms = options->idle_ms ? options->idle_ms : IDLE_MS;
    made->pump.fn = on_pump;
    list_init(&made->jobs);
    list_init(&made->waiting);
    list_init(&made->client_conns);
    if (!readiness_init(&made->readiness, loop)) {
        explain(why, ERR_INTERNAL, "cannot watch sockets: %s", strerror(errno));
        free(made);
        return ERR_INTERNAL;
    }
    *fetcher = made;
    return OK;
}
