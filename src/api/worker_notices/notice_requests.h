/* notice_requests.h - a notification client's requests that were not granted yet.
 *
 *   run:subscribe, run:unsubscribe ─► notice_requests_add ─► notice_requests_take, in order
 *
 * A message may name thousands of runs, and each costs a look-up in every environment that
 * a worker's token serves. So requests wait here, and are granted in time slices. The zero
 * value is empty. */
#pragma once

#include "base/buf.h"
#include "base/text.h"
#include "net/socket_packet.h"

enum { NOTICE_REQUESTS_MAX = 10000 };

struct notice_request {
    bool subscribe; /* false: unsubscribe */
    char id[ID_MAX];
};

struct notice_requests {
    struct buf queue; /* of struct notice_request */
    size_t taken;
};

/* Adds the runs of an event that subscribes or unsubscribes, like
 * ["run:subscribe",{"runFriendlyIds":[…]}]. Skips anything that cannot be a run id, and
 * other events. Returns false if more than NOTICE_REQUESTS_MAX are waiting. */
bool notice_requests_add(struct notice_requests *requests,
                         const struct socket_packet *event);

/* Returns false if there is none. */
bool notice_requests_take(struct notice_requests *requests, struct notice_request *request);

bool notice_requests_are_empty(const struct notice_requests *requests);
void notice_requests_finish(struct notice_requests *requests);
