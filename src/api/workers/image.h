/* image.h - what clients take for the image of a deployed version, which here is a directory.
 *
 * The CLI, the official supervisor and tasks want a name and a platform; nothing is pulled. */
#pragma once

#include "accounts/accounts.h"
#include "base/buf.h"

/* "linux/amd64": of the machine that the gateway was built for. */
extern const char image_platform[];

/* "runcast/<project ref>:<version>". */
void image_add_name(struct buf *out, const struct account *account, struct slice version);
