/* answer.c - parses a response: checks its head line by line, then lets llhttp read it. */
#include "net/client/answer.h"

#include "net/http/http_check.h"

enum {
    INTERIMS_MAX = 16,    /* 1xx responses before the final one */
    GAP_MAX = 16 * 1024,  /* bytes without a byte of the body: chunk sizes, trailers */
    KEPT_HEAD = 4 * 1024, /* capacity that is kept for the next response */
};

static const char bad_chunks[] = "malformed chunks in the body of the response";

static struct answer *of(llhttp_t *parser)
{
    return container_of(parser, struct answer, parser);
}

static enum answer_event answer_refuse(struct answer *answer, const char *fault)
{
    answer->fault = fault;
    return ANSWER_FAULT;
}

/* ---- callbacks of llhttp ---- */

/* The head is one piece of memory, so a text that arrives in pieces only grows. */
static void extend(struct slice *text, const char *at, size_t len)
{
    if (!text->ptr)
        text->ptr = at;
    text->len = (size_t)(at + len - text->ptr);
}

static int on_name(llhttp_t *parser, const char *at, size_t len)
{
    struct answer *answer = of(parser);
    if (answer->head_done)
        return 0;
    if (!answer->in_name) {
        if (answer->header_count == ANSWER_HEADERS_MAX)
            return -1;
        answer->headers[answer->header_count++] = (struct http_header){ 0 };
        answer->in_name = true;
    }
    extend(&answer->headers[answer->header_count - 1].name, at, len);
    return 0;
}

static int on_name_whole(llhttp_t *parser)
{
    of(parser)->in_name = false;
    return 0;
}

static int on_value(llhttp_t *parser, const char *at, size_t len)
{
    struct answer *answer = of(parser);
    if (!answer->head_done && answer->header_count)
        extend(&answer->headers[answer->header_count - 1].value, at, len);
    return 0;
}

/* These have no body, whatever their headers say (RFC 9112 §6.3). */
static bool has_no_body(const struct answer *answer, int status)
{
    return answer->is_for_head || status / 100 == 1 || status == 204 || status == 304;
}

static int on_head(llhttp_t *parser)
{
    struct answer *answer = of(parser);
    bool skips = has_no_body(answer, parser->status_code);
    if (skips)
        parser->flags |= F_SKIPBODY;
    for (size_t i = 0; i < answer->header_count; i++)
        answer->headers[i].value = slice_trim(answer->headers[i].value);
    answer->head_done = true;
    answer->status = parser->status_code;
    answer->until_end = llhttp_message_needs_eof(parser);
    answer->keeps_alive =
        llhttp_should_keep_alive(parser) && !(parser->flags & F_CONNECTION_CLOSE);
    return skips; /* 1: no body follows */
}

/* -1 makes llhttp stop. */
static int on_body(llhttp_t *parser, const char *at, size_t len)
{
    struct answer *answer = of(parser);
    if (answer->gap + (size_t)(at - answer->gap_from) > GAP_MAX) {
        answer->fault = bad_chunks;
        return -1;
    }
    answer->gap = 0;
    answer->gap_from = at + len;
    answer->on_piece(answer, (struct slice){ at, len });
    return 0;
}

static int on_whole(llhttp_t *parser)
{
    of(parser)->whole = true;
    return HPE_PAUSED; /* what follows belongs to another response */
}

static const llhttp_settings_t settings = {
    .on_header_field = on_name,
    .on_header_field_complete = on_name_whole,
    .on_header_value = on_value,
    .on_headers_complete = on_head,
    .on_body = on_body,
    .on_message_complete = on_whole,
};

/* ---- the head ---- */

/* Recognizes a server of another protocol by its first bytes. */
static bool begins_like_http(const struct answer *answer)
{
    static const char begin[] = "HTTP/1.";
    size_t len =
        answer->head.len < sizeof(begin) - 1 ? answer->head.len : sizeof(begin) - 1;
    return memcmp(answer->head.ptr, begin, len) == 0;
}

static bool is_version(struct slice line)
{
    return slice_starts(line, "HTTP/1.1 ") || slice_starts(line, "HTTP/1.0 ");
}

/* Judges one complete line. Returns true if it is the empty one. */
static bool check_line(struct answer *answer)
{
    struct slice line = slice_from(buf_slice(&answer->head), answer->line);
    bool first = answer->line == 0;
    answer->line = answer->head.len;
    if (line.len < 2 || line.ptr[line.len - 2] != '\r' ||
        memchr(line.ptr, '\r', line.len - 2) || memchr(line.ptr, 0, line.len))
        answer->fault =
            "a line of the head does not end with CR LF, or has CR or zero in it";
    else if (first && !is_version(line))
        answer->fault = "the response is not HTTP/1.1";
    else if (line.ptr[0] == ' ' || line.ptr[0] == '\t')
        answer->fault = "a header is folded over several lines";
    else if (!first && line.len > 2 && ++answer->header_count > ANSWER_HEADERS_MAX)
        answer->fault = "too many headers in the response";
    return !answer->fault && line.len == 2;
}

