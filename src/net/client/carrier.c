/* carrier.c - sends and receives at once, as a server may respond before a request ends. */
#include "net/client/carrier.h"

static struct carrier *of(struct channel *channel)
{
    return container_of(channel, struct carrier, channel);
}

static void put_off(struct carrier *carrier)
{
    carrier->job->carrier = NULL;
    carrier->job = NULL;
}

void carrier_close(struct carrier *carrier)
{
    if (carrier->job)
        put_off(carrier);
    carrier->is_closing = true;
    deadline_clear(carrier->loop, &carrier->deadline);
    channel_close(&carrier->channel);
}

/* Takes the job off the connection. After on_off it is gone, or on another one. */
static void settle(struct carrier *carrier, bool stays, enum err error, const char *why)
{
    struct job *job = carrier->job;
    put_off(carrier);
    if (stays) {
        deadline_set(carrier->loop, &carrier->deadline, carrier->idle_ms);
        channel_pause(&carrier->channel, false);
    } else {
        carrier_close(carrier);
    }
    carrier->ops->on_off(carrier, job, error, why);
    carrier->is_used = true;
}

static void fail_with(struct carrier *carrier, enum err error, const char *why)
{
    settle(carrier, false, error, why);
}

static void fail_job(struct carrier *carrier)
{
    fail_with(carrier, carrier->job->why.code, carrier->job->why.text);
}

/* ---- sending ---- */

static void await(struct carrier *carrier)
{
    const struct job *job = carrier->job;
    bool first = carrier->is_sent && !job->answer.begun;
    deadline_set(carrier->loop, &carrier->deadline,
                 first ? job->first_byte_ms : job->silence_ms);
}

static void send_some(struct carrier *carrier)
{
    struct stint stint = loop_stint(carrier->loop);
    struct job *job = carrier->job;
    while (!carrier->is_sent && stint_goes_on(&stint)) {
        struct slice bytes;
        enum job_state state = job_next(job, &bytes);
        if (state == JOB_CANNOT) {
            fail_job(carrier);
            return;
        }
        if (state == JOB_WAITS) { /* for a disk: the server gets more time */
            deadline_clear(carrier->loop, &carrier->deadline);
            return;
        }
        if (state == JOB_IS_SENT) {
            carrier->is_sent = true;
            await(carrier);
            return;
        }
        size_t len = channel_write(&carrier->channel, bytes);
        job_advance(job, len);
        if (len)
            await(carrier);
        if (len < bytes.len)
            return;
    }
    if (!carrier->is_sent)
        channel_write_later(&carrier->channel);
}

static void on_writable(struct channel *channel)
{
    struct carrier *carrier = of(channel);
    if (carrier->job && !carrier->is_sent)
        send_some(carrier);
}

static void carrier_begin(struct carrier *carrier)
{
    carrier->is_sent = false;
    await(carrier);
    send_some(carrier);
}

static void on_open(struct channel *channel)
{
    carrier_begin(of(channel));
}

void carrier_carry(struct carrier *carrier, struct job *job)
{
    carrier->job = job;
    job->carrier = carrier;
    carrier_begin(carrier);
}

/* ---- receiving ---- */

/* Pauses reading, and the deadline, while the disk is slower than the server. */
static void pace(struct carrier *carrier)
{
    bool full = job_is_full(carrier->job);
    channel_pause(&carrier->channel, full);
    if (full)
        deadline_clear(carrier->loop, &carrier->deadline);
    else
        await(carrier);
}

static void take_whole(struct carrier *carrier, bool is_last)
{
    const struct answer *answer = &carrier->job->answer;
    bool stays = answer->keeps_alive && carrier->is_sent && !is_last;
    settle(carrier, stays, OK, "");
}

/* Bytes on an idle connection are unexpected: they would look like the next response. */
static void on_bytes(struct channel *channel, struct slice bytes)
{
    struct carrier *carrier = of(channel);
    enum answer_event event = ANSWER_HEAD;
    if (!carrier->job) {
        carrier_close(carrier);
        return;
    }
    while (event == ANSWER_HEAD)
        event = job_hear(carrier->job, &bytes);
    if (event == ANSWER_FAULT) {
        fail_job(carrier);
    } else if (event == ANSWER_WHOLE) {
        take_whole(carrier, bytes.len > 0);
    } else {
        pace(carrier);
    }
}

void carrier_go_on(struct carrier *carrier)
{
    if (carrier->job->why.code) {
        fail_job(carrier);
        return;
    }
    if (carrier->channel.state != CHANNEL_OPEN)
        return;
    pace(carrier);
    if (!carrier->is_sent)
        channel_write_later(&carrier->channel);
}

static void on_end(struct channel *channel, enum err error)
{
    struct carrier *carrier = of(channel);
    if (!carrier->job)
        carrier_close(carrier);
    else if (error)
        fail_with(carrier, error, channel->why.text);
    else if (job_hear_end(carrier->job) == ANSWER_WHOLE)
        take_whole(carrier, true);
    else
        fail_job(carrier);
}

static void on_deadline(struct deadline *deadline)
{
    struct carrier *carrier = container_of(deadline, struct carrier, deadline);
    if (!carrier->job)
        carrier_close(carrier);
    else if (!carrier->is_sent)
        fail_with(carrier, ERR_NO_ANSWER, "timed out while sending the request");
    else if (!carrier->job->answer.begun)
        fail_with(carrier, ERR_NO_ANSWER, "timed out while waiting for the response");
    else
        fail_with(carrier, ERR_NO_ANSWER, "timed out in the middle of the response");
}

static void on_closed(struct channel *channel)
{
    struct carrier *carrier = of(channel);
    carrier->ops->on_gone(carrier);
}

static const struct channel_ops channel_ops = {
    .on_open = on_open,
    .on_bytes = on_bytes,
    .on_writable = on_writable,
    .on_end = on_end,
    .on_closed = on_closed,
};

void carrier_open(struct carrier *carrier, const struct channel_options *options,
                  const struct carrier_ops *ops, struct job *job)
{
    carrier->loop = options->loop;
    carrier->ops = ops;
    carrier->deadline.fn = on_deadline;
    carrier->job = job;
    job->carrier = carrier;
    list_init(&carrier->link);
    channel_open(&carrier->channel, options, &channel_ops);
}
