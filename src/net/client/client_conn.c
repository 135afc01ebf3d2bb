/* client_conn.c - sends and receives at the same time: a server may respond before a
 * request ends. */
#include "net/client/client_conn.h"

static struct client_conn *of(struct channel *channel)
{
    return container_of(channel, struct client_conn, channel);
}

static void put_off(struct client_conn *client_conn)
{
    client_conn->job->client_conn = NULL;
    client_conn->job = NULL;
}

void client_conn_close(struct client_conn *client_conn)
{
    if (client_conn->job)
        put_off(client_conn);
    client_conn->is_closing = true;
    deadline_clear(client_conn->loop, &client_conn->deadline);
    channel_close(&client_conn->channel);
}

/* Takes the job off the connection. After on_off it is gone, or on another one. */
static void settle(struct client_conn *client_conn, bool stays, enum err error,
                   const char *why)
{
    struct job *job = client_conn->job;
    put_off(client_conn);
    if (stays) {
        deadline_set(client_conn->loop, &client_conn->deadline, client_conn->idle_ms);
        channel_pause(&client_conn->channel, false);
    } else {
        client_conn_close(client_conn);
    }
    client_conn->ops->on_off(client_conn, job, error, why);
    client_conn->is_used = true;
}

static void fail_with(struct client_conn *client_conn, enum err error, const char *why)
{
    settle(client_conn, false, error, why);
}

static void fail_job(struct client_conn *client_conn)
{
    fail_with(client_conn, client_conn->job->why.code, client_conn->job->why.text);
}

/* ---- sending ---- */

static void await(struct client_conn *client_conn)
{
    const struct job *job = client_conn->job;
    bool first = client_conn->is_sent && !job->answer.begun;
    deadline_set(client_conn->loop, &client_conn->deadline,
                 first ? job->first_byte_ms : job->silence_ms);
}

static void send_some(struct client_conn *client_conn)
{
    struct timeslice timeslice = loop_timeslice(client_conn->loop);
    struct job *job = client_conn->job;
    while (!client_conn->is_sent && timeslice_left(&timeslice)) {
        struct slice bytes;
        enum job_state state = job_next(job, &bytes);
        if (state == JOB_CANNOT) {
            fail_job(client_conn);
            return;
        }
        if (state == JOB_WAITS) { /* for a disk: the server gets more time */
            deadline_clear(client_conn->loop, &client_conn->deadline);
            return;
        }
        if (state == JOB_IS_SENT) {
            client_conn->is_sent = true;
            await(client_conn);
            return;
        }
        size_t len = channel_write(&client_conn->channel, bytes);
        job_advance(job, len);
        if (len)
            await(client_conn);
        if (len < bytes.len)
            return;
    }
    if (!client_conn->is_sent)
        channel_write_later(&client_conn->channel);
}

static void on_writable(struct channel *channel)
{
    struct client_conn *client_conn = of(channel);
    if (client_conn->job && !client_conn->is_sent)
        send_some(client_conn);
}

static void client_conn_begin(struct client_conn *client_conn)
{
    client_conn->is_sent = false;
    await(client_conn);
    send_some(client_conn);
}

static void on_open(struct channel *channel)
{
    client_conn_begin(of(channel));
}

void client_conn_send(struct client_conn *client_conn, struct job *job)
{
    client_conn->job = job;
    job->client_conn = client_conn;
    client_conn_begin(client_conn);
}

/* ---- receiving ---- */

/* Pauses reading, and the deadline, while the disk is slower than the server. */
static void pace(struct client_conn *client_conn)
{
    bool full = job_is_full(client_conn->job);
    channel_pause(&client_conn->channel, full);
    if (full)
        deadline_clear(client_conn->loop, &client_conn->deadline);
    else
        await(client_conn);
}

static void take_whole(struct client_conn *client_conn, bool is_last)
{
    const struct answer *answer = &client_conn->job->answer;
    bool stays = answer->keeps_alive && client_conn->is_sent && !is_last;
    settle(client_conn, stays, OK, "");
}

/* Bytes on an idle connection are unexpected: they would look like the next response. */
static void on_bytes(struct channel *channel, struct slice bytes)
{
    struct client_conn *client_conn = of(channel);
    enum answer_event event = ANSWER_HEAD;
    if (!client_conn->job) {
        client_conn_close(client_conn);
        return;
    }
    while (event == ANSWER_HEAD)
        event = job_receive(client_conn->job, &bytes);
    if (event == ANSWER_FAULT) {
        fail_job(client_conn);
    } else if (event == ANSWER_WHOLE) {
        take_whole(client_conn, bytes.len > 0);
    } else {
        pace(client_conn);
    }
}

void client_conn_resume(struct client_conn *client_conn)
{
    if (client_conn->job->why.code) {
        fail_job(client_conn);
        return;
    }
    if (client_conn->channel.state != CHANNEL_OPEN)
        return;
    pace(client_conn);
    if (!client_conn->is_sent)
        channel_write_later(&client_conn->channel);
}

static void on_end(struct channel *channel, enum err error)
{
    struct client_conn *client_conn = of(channel);
    if (!client_conn->job)
        client_conn_close(client_conn);
    else if (error)
        fail_with(client_conn, error, channel->why.text);
    else if (job_receive_end(client_conn->job) == ANSWER_WHOLE)
        take_whole(client_conn, true);
    else
        fail_job(client_conn);
}

static void on_deadline(struct deadline *deadline)
{
    struct client_conn *client_conn = container_of(deadline, struct client_conn, deadline);
    if (!client_conn->job)
        client_conn_close(client_conn);
    else if (!client_conn->is_sent)
        fail_with(client_conn, ERR_NO_ANSWER, "timed out while sending the request");
    else if (!client_conn->job->answer.begun)
        fail_with(client_conn, ERR_NO_ANSWER, "timed out while waiting for the response");
    else
        fail_with(client_conn, ERR_NO_ANSWER, "timed out in the middle of the response");
}

static void on_closed(struct channel *channel)
{
    struct client_conn *client_conn = of(channel);
    client_conn->ops->on_gone(client_conn);
}

static const struct channel_ops channel_ops = {
    .on_open = on_open,
    .on_bytes = on_bytes,
    .on_writable = on_writable,
    .on_end = on_end,
    .on_closed = on_closed,
};

void client_conn_open(struct client_conn *client_conn,
                      const struct channel_options *options,
                      const struct client_conn_ops *ops, struct job *job)
{
    client_conn->loop = options->loop;
    client_conn->ops = ops;
    client_conn->deadline.fn = on_deadline;
    client_conn->job = job;
    job->client_conn = client_conn;
    list_init(&client_conn->link);
    channel_init(&client_conn->channel, options, &channel_ops);
    channel_open(&client_conn->channel);
}
