/* sqlite_growth.h - how many bytes more, or less, environments store after a transaction. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sqlite_growth {
    uint32_t env;
    int64_t bytes;
};

struct sqlite_growths {
    struct sqlite_growth *entries; /* an environment may be in several */
    size_t count, capacity;
};

void sqlite_growths_finish(struct sqlite_growths *growths);

void sqlite_growths_add(struct sqlite_growths *growths, uint32_t env, int64_t bytes);

/* Leaves one entry for each environment. */
void sqlite_growths_merge(struct sqlite_growths *growths);

/* Appends the entries of another, which has none afterwards. */
void sqlite_growths_take(struct sqlite_growths *to, struct sqlite_growths *from);
