/* batch_token.c - adds the public token of a batch to a response. */
#include "api/batches/batch_token.h"

#include <stdio.h>

void batch_add_token(struct api_call *call, const char *id, bool is_new, bool writes)
{
    char read[ID_MAX + 16], write[ID_MAX + 16];
    const char *scopes[2];
    size_t count = 0;
    snprintf(read, sizeof(read), "read:batch:%s", id);
    snprintf(write, sizeof(write), "write:batch:%s", id);
    if (is_new || !api_check_scope(call, "read", "batch", slice_of(id)))
        scopes[count++] = read;
    if (writes && (is_new || !api_check_scope(call, "write", "batch", slice_of(id))))
        scopes[count++] = write;
    api_add_token(call, scopes, count);
}
