/* crypto_memory.c - allocates memory for OpenSSL. */
#include "base/vault/crypto_memory.h"

#include <assert.h>
#include <openssl/crypto.h>

#include "base/mem.h"

static void *allocate(size_t size, const char *file, int line)
{
    (void)file, (void)line;
    void *memory = size ? malloc(size) : NULL; /* OpenSSL clears what it wants cleared */
    if (size && !memory)
        mem_exhausted();
    return memory;
}

static void *resize(void *memory, size_t size, const char *file, int line)
{
    (void)file, (void)line;
    if (size)
        return mem_resize(memory, size);
    free(memory);
    return NULL;
}

static void release(void *memory, const char *file, int line)
{
    (void)file, (void)line;
    free(memory);
}

void crypto_memory_init(void)
{
    int done = CRYPTO_set_mem_functions(allocate, resize, release);
    assert(done); /* otherwise OpenSSL has allocated something */
}
