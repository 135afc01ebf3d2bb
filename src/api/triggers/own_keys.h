/* own_keys.h - finds the idempotency keys that a client has put into the body of a call. */
#pragma once

#include "api/request/call.h"

/* Returns true if a call with this body, when it is repeated, creates nothing that it has created
 * before: the object, its options, or the options of each of its items have a key. */
bool own_keys_are_in(struct slice body);

/* Notes whether a run that the call creates has a key. */
void own_keys_note(struct api_call *call, const struct run *run);

/* Returns true if a call, when its client repeats it, takes effect twice: its route claims request
 * keys, but the client has sent neither one nor a key for each run. body: empty if it is
 * unknown. */
bool own_keys_lack(const struct api_call *call, struct slice body);
