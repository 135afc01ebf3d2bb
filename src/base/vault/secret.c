/* secret.c - wipes secrets. */
#include "base/vault/secret.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

void secret_forget(char *secret)
{
    if (secret)
        OPENSSL_cleanse(secret, strlen(secret));
    free(secret);
}

void secret_forget_buf(struct buf *buf)
{
    if (buf->ptr)
        OPENSSL_cleanse(buf->ptr, buf->len);
    buf_finish(buf);
}

void secret_wipe(void *memory, size_t size)
{
    OPENSSL_cleanse(memory, size);
}
