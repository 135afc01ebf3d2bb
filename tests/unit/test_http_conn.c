/* Bytes in, statuses out: the whole of HTTP/1.1 as one table.
 *
 * Every row is sent whole, byte by byte, and in two parts at every offset, over loopback
 * sockets; the answer must be the same, and before the last byte there must be none. */
#include "tests/support/unit.h"

#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "tests/support/net_world.h"

enum { BODY_LIMIT = 32, AT_ONCE = 100 };

struct deferred_reply {
    struct deferred deferred;
    struct exchange *x;
};

struct scene {
    struct net_world world;
};

static void say(struct exchange *x)
{
    static const char *const methods[] = { "GET",   "HEAD",   "POST",    "PUT",
                                           "PATCH", "DELETE", "OPTIONS", "OTHER" };
    struct buf out = { 0 };
    buf_print(&out, "%s %.*s", methods[x->method], SLICE_ARG(x->path));
    if (x->query.ptr)
        buf_print(&out, "?%.*s", SLICE_ARG(x->query));
    buf_print(&out, " host=%.*s body=%.*s x=%.*s", SLICE_ARG(http_header(x, "Host")),
              SLICE_ARG(x->body), SLICE_ARG(http_header(x, "x-one")));
    http_reply(x, 200, SLICE("content-type: text/plain\r\n"), buf_slice(&out));
    buf_finish(&out);
}

static void on_later(struct deferred *deferred)
{
    struct deferred_reply *reply = container_of(deferred, struct deferred_reply, deferred);
    say(reply->x);
    free(reply);
}

static void on_head(void *owner, struct exchange *x)
{
    (void)owner;
    x->body_limit = slice_is(x->path, "/none") ? 0 : BODY_LIMIT;
    x->stream_body = slice_is(x->path, "/pieces");
    if (slice_is(x->path, "/early"))
        http_reply_error(x, 401, "who are you?");
}

static void on_body(void *owner, struct exchange *x, struct slice piece)
{
    (void)owner;
    size_t *len = x->call ? x->call : mem_new(size_t);
    x->call = len;
    *len += piece.len;
}

static void reply_pieces(struct exchange *x)
{
    char text[40];
    size_t *len = x->call;
    snprintf(text, sizeof(text), "%zu in pieces", len ? *len : 0);
    free(len);
    http_reply(x, 200, (struct slice){ 0 }, slice_of(text));
}

static void reply_stream(struct exchange *x)
{
    http_stream_begin(x, 200, SLICE("content-type: text/event-stream\r\n"));
    http_stream_write(x, SLICE("one "));
    http_stream_write(x, SLICE("and two"));
    http_stream_end(x);
}

static void on_request(void *owner, struct exchange *x)
{
    struct scene *scene = owner;
    if (slice_is(x->path, "/later")) {
        struct deferred_reply *reply = mem_new(struct deferred_reply);
        reply->x = x;
        reply->deferred.fn = on_later;
        loop_defer(scene->world.loop, &reply->deferred);
    } else if (slice_is(x->path, "/pieces")) {
        reply_pieces(x);
    } else if (slice_is(x->path, "/stream")) {
        reply_stream(x);
    } else if (slice_is(x->path, "/204") || slice_is(x->path, "/304")) {
        http_reply(x, slice_is(x->path, "/204") ? 204 : 304, (struct slice){ 0 },
                   SLICE("never sent"));
    } else {
        say(x);
    }
}

/* The reply of an exchange that the peer has given up. */
static void on_gone(void *owner, struct exchange *x)
{
    (void)owner;
    free(x->call);
    x->call = NULL;
    if (!slice_is(x->path, "/later"))
        http_reply(x, 500, (struct slice){ 0 }, SLICE("nobody reads this"));
}

/* What is expected: the statuses in order; whether the connection ends. */
enum after { KEPT, CLOSED };

