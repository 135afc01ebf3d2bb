/* own_keys.h - finds the idempotency keys that a client has sent for what a call creates. */
#pragma once

#include "api/request/route.h"
#include "core/state/trigger_op.h"

/* Returns true if a call with this body, when its client repeats it, creates nothing that it has
 * created before: there are keys where its route takes them, and they last. */
bool own_keys_are_in(struct slice body, enum own_key where);

/* Notes whether a run that the call creates has a key that lasts. */
void own_keys_note(struct api_call *call, const struct trigger *item, int64_t now_ms);

/* Returns true if a call, when its client repeats it, takes effect twice: its route claims request
 * keys, but the client has sent neither one nor a key for each run. body: empty if it is
 * unknown. */
bool own_keys_lack(const struct api_call *call, struct slice body);
