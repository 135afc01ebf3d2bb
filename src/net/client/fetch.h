/* fetch.h - one request to a server and its answer.
 *
 *   fetch_begin ─► (waits for a connection) ─► sent ─► answered ─► done, once
 *
 * The caller embeds it, fills in the request and finds the outcome in it: whole in memory, or
 * in a file. Redirects are an answer like others. What it sent on a connection that was used
 * before, and that closes before any byte of an answer, goes out once more on a new one, if
 * it may be sent twice or nothing of it has been sent. */
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "net/http/http.h"

struct fetch;
struct fetcher;
struct job;

typedef void fetch_done_fn(struct fetch *fetch);

/* A part of a request or an answer that is a file, from its beginning. */
struct fetch_file {
    bool used;
    int fd;       /* the caller's; read or written until done, off the loop */
    uint64_t len; /* bytes to send */
};

/* Zero values mean the defaults. */
struct fetch {
    /* The request; borrowed for the call of fetch_begin. */
    const char *method;  /* default GET */
    struct slice target; /* "/path?query", behind the path of the fetcher's URL */
    const struct http_header *headers; /* not those that say where a message ends */
    size_t header_count;
    struct bytes *body;       /* a reference is taken; NULL: none */
    struct fetch_file upload; /* instead of a body */
    bool idempotent; /* may be sent twice; GET, HEAD, PUT, DELETE and OPTIONS may */

    /* Where the body of an answer 2xx goes; the others, which say what is wrong, come in
     * memory, up to 1 MiB of them. */
    struct fetch_file download;
    uint64_t answer_max;   /* bytes of the body; default 1 MiB in memory, 1 GiB in a file */
    int64_t first_byte_ms; /* from the end of the request to the answer; default 30 s */
    int64_t silence_ms;    /* without a byte in the middle of either; default 30 s */
    int64_t total_ms;      /* from fetch_begin on; default 15 minutes */

    fetch_done_fn *done; /* last: it may free the fetch, begin another, close the fetcher */

    /* The outcome, for done; what it refers to is there until done returns. The error is
     * ERR_UNREACHABLE, ERR_UNTRUSTED, ERR_LOST, ERR_BAD_ANSWER, ERR_NO_ANSWER (in time),
     * ERR_TOO_LARGE, ERR_STORE or ERR_STORE_FULL (files), or ERR_CANCELED. */
    enum err error;
    const char *why;      /* for an operator, without anything of the request; NULL: OK */
    int status;           /* 0 with an error */
    struct bytes *answer; /* take a reference to keep it; NULL: it went to the file */
    uint64_t answer_len;  /* bytes of the body */

    struct job *job; /* the fetcher's */
};

/* ERR_INVALID: a part of the request is not well-formed; ERR_BUSY: too many wait already;
 * ERR_DRAINING: the fetcher closes. Then done never comes. */
enum err fetch_begin(struct fetcher *fetcher, struct fetch *fetch, struct failure *why);

/* done comes soon, with ERR_CANCELED unless the outcome is known already. Between
 * fetch_begin and done only. */
void fetch_cancel(struct fetch *fetch);

/* In done: the first header of that name, without regard to case; absent when there is none.
 */
struct slice fetch_header(const struct fetch *fetch, const char *name);
