/* signing.h - what an input says, signed rightly: so that a fuzzer gets behind a signature.
 *
 *   public token      a line of claims; @env in it is the environment's id
 *   signed download   a line with the packet's name, a line with the time the URL expires
 *   signed upload     the same, to be written to
 *   signed callback   a line with the waitpoint's id
 *
 * The lines are the input's first ones, and are taken from it. All is signed with the
 * account's secret key. */
#pragma once

#include <stdbool.h>

#include "accounts/accounts.h"
#include "base/buf.h"

/* Appends what has this name; false: nothing has. */
bool signing_add(const struct account *account, struct slice name, struct slice *input,
                 struct buf *out);
