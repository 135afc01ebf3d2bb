/* signing.h - signs a fuzz input correctly, so that a fuzzer passes the signature checks.
 *
 *   public token      a line of claims; @env in it is the environment's id
 *   signed download   a line with the packet's name, a line with the expiry time of the URL
 *   signed upload     the same, for writing
 *   signed callback   a line with the waitpoint's id
 *
 * The lines are the first ones of the input and are removed from it. The account's secret
 * key signs all of them. */
#pragma once

#include <stdbool.h>

#include "accounts/accounts.h"
#include "base/buf.h"

/* Appends the signed text with this name. Returns false if no such text exists. */
bool signing_add(const struct account *account, struct slice name, struct slice *input,
                 struct buf *out);
