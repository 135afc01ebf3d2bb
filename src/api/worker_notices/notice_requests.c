/* notice_requests.c - a queue of runs to subscribe or unsubscribe, emptied from its
 * start. */
#include "api/worker_notices/notice_requests.h"

#include <stdio.h>

#include "base/json/scan.h"

static size_t waiting(const struct notice_requests *requests)
{
    return requests->queue.len / sizeof(struct notice_request) - requests->taken;
}

bool notice_requests_are_empty(const struct notice_requests *requests)
{
    return waiting(requests) == 0;
}

/* Drops the ids that were taken if they outnumber those that wait. Otherwise a client that
 * never lets the queue become empty would make it grow. */
static void drop_taken(struct notice_requests *requests)
{
    if (requests->taken <= waiting(requests))
        return;
    buf_drop(&requests->queue, requests->taken * sizeof(struct notice_request));
    requests->taken = 0;
}

/* Returns false for other events. */
static bool read_event(const struct socket_packet *event, bool *subscribe,
                       struct scan_members *ids)
{
    *subscribe = scan_key_is(event->name, SLICE("run:subscribe"));
    if (!*subscribe && !scan_key_is(event->name, SLICE("run:unsubscribe")))
        return false;
    if (scan_type(event->body) != SCAN_OBJECT)
        return false;
    struct slice list = scan_member(event->body, "runFriendlyIds");
    if (scan_type(list) != SCAN_ARRAY)
        return false;
    *ids = scan_members(list);
    return true;
}

/* Reads the next string without escapes: ids need none. Returns false at the end. */
static bool next_id(struct scan_members *ids, struct slice *id)
{
    while (scan_next_element(ids, id)) {
        if (scan_type(*id) != SCAN_STRING || memchr(id->ptr, '\\', id->len))
            continue;
        *id = scan_unquoted(*id);
        return true;
    }
    return false;
}

bool notice_requests_add(struct notice_requests *requests,
                         const struct socket_packet *event)
{
    struct notice_request request = { 0 };
    struct scan_members ids;
    struct slice id;
    if (!read_event(event, &request.subscribe, &ids))
        return true;
    drop_taken(requests);
    while (next_id(&ids, &id)) {
        if (!text_is_id(id, "run"))
            continue;
        if (waiting(requests) == NOTICE_REQUESTS_MAX)
            return false;
        snprintf(request.id, sizeof(request.id), "%.*s", SLICE_ARG(id));
        buf_add(&requests->queue,
                (struct slice){ (const char *)&request, sizeof(request) });
    }
    return true;
}

bool notice_requests_take(struct notice_requests *requests, struct notice_request *request)
{
    if (notice_requests_are_empty(requests))
        return false;
    memcpy(request, requests->queue.ptr + requests->taken++ * sizeof(*request),
           sizeof(*request));
    if (notice_requests_are_empty(requests))
        notice_requests_finish(requests);
    return true;
}

void notice_requests_finish(struct notice_requests *requests)
{
    buf_finish(&requests->queue);
    requests->taken = 0;
}
