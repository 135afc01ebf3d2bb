/* job.h - what a fetch is while it is under way: what is to be sent of it, and what has come of
 * its answer; private to client, knows no connection.
 *
 *   head, body or file ─► job_next … job_advance ─► (the connection)
 *   (the connection) ─► job->answer ─► memory, or a buffer ─► file
 *
 * It outlives its connection by what the file still has to take. */
#pragma once

#include "base/rope.h"
#include "net/client/answer.h"
#include "net/client/deadline.h"
#include "net/client/fetch.h"
#include "net/client/transfer.h"
#include "net/client/url.h"

struct carrier;

enum job_state { JOB_HAS_BYTES, JOB_WAITS, JOB_IS_SENT, JOB_CANNOT };

struct job {
    struct fetch *fetch;
    struct loop *loop;
    struct fetcher *fetcher;
    struct carrier *carrier; /* that carries it; NULL: it waits, or the answer is here */
    struct list link;        // fetcher::jobs
    struct list waiting;     // fetcher::waiting, or none
    struct deadline total;
    int64_t first_byte_ms, silence_ms;

    struct buf head;    /* and a short body */
    struct bytes *body; /* NULL: none, or a file */
    size_t sent;        /* bytes of head and body */
    struct rope_place place;
    bool uploads;
    struct transfer upload;
    size_t upload_sent;   /* of what is in its buffer */
    uint64_t upload_left; /* bytes of the file that are not sent */
    uint64_t upload_len;
    bool upload_stale; /* what is being read has to be read again, from the beginning */
    bool sent_some;    /* the kernel has taken a byte, on whatever connection */
    bool is_idempotent;
    bool is_again; /* sent for the second time */

    struct answer answer;
    uint64_t answer_max, memory_max;
    uint64_t taken; /* bytes of the body of the answer */
    struct buf memory;
    bool downloads; /* the body of this answer goes to the file */
    struct transfer download;
    struct buf unwritten; /* what the file takes next */

    bool whole;         /* nothing more comes; a file may still have to take it */
    bool ended;         /* the outcome is known */
    struct failure why; /* code: the outcome, or what has gone wrong so far */
    struct deferred over;
    void (*on_moved)(struct job *job); /* a file has given or taken something */
    void (*on_over)(struct job *job);  /* the outcome can be told */
};

/* With the request as it is sent. */
enum err job_create(struct loop *loop, const struct url *url, struct fetch *fetch,
                    struct job **job, struct failure *why);

/* Nothing of it is under way. */
void job_destroy(struct job *job);

/* Bytes that are to be sent next; they are there until the next call. JOB_CANNOT: job->why. */
enum job_state job_next(struct job *job, struct slice *bytes);
void job_advance(struct job *job, size_t len);

/* Everything is to be sent again, and nothing was answered. */
void job_rewind(struct job *job);

/* Feeds the answer. ANSWER_FAULT: job->why says why. */
enum answer_event job_hear(struct job *job, struct slice *bytes);
enum answer_event job_hear_end(struct job *job);

/* The file takes what it is given too slowly: nothing more should come. */
bool job_is_full(const struct job *job);

/* The answer is whole: the outcome follows when a file has taken it. */
void job_complete(struct job *job);

/* The outcome; the first one counts. on_over follows, later. */
void job_end(struct job *job, enum err error, const char *why);

/* Fills in the outcome and calls done, behind which the fetch may be gone. The job is freed. */
void job_tell(struct job *job);
