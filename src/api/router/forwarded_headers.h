/* forwarded_headers.h - which headers of a forwarded call, and of its response, pass; and
 * whether it is brief. */
#pragma once

#include "api/request/call.h"

enum { FORWARDED_HEADERS_MAX = 104 };

/* The leader states it with a 503. */
enum forwarded_fate { FATE_KNOWN, FATE_UNTAKEN, FATE_UNSURE };

/* Copies the headers that the leader needs, but for those that frame the body. Returns their
 * number. They are borrowed from the call. */
size_t forwarded_headers_choose(const struct api_call *call,
                                struct http_header out[FORWARDED_HEADERS_MAX]);

/* Returns true for a call that the leader answers at once, and whose body has at most body_max
 * bytes. */
bool forwarded_headers_are_brief(const struct api_call *call, size_t body_max);

/* Appends the lines of a response that its client gets. Returns FATE_UNTAKEN if nothing was
 * executed (RELAYED_UNTAKEN), FATE_UNSURE if the call may still be executed (RELAYED_UNSURE). */
enum forwarded_fate forwarded_headers_keep(struct buf *lines, int status,
                                           const struct http_header *headers, size_t count);

/* The same for lines as the handler of the leader has written them. */
enum forwarded_fate forwarded_headers_keep_lines(struct buf *out, struct slice lines);

/* Returns true if the headers state the length of the body. */
bool forwarded_headers_length(const struct http_header *headers, size_t count,
                              uint64_t *length);
