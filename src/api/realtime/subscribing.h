/* subscribing.h - what the WebSocket and the event stream of runs.v1 have in common. */
#pragma once

#include "api/request/call.h"
#include "core/wire/wire.h"

/* The fields of this hello (NULL: all) as this identity may see them; encoding and wrap are
 * the transport's. */
struct view subscribing_view(const struct identity *identity,
                             const struct wire_message *hello);

/* The position is honoured if it is of this history and nothing after it was purged. */
bool subscribing_may_resume(const struct environment *env, const struct wire_message *sub);

/* The parameters of a call's query that nobody reads, for those who cannot see headers: the
 * caller's to unref; NULL: there are none. */
struct tag_list *subscribing_ignored(const struct api_call *call);

/* For routes that EventSource and browsers' WebSockets open: the Authorization header, or
 * ?token=. None: call->identity stays NULL. */
enum err subscribing_identify(struct api_call *call);
