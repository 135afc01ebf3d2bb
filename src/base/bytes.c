/* bytes.c - shared bytes in one allocation each, and a cache of recurring names by hash. */
#include "base/bytes.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "base/rope_parts.h"
#include "base/table.h"

enum {
    SHARED_SLOTS = 4096,  /* a power of two */
    SHARED_LEN_MAX = 256, /* longer texts do not recur */
};

/* Two names with the same slot evict each other; references to an evicted one stay
 * valid. */
static struct bytes *shared[SHARED_SLOTS];

static struct bytes *bytes_begin(struct bytes *bytes, size_t len)
{
    bytes->refs = 1;
    bytes->json = BYTES_UNKNOWN;
    bytes->escaped = 0;
    bytes->len = (uint32_t)len;
    bytes->data[len] = '\0';
    return bytes;
}

static struct bytes *resize(char *memory, size_t len)
{
    assert(len < UINT32_MAX);
    return mem_resize(memory, sizeof(struct bytes) + len + 1);
}

struct bytes *bytes_create_empty(size_t len)
{
    return bytes_begin(resize(NULL, len), len);
}

struct bytes *bytes_take(char *memory, size_t len)
{
    struct bytes *bytes = resize(memory, len);
    memmove(bytes->data, bytes, len);
    return bytes_begin(bytes, len);
}

struct bytes *bytes_create(struct slice content)
{
    if (!content.ptr)
        return NULL;
    struct bytes *bytes = bytes_create_empty(content.len);
    memcpy(bytes->data, content.ptr, content.len);
    return bytes;
}

struct bytes *bytes_join(const struct slice *parts, size_t count)
{
    size_t len = 0, at = 0;
    for (size_t i = 0; i < count; i++)
        len += parts[i].len;
    struct bytes *bytes = bytes_create_empty(len);
    for (size_t i = 0; i < count; at += parts[i].len, i++)
        if (parts[i].len)
            memcpy(bytes->data + at, parts[i].ptr, parts[i].len);
    return bytes;
}

struct bytes *bytes_create_shared(struct slice name)
{
    if (!name.ptr || name.len > SHARED_LEN_MAX)
        return bytes_create(name);
    struct bytes **slot = &shared[table_hash(name) & (SHARED_SLOTS - 1)];
    if (!*slot || !slice_equal(bytes_slice(*slot), name)) {
        bytes_unref(*slot);
        *slot = bytes_create(name);
    }
    return bytes_ref(*slot);
}

static void forget_parts(const struct bytes *bytes)
{
    const struct rope_parts *parts = rope_parts_of(bytes);
    for (uint32_t i = 0; i < parts->count; i++)
        bytes_unref(parts->all[i].owner);
}

void bytes_unref(struct bytes *bytes)
{
    if (!bytes || --bytes->refs)
        return;
    if (bytes_are_parts(bytes))
        forget_parts(bytes);
    free(bytes);
}

void bytes_set(struct bytes **place, struct bytes *value)
{
    struct bytes *old = *place;
    *place = bytes_ref(value);
    bytes_unref(old);
}

void bytes_clear(struct bytes **place)
{
    bytes_set(place, NULL);
}

void bytes_forget_shared(void)
{
    for (size_t i = 0; i < SHARED_SLOTS; i++)
        bytes_clear(&shared[i]);
}
