/* fetch.h - one request to a server and its response.
 *
 *   fetch_begin ─► (waits for a connection) ─► sent ─► response ─► done, once
 *
 * The caller embeds a struct fetch, fills in the request and finds the outcome there, with
 * the body in memory or in a file. Redirects are not followed. A request is sent once more,
 * on a new connection, if it went over a reused connection that closed before any byte of
 * the response; but only if the request may be sent twice, or none of it was sent. */
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "net/http/http.h"

struct fetch;
struct fetcher;
struct job;

typedef void fetch_done_fn(struct fetch *fetch);

/* A body in a file, from the beginning of the file. */
struct fetch_file {
    bool used;
    int fd;       /* the caller's; read or written until done, off the loop */
    uint64_t len; /* bytes to send */
};

/* Zero values mean the defaults. */
struct fetch {
    /* The request; borrowed during fetch_begin. */
    const char *method;  /* default GET */
    struct slice target; /* "/path?query", appended to the path of the fetcher's URL */
    const struct http_header *headers; /* without those that frame the message */
    size_t header_count;
    struct bytes *body;       /* a reference is taken; NULL: none */
    struct fetch_file upload; /* instead of a body */
    bool idempotent; /* may be sent twice, as GET, HEAD, PUT, DELETE and OPTIONS may */

    /* Where the body of a 2xx response goes. Other bodies, which explain an error, stay in
     * memory, up to 1 MiB. */
    struct fetch_file download;
    uint64_t answer_max;   /* bytes of the body; default 1 MiB in memory, 1 GiB in a file */
    int64_t first_byte_ms; /* from the end of the request to the response; default 30 s */
    int64_t silence_ms;    /* without a byte during either; default 30 s */
    int64_t total_ms;      /* from fetch_begin; default 15 minutes */

    fetch_done_fn *done; /* last: may free the fetch, begin another, close the fetcher */

    /* The outcome, for done; valid until done returns. error is ERR_UNREACHABLE,
     * ERR_UNTRUSTED, ERR_LOST, ERR_BAD_ANSWER, ERR_NO_ANSWER (timeout), ERR_TOO_LARGE,
     * ERR_STORE or ERR_STORE_FULL (files), or ERR_CANCELED. */
    enum err error;
    const char *why;      /* for an operator, without any part of the request; NULL: OK */
    int status;           /* 0 with an error */
    struct bytes *answer; /* take a reference to keep it; NULL: it is in the file */
    uint64_t answer_len;  /* length of the body */

    struct job *job; /* belongs to the fetcher */
};

/* ERR_INVALID: malformed request. ERR_BUSY: too many requests wait already. ERR_DRAINING:
 * the fetcher is closing. After an error, done is not called. */
enum err fetch_begin(struct fetcher *fetcher, struct fetch *fetch, struct failure *why);

/* Makes done be called soon, with ERR_CANCELED unless the outcome is known already. Call it
 * only between fetch_begin and done. */
void fetch_cancel(struct fetch *fetch);

/* In done: returns the first header of that name, ignoring case; absent if missing. */
struct slice fetch_header(const struct fetch *fetch, const char *name);
