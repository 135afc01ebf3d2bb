/* bundle_pack.h - packs a folder for bundle.h; the same files give the same bytes.
 *
 * Names are in order, without times and owners, and with one of two modes. Blocks, like
 * bundle.h. */
#pragma once

#include "os/archive/bundle.h"

/* Writes to the descriptor, which stays the caller's, from its present position on.
 * ERR_INVALID: the folder contains what a bundle may not, such as a link. ERR_TOO_LARGE:
 * above a limit. */
enum err bundle_pack(const char *folder, int file, const struct bundle_limits *limits,
                     struct failure *why);
