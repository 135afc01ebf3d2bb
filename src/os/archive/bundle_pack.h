/* bundle_pack.h - packs a folder for bundle.h; the same files always give the same bytes.
 *
 * Entries are sorted by name, have no times or owners, and have one of two modes. Blocks,
 * like bundle.h. */
#pragma once

#include "os/archive/bundle.h"

/* Writes to the descriptor, which stays the caller's, from its current position.
 * ERR_INVALID: the folder contains something that a bundle may not, such as a link.
 * ERR_TOO_LARGE: above a limit. */
enum err bundle_pack(const char *folder, int file, const struct bundle_limits *limits,
                     struct failure *why);
