/* sqlite_growth.h - how much a transaction changes the stored bytes of environments. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sqlite_growth {
    uint32_t env;
    int64_t bytes;
};

struct sqlite_growths {
    struct sqlite_growth *entries; /* several may be for the same environment */
    size_t count, capacity;
};

void sqlite_growths_finish(struct sqlite_growths *growths);

void sqlite_growths_add(struct sqlite_growths *growths, uint32_t env, int64_t bytes);

/* Merges the entries of each environment. */
void sqlite_growths_merge(struct sqlite_growths *growths);

/* Appends the entries of from, and empties it. */
void sqlite_growths_take(struct sqlite_growths *to, struct sqlite_growths *from);
