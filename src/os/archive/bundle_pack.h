/* bundle_pack.h - packs a folder as bundle.h reads it; the same files give the same bytes.
 *
 * Names in order, no times, no owners, two modes. Blocks, as bundle.h does. */
#pragma once

#include "os/archive/bundle.h"

/* Writes to file, a descriptor and the caller's, from where it stands. ERR_INVALID: there is
 * something in the folder that a bundle cannot have, such as a link; ERR_TOO_LARGE: a limit. */
enum err bundle_pack(const char *folder, int file, const struct bundle_limits *limits,
                     struct failure *why);
