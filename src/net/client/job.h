/* job.h - a fetch in progress, without its connection; private to client.
 *
 * It has the unsent part of the request and the received part of the response.
 *
 *   head, body or file ─► job_next … job_advance ─► (the connection)
 *   (the connection) ─► job->answer ─► memory, or a buffer ─► file
 *
 * It outlives its connection while data is still being written to a file. */
#pragma once

#include "base/rope.h"
#include "net/client/answer.h"
#include "net/client/deadline.h"
#include "net/client/fetch.h"
#include "net/client/transfer.h"
#include "net/client/url.h"

struct client_conn;

enum job_state { JOB_HAS_BYTES, JOB_WAITS, JOB_IS_SENT, JOB_CANNOT };

struct job {
    struct fetch *fetch;
    struct loop *loop;
    struct fetcher *fetcher;
    struct client_conn *client_conn; /* NULL: it waits, or has its response */
    struct list link;                // fetcher::jobs
    struct list waiting;             // fetcher::waiting, or none
    struct deadline total;
    int64_t first_byte_ms, silence_ms;

    struct buf head;    /* with a short body, if there is one */
    struct bytes *body; /* NULL: none, a short one, or a file */
    size_t sent;        /* bytes of head and body */
    struct rope_place place;
    bool uploads;
    struct transfer upload;
    size_t upload_sent;   /* of the bytes in its buffer */
    uint64_t upload_left; /* unsent bytes of the file */
    uint64_t upload_len;
    bool upload_stale; /* the read in progress must be repeated from the beginning */
    bool sent_some;    /* the kernel took a byte, on any connection */
    bool is_idempotent;
    bool is_again; /* it is sent for the second time */

    struct answer answer;
    uint64_t answer_max, memory_max;
    uint64_t taken; /* bytes of the response's body */
    struct buf memory;
    bool downloads; /* the body of this response goes to the file */
    struct transfer download;
    struct buf unwritten; /* the bytes to be written to the file next */

    bool whole;         /* everything has arrived; a file may not have all of it yet */
    bool ended;         /* the outcome is known */
    struct failure why; /* code: the outcome, or the first failure so far */
    struct deferred over;
    void (*on_moved)(struct job *job); /* a file was read or written */
    void (*on_over)(struct job *job);  /* the outcome can be reported */
};

/* Creates a job with the request in its final form. */
enum err job_create(struct loop *loop, const struct url *url, struct fetch *fetch,
                    struct job **job, struct failure *why);

/* No file operation may be in progress. */
void job_destroy(struct job *job);

/* Returns the bytes to send next; valid until the next call. JOB_CANNOT: job->why has the
 * reason. */
enum job_state job_next(struct job *job, struct slice *bytes);
void job_advance(struct job *job, size_t len);

/* Prepares for sending everything again. No byte of a response may have arrived. */
void job_rewind(struct job *job);

/* Parses bytes of the response. ANSWER_FAULT: job->why has the reason. */
enum answer_event job_receive(struct job *job, struct slice *bytes);
enum answer_event job_receive_end(struct job *job);

/* Returns true if the file is too slow to receive more. */
bool job_is_full(const struct job *job);

/* Call this when the response is complete; the outcome follows once a file has all of
 * it. */
void job_complete(struct job *job);

/* Sets the outcome; only the first call counts. on_over is called later. */
void job_end(struct job *job, enum err error, const char *why);

/* Fills in the outcome, frees the job, and calls done, which may free the fetch. */
void job_report(struct job *job);
