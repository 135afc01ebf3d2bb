/* answer.h - bytes of a server into an answer; private to client, no sockets.
 *
 *   answer_feed:  1xx … ─► ANSWER_HEAD ─► on_piece … ─► ANSWER_WHOLE
 *   answer_end:   the connection has ended: so has a body that lasts until then
 *
 * The head is collected line by line, within limits, and every doubt about where the answer
 * ends is refused, before llhttp reads it; so what comes out does not depend on how the
 * bytes were cut. */
#pragma once

#include <llhttp.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/list.h"
#include "net/http/http.h"

enum { ANSWER_HEADERS_MAX = 100, ANSWER_HEAD_MAX = 32 * 1024 };

enum answer_event {
    ANSWER_MORE,  /* all bytes are used, and more are needed */
    ANSWER_HEAD,  /* status and headers are known; once */
    ANSWER_WHOLE, /* bytes that are left are not part of it */
    ANSWER_FAULT, /* answer->fault says why */
};

struct answer {
    /* The owner's to set, behind answer_begin. */
    bool is_for_head; /* the request was HEAD: no body comes, whatever the headers say */
    bool may_upgrade; /* 101 is an answer like others */
    void (*on_piece)(struct answer *answer, struct slice piece);

    int status;
    struct http_header headers[ANSWER_HEADERS_MAX]; /* borrowed from head */
    size_t header_count;
    bool head_done, whole;
    bool keeps_alive; /* the connection may carry another request behind it */
    bool until_end;   /* the body ends with the connection */
    bool begun;       /* some byte of it has come */
    const char *fault;

    llhttp_t parser;
    struct buf head;
    size_t line; /* where the last line begins in head */
    unsigned interims;
    size_t gap; /* bytes since the last one of the body, or since the head */
    const char *gap_from;
    bool in_name;
};

/* For a new answer, in zeroed memory or in that of the one before. */
void answer_begin(struct answer *answer);
void answer_finish(struct answer *answer);

enum answer_event answer_feed(struct answer *answer, struct slice *bytes);

/* ANSWER_WHOLE or ANSWER_FAULT; a fault of NULL: the answer was cut off. */
enum answer_event answer_end(struct answer *answer);

/* The first value of that name, without regard to case; absent when there is none. */
struct slice answer_header(const struct answer *answer, const char *name);