/* clang-format off */
static const struct row {
    const char *name, *bytes, *statuses;
    enum after after;
    const char *text; /* in the answer */
} rows[] = {
#define H "Host: a\r\n"
#define E "\r\n"
#define GET "GET / HTTP/1.1\r\n" H
#define POST "POST / HTTP/1.1\r\n" H
#define CHUNKED POST "Transfer-Encoding: chunked\r\n" E
    { "the smallest request", GET E, "200", KEPT, "GET / host=a body= x=" },
    { "a query", "GET /a%2Fb?c=d&e=%20 HTTP/1.1\r\n" H E, "200", KEPT,
      "GET /a%2Fb?c=d&e=%20 " },
    { "an empty query", "GET /a? HTTP/1.1\r\n" H E, "200", KEPT, "GET /a? " },
    { "two question marks", "GET /a?b?c HTTP/1.1\r\n" H E, "200", KEPT, "GET /a?b?c " },
    { "absolute form", "GET http://b.c:80/d?e HTTP/1.1\r\n" H E, "200", KEPT,
      "GET /d?e host=b.c:80 " },
    { "absolute form without a path", "GET HTTPS://b?e HTTP/1.1\r\n" H E, "200", KEPT,
      "GET /?e host=b " },
    { "PUT", "PUT / HTTP/1.1\r\n" H "Content-Length: 2\r\n" E "hi", "200", KEPT,
      "PUT / host=a body=hi " },
    { "PATCH", "PATCH / HTTP/1.1\r\n" H E, "200", KEPT, "PATCH" },
    { "DELETE", "DELETE / HTTP/1.1\r\n" H E, "200", KEPT, "DELETE" },
    { "OPTIONS", "OPTIONS /a HTTP/1.1\r\n" H E, "200", KEPT, "OPTIONS /a" },
    { "OPTIONS of the server", "OPTIONS * HTTP/1.1\r\n" H E, "200", KEPT, "OPTIONS *" },
    { "a rare method", "PROPFIND / HTTP/1.1\r\n" H E, "200", KEPT, "OTHER" },
    { "HEAD has no body", "HEAD / HTTP/1.1\r\n" H E, "200", KEPT,
      "content-length: 22\r\n\r\n" },
    { "204 has no body", "GET /204 HTTP/1.1\r\n" H E, "204", KEPT, "\r\n\r\n" },
    { "304 has no body", "GET /304 HTTP/1.1\r\n" H E, "304", KEPT, "\r\n\r\n" },
    { "header names have no case", "GET / HTTP/1.1\r\nhOST: q\r\n" E, "200", KEPT, "host=q" },
    { "white space around a value", GET "X-One: \t 1 2 \t\r\n" E, "200", KEPT, "x=1 2" },
    { "an empty value", GET "X-One:\r\n" E, "200", KEPT, "x=" },
    { "a value of 8-bit characters", GET "X-One: \xc3\xa9\xff\r\n" E, "200", KEPT, "x=\xc3" },
    { "an empty line in front", "\r\n" GET E, "200", KEPT, "GET /" },
    { "two empty lines in front", "\r\n\r\n" GET E, "200", KEPT, "GET /" },
    { "only an empty line", "\r\n", "", KEPT, NULL },
    { "HTTP/1.0 closes", "GET / HTTP/1.0\r\n" E, "200", CLOSED, "connection: close" },
    { "HTTP/1.0 with a host", "GET / HTTP/1.0\r\n" H E, "200", CLOSED, "host=a" },
    { "HTTP/1.0 keep-alive", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n" E, "200", KEPT,
      "connection: keep-alive\r\n" },
    { "HTTP/1.1 close", GET "Connection: close\r\n" E, "200", CLOSED, "connection: close" },
    { "close among others", GET "Connection: x, close\r\n" E, "200", CLOSED, NULL },
    { "bytes behind close", GET "Connection: close\r\n" E "GET ", "200", CLOSED, NULL },
    { "a request behind close", GET "Connection: close\r\n" E GET E, "200", CLOSED, NULL },
    { "an upgrade that nobody wants", GET "Connection: upgrade\r\nUpgrade: h2c\r\n" E, "200",
      KEPT, NULL },
    { "three in a row", GET E GET E "GET /c HTTP/1.1\r\n" H E, "200 200 200", KEPT, "/c" },
    { "deferred ones in a row", "GET /later HTTP/1.1\r\n" H E "GET /later HTTP/1.1\r\n" H E,
      "200 200", KEPT, "/later" },
    { "behind a body", POST "Content-Length: 3\r\n" E "abc" GET E, "200 200", KEPT, "=abc" },
    { "behind chunks", CHUNKED "1\r\na\r\n0\r\n\r\n" GET E, "200 200", KEPT, "body=a " },
    { "a line between two", POST "Content-Length: 1\r\n" E "a\r\n" GET E, "200 200", KEPT,
      "=a" },
    { "a good one and a bad one", GET E "BAD", "200 400", CLOSED, NULL },
    { "an empty body", POST "Content-Length: 0\r\n" E, "200", KEPT, "body= " },
    { "no body at all", POST E, "200", KEPT, "body= " },
    { "a body", POST "Content-Length: 5\r\n" E "hello", "200", KEPT, "body=hello " },
    { "leading zeros", POST "Content-Length: 005\r\n" E "hello", "200", KEPT, "=hello " },
    { "as much as is allowed", POST "Content-Length: 32\r\n" E
      "0123456789abcdef0123456789abcdef", "200", KEPT, "body=0123456789abcdef0123" },
    { "chunks", CHUNKED "5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n", "200", KEPT, "body=hello! " },
    { "hexadecimal chunks", CHUNKED "A\r\n0123456789\r\n0a\r\n0123456789\r\n0\r\n\r\n",
      "200", KEPT, "body=01234567890123456789 " },
    { "no chunks", CHUNKED "0\r\n\r\n", "200", KEPT, "body= " },
    { "Chunked", POST "Transfer-Encoding: Chunked\r\n" E "0\r\n\r\n", "200", KEPT, NULL },
    { "chunk extensions", CHUNKED "1;a=b\r\nx\r\n0;c\r\n\r\n", "200", KEPT, "body=x " },
    { "trailers are dropped", CHUNKED "1\r\nx\r\n0\r\nX-One: 1\r\n\r\n", "200", KEPT,
      "body=x x=" },
    { "a body in pieces", "POST /pieces HTTP/1.1\r\n" H "Content-Length: 9\r\n" E "123456789",
      "200", KEPT, "9 in pieces" },
    { "chunks in pieces", "POST /pieces HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n" E
      "2\r\n12\r\n3\r\n345\r\n0\r\n\r\n", "200", KEPT, "5 in pieces" },
    { "a streamed reply", "GET /stream HTTP/1.1\r\n" H E GET E, "200 200", KEPT,
      "\r\n\r\n4\r\none \r\n7\r\nand two\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n" },
    { "a streamed reply to HTTP/1.0", "GET /stream HTTP/1.0\r\n" E, "200", CLOSED,
      "\r\n\r\none and two" },
    { "a streamed reply to HEAD", "HEAD /stream HTTP/1.1\r\n" H E GET E, "200 200", KEPT,
      "transfer-encoding: chunked\r\n\r\nHTTP/1.1 200 OK" },
    { "100-continue", POST "Expect: 100-continue\r\nContent-Length: 2\r\n" E "hi", "100 200",
      KEPT, "body=hi " },
    { "100-Continue and chunks", POST "Expect: 100-Continue\r\n"
      "Transfer-Encoding: chunked\r\n" E "2\r\nhi\r\n0\r\n\r\n", "100 200", KEPT, "=hi " },
    { "100-continue without a body", POST "Expect: 100-continue\r\nContent-Length: 0\r\n" E,
      "200", KEPT, NULL },
    { "100-continue in HTTP/1.0", "POST / HTTP/1.0\r\nExpect: 100-continue\r\n"
      "Content-Length: 2\r\n" E "hi", "200", CLOSED, "body=hi " },
    { "100-continue when refused", "POST /early HTTP/1.1\r\n" H
      "Expect: 100-continue\r\nContent-Length: 2\r\n" E "hi", "401", CLOSED, NULL },
    { "another expectation", POST "Expect: tea\r\nContent-Length: 2\r\n" E "hi", "417",
      CLOSED, "Only 'Expect: 100-continue'" },
    { "an early reply, a short body", "POST /early HTTP/1.1\r\n" H "Content-Length: 4\r\n" E
      "body" GET E, "401 200", KEPT, "who are you?" },
    { "an early reply, a long body", "POST /early HTTP/1.1\r\n" H
      "Content-Length: 99999\r\n" E "body", "401", CLOSED, "connection: close" },
    { "an early reply, chunks", "POST /early HTTP/1.1\r\n" H
      "Transfer-Encoding: chunked\r\n" E "4\r\nbody\r\n0\r\n\r\n", "401", CLOSED, NULL },

    { "a larger body", POST "Content-Length: 33\r\n" E, "413", CLOSED, "too large" },
    { "a larger body and its bytes", POST "Content-Length: 33\r\n" E
      "0123456789abcdef0123456789abcdefX", "413", CLOSED, "too large" },
    { "any body where none is allowed", "POST /none HTTP/1.1\r\n" H "Content-Length: 1\r\n" E
      "1", "413", CLOSED, "too large" },
    { "a larger body than anybody has", POST "Content-Length: 18446744073709551615\r\n" E,
      "413", CLOSED, "too large" },
    { "larger chunks", CHUNKED "20\r\n0123456789abcdef0123456789abcdef\r\n1\r\nX\r\n", "413",
      CLOSED, "too large" },
    { "larger chunks in pieces", "POST /pieces HTTP/1.1\r\n" H
      "Transfer-Encoding: chunked\r\n" E
      "20\r\n0123456789abcdef0123456789abcdef\r\n1\r\nX\r\n", "413", CLOSED, "too large" },

    { "no Host", "GET / HTTP/1.1\r\n" E, "400", CLOSED, "exactly one Host" },
    { "two Hosts", GET "Host: b\r\n" E, "400", CLOSED, "exactly one Host" },
    { "two equal Hosts", GET H E, "400", CLOSED, "exactly one Host" },
    { "two Hosts in HTTP/1.0", "GET / HTTP/1.0\r\n" H H E, "400", CLOSED, "one Host" },
    { "an empty Host", "GET / HTTP/1.1\r\nHost:\r\n" E, "400", CLOSED, "a host name" },
    { "a Host with a space", "GET / HTTP/1.1\r\nHost: a b\r\n" E, "400", CLOSED, NULL },
    { "a Host with a path", "GET / HTTP/1.1\r\nHost: a/b\r\n" E, "400", CLOSED, NULL },
    { "a Host with a user", "GET / HTTP/1.1\r\nHost: u@a\r\n" E, "400", CLOSED, NULL },
    { "HTTP/0.9", "GET /\r\n", "400", CLOSED, "METHOD target HTTP/1.1" },
    { "two spaces", "GET  / HTTP/1.1\r\n" H E, "400", CLOSED, "single spaces" },
    { "two spaces behind", "GET /  HTTP/1.1\r\n" H E, "400", CLOSED, NULL },
    { "a space at the end", "GET / HTTP/1.1 \r\n" H E, "400", CLOSED, NULL },
    { "a tab", "GET\t/ HTTP/1.1\r\n" H E, "400", CLOSED, NULL },
    { "no target", "GET HTTP/1.1\r\n" H E, "400", CLOSED, NULL },
    { "HTTP/1.2", "GET / HTTP/1.2\r\n" H E, "400", CLOSED, NULL },
    { "HTTP/2.0", "GET / HTTP/2.0\r\n" H E, "400", CLOSED, NULL },
    { "HTTP/9.9", "GET / HTTP/9.9\r\n" H E, "400", CLOSED, NULL },
    { "HTTP/11", "GET / HTTP/11\r\n" H E, "400", CLOSED, NULL },
    { "http/1.1", "GET / http/1.1\r\n" H E, "400", CLOSED, NULL },
    { "the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "400", CLOSED, NULL },
    { "another protocol", "GET / RTSP/1.0\r\n" H E, "400", CLOSED, NULL },
    { "a TLS hello", "\x16\x03\x01\x02", "400", CLOSED, NULL },
    { "an unknown method", "BREW / HTTP/1.1\r\n" H E, "400", CLOSED, NULL },
    { "a method in small letters", "get / HTTP/1.1\r\n" H E, "400", CLOSED, NULL },
    { "CONNECT", "CONNECT a:80 HTTP/1.1\r\n" H E, "400", CLOSED, "CONNECT" },
    { "a fragment", "GET /a#b HTTP/1.1\r\n" H E, "400", CLOSED, "fragment" },
    { "a star that is not for OPTIONS", "GET * HTTP/1.1\r\n" H E, "400", CLOSED, "OPTIONS" },
    { "a target without a slash", "GET a HTTP/1.1\r\n" H E, "400", CLOSED, NULL },
    { "another scheme", "GET ftp://a/ HTTP/1.1\r\n" H E, "400", CLOSED, NULL },
    { "absolute form without a host", "GET http:///a HTTP/1.1\r\n" H E, "400", CLOSED, NULL },
    { "absolute form with a user", "GET http://u@a/ HTTP/1.1\r\n" H E, "400", CLOSED, NULL },
    { "absolute form without Host", "GET http://a/ HTTP/1.1\r\n" E, "400", CLOSED, "Host" },
    { "8 bits in the target", "GET /\xc3\xa9 HTTP/1.1\r\n" H E, "400", CLOSED, NULL },
    { "a control character in the target", "GET /\x01 HTTP/1.1\r\n" H E, "400", CLOSED, NULL },
    { "a space before the colon", "GET / HTTP/1.1\r\nHost : a\r\n" E, "400", CLOSED, NULL },
    { "a space in a name", GET "X One: 1\r\n" E, "400", CLOSED, NULL },
    { "a name of 8 bits", GET "\xc3\xa9: 1\r\n" E, "400", CLOSED, NULL },
    { "an empty name", GET ": 1\r\n" E, "400", CLOSED, "no name" },
    { "a line without a colon", GET "X-One\r\n" E, "400", CLOSED, NULL },
    { "a folded header", GET "X-One: 1\r\n 2\r\n" E, "400", CLOSED, "one line" },
    { "a header folded by a tab", GET "X-One: 1\r\n\t2\r\n" E, "400", CLOSED, "one line" },
    { "a folded first header", "GET / HTTP/1.1\r\n Host: a\r\n" E, "400", CLOSED, NULL },
    { "a folded Transfer-Encoding", POST "Transfer-Encoding:\r\n chunked\r\n" E "0\r\n\r\n",
      "400", CLOSED, NULL },
    { "a CR in front of a header", GET "X:\rTransfer-Encoding: chunked\r\n" E "0\r\n\r\n",
      "400", CLOSED, NULL },
    { "a bare CR in a value", GET "X-One: 1\r2\r\n" E, "400", CLOSED, NULL },
    { "a bare LF", "GET / HTTP/1.1\nHost: a\n\n", "400", CLOSED, NULL },
    { "a bare LF behind a header", "GET / HTTP/1.1\r\nHost: a\n\r\n", "400", CLOSED, NULL },
    { "a bare LF at the end", GET "\n", "400", CLOSED, NULL },
    { "a bare LF in front", "\n" GET E, "400", CLOSED, NULL },
    { "two CRs", "GET / HTTP/1.1\r\r\n" H E, "400", CLOSED, NULL },
    { "a control character in a value", GET "X-One: \x02\r\n" E, "400", CLOSED, NULL },
    { "DEL in a value", GET "X-One: \x7f\r\n" E, "400", CLOSED, NULL },
    { "length and chunks", POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n" E
      "0\r\n\r\n", "400", CLOSED, NULL },
    { "chunks and length", POST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n" E
      "0\r\n\r\n", "400", CLOSED, NULL },
    { "two lengths", POST "Content-Length: 5\r\nContent-Length: 6\r\n" E "hello!", "400",
      CLOSED, NULL },
    { "two equal lengths", POST "Content-Length: 5\r\nContent-Length: 5\r\n" E "hello",
      "400", CLOSED, NULL },
    { "a list of lengths", POST "Content-Length: 5, 5\r\n" E "hello", "400", CLOSED, NULL },
    { "a length with a plus", POST "Content-Length: +1\r\n" E "1", "400", CLOSED, NULL },
    { "a negative length", POST "Content-Length: -1\r\n" E "1", "400", CLOSED, NULL },
    { "a hexadecimal length", POST "Content-Length: 0x1\r\n" E "1", "400", CLOSED, NULL },
    { "a length that is no number", POST "Content-Length: abc\r\n" E, "400", CLOSED, NULL },
    { "an empty length", POST "Content-Length:\r\n" E, "400", CLOSED, NULL },
    { "a length with a space", POST "Content-Length: 1 1\r\n" E "1", "400", CLOSED, NULL },
    { "a length that overflows", POST "Content-Length: 18446744073709551616\r\n" E, "400",
      CLOSED, NULL },
    { "xchunked", POST "Transfer-Encoding: xchunked\r\n" E "0\r\n\r\n", "400", CLOSED, NULL },
    { "identity", POST "Transfer-Encoding: identity\r\n" E, "400", CLOSED, NULL },
    { "gzip, chunked", POST "Transfer-Encoding: gzip, chunked\r\n" E "0\r\n\r\n", "400",
      CLOSED, NULL },
    { "chunked, identity", POST "Transfer-Encoding: chunked, identity\r\n" E "0\r\n\r\n",
      "400", CLOSED, NULL },
    { "chunked twice", POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n" E
      "0\r\n\r\n", "400", CLOSED, NULL },
    { "an empty coding", POST "Transfer-Encoding:\r\n" E, "400", CLOSED, NULL },
    { "chunks in HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n" E
      "0\r\n\r\n", "400", CLOSED, "in HTTP/1.1" },
    { "a chunk without a size", CHUNKED "\r\n", "400", CLOSED, "chunks" },
    { "a bad chunk size", CHUNKED "g\r\n", "400", CLOSED, NULL },
    { "a negative chunk size", CHUNKED "-1\r\n", "400", CLOSED, NULL },
    { "a chunk size with 0x", CHUNKED "0x1\r\n", "400", CLOSED, NULL },
    { "a chunk size that overflows", CHUNKED "10000000000000000\r\n", "400", CLOSED, NULL },
    { "a chunk size with a bare LF", CHUNKED "1\nx", "400", CLOSED, NULL },
    { "a LF in a chunk extension", CHUNKED "1;a\nb\r\nx\r\n", "400", CLOSED, NULL },
    { "no CR LF behind a chunk", CHUNKED "1\r\nxx\r\n0\r\n\r\n", "400", CLOSED, NULL },
    { "a bare LF behind a chunk", CHUNKED "1\r\nx\n0\r\n\r\n", "400", CLOSED, NULL },
};
/* clang-format on */

struct trial {
    struct peer peer;
    const struct row *row;
    struct slice bytes;
    size_t cut; /* the first part; 0: byte by byte */
};

/* The answer without its dates, which differ from second to second. */
static void drop_dates(struct buf *answer)
{
    char *at;
    while (answer->len && (at = memmem(answer->ptr, answer->len, "date: ", 6))) {
        size_t place = (size_t)(at - answer->ptr), len = strlen("date:  GMT\r\n") + 25;
        memmove(at, at + len, answer->len - place - len);
        answer->len -= len;
    }
}

static void get_statuses(const struct buf *answer, char out[64])
{
    struct slice rest = buf_slice(answer);
    size_t len = 0;
    const char *at;
    out[0] = 0;
    while ((at = memmem(rest.ptr, rest.len, "HTTP/1.1 ", 9)) && len < 56) {
        if (at[9] >= '1' && at[9] <= '5')
            len += (size_t)snprintf(out + len, 5, len ? " %.3s" : "%.3s", at + 9);
        rest = slice_from(rest, (size_t)(at - rest.ptr) + 9);
    }
}

static bool is_answered(void *owner)
{
    struct trial *trial = owner;
    char statuses[64];
    peer_read(&trial->peer);
    get_statuses(&trial->peer.got, statuses);
    if (trial->row->after == CLOSED)
        return trial->peer.ended;
    return trial->peer.ended || strlen(statuses) >= strlen(trial->row->statuses);
}

static void check_answer(struct net_world *world, struct trial *trial)
{
    const struct row *row = trial->row;
    struct peer *peer = &trial->peer;
    char statuses[64];
    bool answered = net_world_waits(world, is_answered, trial);
    get_statuses(&peer->got, statuses);
    struct slice got = buf_slice(&peer->got);
    if (!answered || strcmp(statuses, row->statuses) != 0 ||
        peer->ended != (row->after == CLOSED) || peer->reset ||
        (row->text && !peer_has(peer, row->text)))
        fail_msg("%s (cut at %zu): '%s'%s\n%.*s", row->name, trial->cut, statuses,
                 peer->reset   ? " reset"
                 : peer->ended ? " closed"
                               : "",
                 SLICE_ARG(got));
    if (row->after == CLOSED && !peer_has(peer, "connection: close\r\n"))
        fail_msg("%s: the end is not announced", row->name);
    if (statuses[0] && strchr("45", statuses[strlen(statuses) - 3]) &&
        !peer_has(peer, "{\"error\":\""))
        fail_msg("%s: no reason is given\n%.*s", row->name, SLICE_ARG(got));
    drop_dates(&peer->got);
}

static void send_trial(struct net_world *world, struct trial *trial)
{
    peer_send(world, &trial->peer, (struct slice){ trial->bytes.ptr, trial->cut });
    net_world_turn(world);
    peer_send(world, &trial->peer, slice_from(trial->bytes, trial->cut));
}

/* The bytes of several trials at the same time, each in its own connection. */
static void send_in_two(struct net_world *world, struct trial *trials, size_t count)
{
    for (size_t i = 0; i < count; i++)
        peer_open(world, &trials[i].peer);
    for (size_t i = 0; i < count; i++)
        peer_send(world, &trials[i].peer,
                  (struct slice){ trials[i].bytes.ptr, trials[i].cut });
    net_world_turn(world);
    for (size_t i = 0; i < count; i++)
        peer_send(world, &trials[i].peer, slice_from(trials[i].bytes, trials[i].cut));
}

static void check_same(struct net_world *world, struct trial *trial,
                       const struct buf *whole)
{
    check_answer(world, trial);
    if (!slice_equal(buf_slice(&trial->peer.got), buf_slice(whole)))
        fail_msg("%s (cut at %zu) is answered in another way:\n%.*s\nnot\n%.*s",
                 trial->row->name, trial->cut, SLICE_ARG(buf_slice(&trial->peer.got)),
                 SLICE_ARG(buf_slice(whole)));
    peer_close(&trial->peer);
}

static struct trial trial_of(const struct row *row, struct slice bytes)
{
    return (struct trial){ .row = row, .bytes = bytes, .cut = bytes.len };
}

static void check_cuts(struct net_world *world, const struct row *row, struct slice bytes,
                       const struct buf *whole)
{
    static struct trial trials[AT_ONCE];
    size_t step = bytes.len / 400 + 1, count = 0;
    for (size_t cut = 1; cut < bytes.len; cut += step) {
        trials[count] = trial_of(row, bytes);
        trials[count++].cut = cut;
        if (count < AT_ONCE && cut + step < bytes.len)
            continue;
        send_in_two(world, trials, count);
        for (size_t i = 0; i < count; i++)
            check_same(world, &trials[i], whole);
        count = 0;
    }
}

static void check_octets(struct net_world *world, const struct row *row, struct slice bytes,
                         const struct buf *whole)
{
    struct trial trial = trial_of(row, bytes);
    trial.cut = 0;
    peer_open(world, &trial.peer);
    for (size_t i = 0; i < bytes.len; i++) {
        peer_send(world, &trial.peer, (struct slice){ bytes.ptr + i, 1 });
        uv_run(&world->uv, UV_RUN_NOWAIT);
        if (row->after == KEPT && !strchr(row->statuses, ' ') && i + 1 < bytes.len &&
            peer_has(&trial.peer, "H"))
            fail_msg("%s is answered after %zu bytes", row->name, i + 1);
    }
    check_same(world, &trial, whole);
}

static void check_row(struct net_world *world, const struct row *row, struct slice bytes)
{
    struct trial whole = trial_of(row, bytes);
    peer_open(world, &whole.peer);
    send_trial(world, &whole);
    check_answer(world, &whole);
    check_cuts(world, row, bytes, &whole.peer.got);
    check_octets(world, row, bytes, &whole.peer.got);
    peer_close(&whole.peer);
}

static void open_scene(struct scene *scene)
{
    net_world_open(&scene->world, (struct server_options){
                                      .handler = { on_head, on_body, on_request, on_gone },
                                      .owner = scene,
                                  });
}

static void every_request_is_answered_alike_however_it_is_cut(void **state)
{
    struct scene scene;
    (void)state;
    open_scene(&scene);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check_row(&scene.world, &rows[i], slice_of(rows[i].bytes));
    net_world_close(&scene.world);
}

static struct slice repeat(struct buf *out, const char *head, const char *part,
                           size_t count, const char *tail)
{
    buf_clear(out);
    buf_add_text(out, head);
    for (size_t i = 0; i < count; i++)
        buf_add_text(out, part);
    buf_add_text(out, tail);
    return buf_slice(out);
}

static void large_heads_are_refused_at_their_limits(void **state)
{
    static const struct {
        struct row row;
        const char *head, *part;
        size_t count;
        const char *tail;
    } large[] = {
        { { "a target of 8 KiB", NULL, "200", KEPT, NULL },
          "GET /",
          "a",
          8191,
          " HTTP/1.1\r\n" H E },
        { { "a longer target", NULL, "414", CLOSED, "too long" },
          "GET /",
          "a",
          8192,
          " HTTP/1.1\r\n" H E },
        { { "a target of 64 KiB", NULL, "414", CLOSED, "too long" },
          "GET /",
          "a",
          30000,
          " HTTP/1.1\r\n" H E },
        { { "100 headers", NULL, "200", KEPT, NULL }, GET, "x: y\r\n", 99, E },
        { { "101 headers", NULL, "431", CLOSED, "fewer" }, GET, "x: y\r\n", 100, E },
        { { "10,000 headers", NULL, "431", CLOSED, "fewer" }, GET, "x:\r\n", 5000, E },
        { { "a head of 16 KiB", NULL, "200", KEPT, NULL },
          GET "X: ",
          "a",
          16384 - sizeof(GET "X: \r\n" E) + 1,
          "\r\n" E },
        { { "a larger head", NULL, "431", CLOSED, "too large" },
          GET "X: ",
          "a",
          16384 - sizeof(GET "X: \r\n" E) + 2,
          "\r\n" E },
        { { "a header of 30 KB", NULL, "431", CLOSED, "too large" },
          GET "X: ",
          "a",
          30000,
          "\r\n" E },
        { { "a chunk extension of 30 KB", NULL, "400", CLOSED, "extensions" },
          CHUNKED "1;",
          "a",
          30000,
          "\r\n" },
        { { "trailers of 30 KB", NULL, "400", CLOSED, "trailers" },
          CHUNKED "0\r\n",
          "abcdefg: hijklmnop\r\n",
          1500,
          "\r\n" },
    };
    struct scene scene;
    struct buf bytes = { 0 };
    (void)state;
    open_scene(&scene);
    for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++)
        check_row(
            &scene.world, &large[i].row,
            repeat(&bytes, large[i].head, large[i].part, large[i].count, large[i].tail));
    buf_finish(&bytes);
    net_world_close(&scene.world);
}