/* Returns true once the head is complete or faulty. */
static bool take_head(struct answer *answer, struct slice *bytes)
{
    while (bytes->len && !answer->fault) {
        const char *end = memchr(bytes->ptr, '\n', bytes->len);
        size_t len = end ? (size_t)(end - bytes->ptr) + 1 : bytes->len;
        size_t room = ANSWER_HEAD_MAX - answer->head.len;
        bool cut = len > room;
        len = cut ? room : len;
        buf_add(&answer->head, (struct slice){ bytes->ptr, len });
        *bytes = slice_from(*bytes, len);
        answer->begun = true;
        if (!begins_like_http(answer))
            answer->fault = "the response is not HTTP";
        else if (cut)
            answer->fault = "response header too long";
        else if (end && check_line(answer))
            return true;
    }
    return answer->fault;
}

/* Returns a fault if several headers define where the body ends, because they may
 * differ. */
static const char *doubt(const struct answer *answer)
{
    unsigned lengths = 0, codings = 0;
    for (size_t i = 0; i < answer->header_count; i++) {
        if (http_name_is(answer->headers[i].name, "content-length"))
            lengths++;
        if (!http_name_is(answer->headers[i].name, "transfer-encoding"))
            continue;
        codings++;
        if (!http_name_is(answer->headers[i].value, "chunked"))
            return "unknown transfer encoding in the response";
    }
    if (lengths + codings > 1)
        return "more than one length in the response";
    if (codings && !slice_starts(buf_slice(&answer->head), "HTTP/1.1"))
        return "the response is chunked in HTTP/1.0";
    return NULL;
}

static void clear_head(struct answer *answer)
{
    buf_clear(&answer->head);
    answer->line = answer->header_count = 0;
    answer->head_done = answer->whole = answer->in_name = false;
}

static enum answer_event check_interim(struct answer *answer)
{
    if (answer->status == 101)
        return answer_refuse(answer, "unexpected response: it switches the protocol");
    if (++answer->interims > INTERIMS_MAX)
        return answer_refuse(answer, "too many 1xx responses before the final one");
    clear_head(answer);
    return ANSWER_MORE;
}

static enum answer_event read_head(struct answer *answer)
{
    answer->header_count = 0;
    llhttp_init(&answer->parser, HTTP_RESPONSE, &settings);
    int error = llhttp_execute(&answer->parser, answer->head.ptr, answer->head.len);
    if (!answer->head_done ||
        (error != HPE_OK && error != HPE_PAUSED && error != HPE_PAUSED_UPGRADE))
        return answer_refuse(answer, "malformed response header");
    if (answer->status < 100 || answer->status > 599)
        return answer_refuse(answer, "invalid status in the response");
    const char *fault = doubt(answer);
    if (fault)
        return answer_refuse(answer, fault);
    if (answer->status / 100 == 1 && !(answer->status == 101 && answer->may_upgrade))
        return check_interim(answer);
    if (answer->status == 101)
        answer->whole = true;
    return ANSWER_HEAD;
}

/* ---- the body ---- */

static enum answer_event read_body(struct answer *answer, struct slice *bytes)
{
    const char *end = bytes->ptr + bytes->len;
    answer->gap_from = bytes->ptr;
    int error = llhttp_execute(&answer->parser, bytes->ptr, bytes->len);
    if (answer->fault)
        return ANSWER_FAULT;
    if (answer->whole)
        end = llhttp_get_error_pos(&answer->parser);
    else if (error != HPE_OK)
        return answer_refuse(answer, bad_chunks);
    answer->gap += (size_t)(end - answer->gap_from);
    if (answer->gap > GAP_MAX)
        return answer_refuse(answer, bad_chunks);
    *bytes = slice_from(*bytes, (size_t)(end - bytes->ptr));
    return answer->whole ? ANSWER_WHOLE : ANSWER_MORE;
}

enum answer_event answer_feed(struct answer *answer, struct slice *bytes)
{
    if (answer->fault)
        return ANSWER_FAULT;
    while (bytes->len && !answer->head_done) {
        if (!take_head(answer, bytes))
            return ANSWER_MORE;
        enum answer_event event = answer->fault ? ANSWER_FAULT : read_head(answer);
        if (event != ANSWER_MORE)
            return event;
    }
    if (answer->whole)
        return ANSWER_WHOLE;
    return bytes->len ? read_body(answer, bytes) : ANSWER_MORE;
}

enum answer_event answer_end(struct answer *answer)
{
    if (answer->fault)
        return ANSWER_FAULT;
    if (answer->head_done && answer->until_end)
        answer->whole = true;
    return answer->whole ? ANSWER_WHOLE : ANSWER_FAULT;
}

void answer_begin(struct answer *answer)
{
    if (answer->head.capacity > KEPT_HEAD)
        buf_finish(&answer->head);
    struct buf head = answer->head;
    *answer = (struct answer){ .head = head };
    clear_head(answer);
}

void answer_finish(struct answer *answer)
{
    buf_finish(&answer->head);
}

struct slice answer_header(const struct answer *answer, const char *name)
{
    for (size_t i = 0; i < answer->header_count; i++)
        if (http_name_is(answer->headers[i].name, name))
            return answer->headers[i].value;
    return (struct slice){ 0 };
}
