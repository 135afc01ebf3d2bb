/* subscribing.h - code shared by the WebSocket and the event stream of runs.v1. */
#pragma once

#include "api/request/call.h"
#include "core/wire/wire.h"

/* Returns the view of the fields in hello (NULL: the default) that this identity may see.
 * The transport sets encoding and wrap. */
struct view subscribing_view(const struct identity *identity,
                             const struct wire_message *hello);

/* Returns true if the subscription can resume: its position belongs to this history, and
 * nothing after it was purged. */
bool subscribing_may_resume(const struct environment *env, const struct wire_message *sub);

/* Returns the ignored query parameters of a call, for clients that cannot see headers;
 * NULL: none. The caller owns the reference. */
struct tag_list *subscribing_ignored(const struct api_call *call);

/* Sets call->identity from the Authorization header or ?token=, for routes that EventSource
 * and browsers' WebSockets open. Without either it stays NULL. */
enum err subscribing_identify(struct api_call *call);
