/* http_request.h - one request while it is received; private to http.
 *
 * llhttp parses the bytes in place: the head is appended to one buffer, and its parts are
 * offsets until it is complete. A fault is found at the same byte, however the bytes were
 * split into reads: the head is fed line by line, the target no further than its limit, and
 * a line is checked once its end has arrived. */
#pragma once

#include <llhttp.h>

#include "base/list.h"
#include "net/http/http.h"
#include "net/http/http_check.h"

struct http_conn;
struct server;

struct span {
    uint32_t at, len; /* in request::head */
};

struct header_field {
    struct span name, value;
};

struct request {
    struct exchange x;
    struct http_conn *conn;
    llhttp_t parser;
    struct http_fault fault;

    struct buf head;
    struct buf body;
    size_t line; /* where the head's current line begins */
    struct span target;
    struct header_field *fields;
    struct http_header *headers; /* as many as fields */
    unsigned field_count, field_capacity;
    bool first_line, in_target, in_name;

    bool head_done, complete;
    bool in_trailers, line_begins; /* after the last chunk; at the start of a line there */
    bool http10, keep_alive, expects_continue;
    bool offered;   /* on_head was called: the handler must reply */
    bool is_late;   /* it was offered after server_note_late */
    bool streaming; /* its response has begun */
    bool early;     /* replied to on behalf of the handler, whose own reply is still due */
    bool sized;     /* with a content-length: treated like any response */
    bool reply_chunked, reply_keeps;
    uint64_t length;    /* announced length of the body */
    size_t body_taken;  /* from x.body_quota; given back at the end */
    size_t chunk_extra; /* bytes of chunk extensions and trailers */
    char too_large[72]; /* text of a 413 */
    size_t window_len;  /* x.body_len when the deadline was set */
    int64_t complete_ns;
    struct list link; // server::requests
};

/* Returns a request from the pool, or a new one. */
struct request *request_take(struct server *server);
void request_give_back(struct server *server, struct request *request);
void request_destroy(struct request *request);

/* Takes bytes of the head, at least one, and returns how many. Check fault and head_done
 * after it. */
size_t request_feed_head(struct request *request, struct slice bytes);

/* The same for the body; check fault and complete. Pieces are passed to the handler. */
size_t request_feed_body(struct request *request, struct slice bytes);

/* Returns the error for a body above the call's limit. */
struct http_fault request_too_large(struct request *request);

/* Fills in the exchange from the head. Returns a fault if the request must be rejected. */
struct http_fault request_check(struct request *request);
