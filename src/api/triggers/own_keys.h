/* own_keys.h - finds the idempotency keys that a client has put into the body of a call. */
#pragma once

#include "base/slice.h"

/* Returns true if a call with this body, when it is repeated, creates nothing that it has created
 * before: the object, its options, or the options of each of its items have a key. */
bool own_keys_are_in(struct slice body);
