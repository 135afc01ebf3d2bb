/* secret.h - overwrites secrets in memory with zeros, in a way that no compiler optimizes
 * out. */
#pragma once

#include "base/buf.h"

/* Wipes a terminated secret and frees it. Ignores NULL. */
void secret_forget(char *secret);

/* Wipes and frees the content of a buffer. */
void secret_forget_buf(struct buf *buf);

/* Fills the memory with zeros. */
void secret_wipe(void *memory, size_t size);
