/* answer.h - parses a server's bytes into a response; private to client, no sockets.
 *
 *   answer_feed:  1xx … ─► ANSWER_HEAD ─► on_piece … ─► ANSWER_WHOLE
 *   answer_end:   the connection has closed, which also ends a body without a length
 *
 * The head is collected line by line, within limits. A response whose end is ambiguous is
 * rejected before llhttp reads it, so the result does not depend on how the bytes were
 * split. */
#pragma once

#include <llhttp.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/list.h"
#include "net/http/http.h"

enum { ANSWER_HEADERS_MAX = 100, ANSWER_HEAD_MAX = 32 * 1024 };

enum answer_event {
    ANSWER_MORE,  /* all bytes were used, and more are needed */
    ANSWER_HEAD,  /* status and headers are known; once */
    ANSWER_WHOLE, /* remaining bytes do not belong to it */
    ANSWER_FAULT, /* answer->fault has the reason */
};

struct answer {
    /* Set by the owner, after answer_begin. */
    bool is_for_head; /* the request was HEAD: there is no body, whatever the headers say */
    bool may_upgrade; /* 101 is accepted as a response */
    void (*on_piece)(struct answer *answer, struct slice piece);

    int status;
    struct http_header headers[ANSWER_HEADERS_MAX]; /* borrowed from head */
    size_t header_count;
    bool head_done, whole;
    bool keeps_alive; /* the connection may carry another request after it */
    bool until_end;   /* the body ends when the connection does */
    bool begun;       /* a byte of it has arrived */
    const char *fault;

    llhttp_t parser;
    struct buf head;
    size_t line; /* where the last line begins in head */
    unsigned interims;
    size_t gap; /* bytes since the body's last one, or since the head */
    const char *gap_from;
    bool in_name;
};

/* Prepares for a new response, in zeroed memory or that of the previous one. */
void answer_begin(struct answer *answer);
void answer_finish(struct answer *answer);

enum answer_event answer_feed(struct answer *answer, struct slice *bytes);

/* Call this when the connection closes. ANSWER_FAULT without a fault: truncated. */
enum answer_event answer_end(struct answer *answer);

/* Returns the first value of that header, ignoring case; absent if there is none. */
struct slice answer_header(const struct answer *answer, const char *name);