static void zero_bytes_are_refused(void **state)
{
    static const struct {
        struct row row;
        struct slice bytes;
    } zeros[] = {
        { { "in a value", NULL, "400", CLOSED, NULL }, SLICE(GET "X: \0\r\n" E) },
        { { "in a name", NULL, "400", CLOSED, NULL }, SLICE(GET "X\0: 1\r\n" E) },
        { { "in the target", NULL, "400", CLOSED, NULL },
          SLICE("GET /\0 HTTP/1.1\r\n" H E) },
        { { "in front", NULL, "400", CLOSED, NULL }, SLICE("\0" GET E) },
        { { "in a length", NULL, "400", CLOSED, NULL },
          SLICE(POST "Content-Length: 1\0\r\n") },
    };
    struct scene scene;
    (void)state;
    open_scene(&scene);
    for (size_t i = 0; i < sizeof(zeros) / sizeof(zeros[0]); i++)
        check_row(&scene.world, &zeros[i].row, zeros[i].bytes);
    net_world_close(&scene.world);
}

/* What was received of a request that never ends is forgotten with its connection. */
static void an_unfinished_request_waits_and_vanishes(void **state)
{
    static const char *const parts[] = { "G", "GET / HTTP/1.1\r\nHost: ",
                                         POST "Content-Length: 5\r\n" E "hell",
                                         CHUNKED "5\r\nhello\r\n0\r\n" };
    struct scene scene;
    (void)state;
    open_scene(&scene);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        struct peer peer;
        peer_open(&scene.world, &peer);
        peer_send(&scene.world, &peer, slice_of(parts[i]));
        net_world_turn(&scene.world);
        assert_false(peer_has(&peer, "H"));
        assert_false(peer.ended);
        peer_close(&peer);
        net_world_turn(&scene.world);
    }
    assert_int_equal(server_open_exchanges(scene.world.server), 0);
    net_world_close(&scene.world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_request_is_answered_alike_however_it_is_cut),
        cmocka_unit_test(large_heads_are_refused_at_their_limits),
        cmocka_unit_test(zero_bytes_are_refused),
        cmocka_unit_test(an_unfinished_request_waits_and_vanishes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
