/* sqlite_growth.c - notes growth row by row, and adds it up at the end of a transaction. */
#include "store/sqlite/sqlite_growth.h"

#include "base/mem.h"

void sqlite_growths_finish(struct sqlite_growths *growths)
{
    free(growths->entries);
    *growths = (struct sqlite_growths){ 0 };
}

void sqlite_growths_add(struct sqlite_growths *growths, uint32_t env, int64_t bytes)
{
    if (!bytes)
        return;
    if (growths->count == growths->capacity) {
        growths->capacity = growths->capacity ? 2 * growths->capacity : 64;
        growths->entries =
            mem_resize(growths->entries, growths->capacity * sizeof(growths->entries[0]));
    }
    growths->entries[growths->count++] = (struct sqlite_growth){ env, bytes };
}

static int by_env(const void *a, const void *b)
{
    uint32_t left = ((const struct sqlite_growth *)a)->env;
    uint32_t right = ((const struct sqlite_growth *)b)->env;
    return (left > right) - (left < right);
}

void sqlite_growths_merge(struct sqlite_growths *growths)
{
    size_t kept = 0;
    if (growths->count < 2)
        return;
    qsort(growths->entries, growths->count, sizeof(growths->entries[0]), by_env);
    for (size_t i = 1; i < growths->count; i++) {
        if (growths->entries[i].env == growths->entries[kept].env)
            growths->entries[kept].bytes += growths->entries[i].bytes;
        else
            growths->entries[++kept] = growths->entries[i];
    }
    growths->count = kept + 1;
}

void sqlite_growths_take(struct sqlite_growths *to, struct sqlite_growths *from)
{
    for (size_t i = 0; i < from->count; i++)
        sqlite_growths_add(to, from->entries[i].env, from->entries[i].bytes);
    from->count = 0;
}
