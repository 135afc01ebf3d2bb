/* secret.h - secrets leave memory: zeros are written over them, which no compiler leaves out. */
#pragma once

#include "base/buf.h"

/* Wipes a terminated secret and frees it. NULL is fine. */
void secret_forget(char *secret);

/* The same of a buffer. */
void secret_forget_buf(struct buf *buf);

/* Leaves zeros. */
void secret_wipe(void *memory, size_t size);
