/* notice_wishes.h - requests of a notification socket's client that were not granted yet.
 *
 *   run:subscribe, run:unsubscribe ─► notice_wishes_add ─► notice_wishes_take, in order
 *
 * A message may name thousands of runs, and each costs a look-up in every environment of a
 * worker's token. So requests wait here, and are granted in time slices. The zero value is
 * empty. */
#pragma once

#include "base/buf.h"
#include "base/text.h"
#include "net/http/socket_packet.h"

enum { NOTICE_WISHES_MAX = 10000 };

struct notice_wish {
    bool subscribe; /* false: unsubscribe */
    char id[ID_MAX];
};

struct notice_wishes {
    struct buf queue; /* of struct notice_wish */
    size_t taken;
};

/* Adds the runs of an event that subscribes or unsubscribes. It looks like
 * ["run:subscribe",{"runFriendlyIds":[…]}]. Skips what cannot be the id of a run, and other
 * events. Returns false if more than NOTICE_WISHES_MAX are waiting. */
bool notice_wishes_add(struct notice_wishes *wishes, const struct socket_packet *event);

/* Returns false if there is none. */
bool notice_wishes_take(struct notice_wishes *wishes, struct notice_wish *wish);

bool notice_wishes_are_empty(const struct notice_wishes *wishes);
void notice_wishes_finish(struct notice_wishes *wishes);
