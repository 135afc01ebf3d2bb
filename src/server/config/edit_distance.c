/* edit_distance.c - Levenshtein's, one row at a time. */
#include "server/config/edit_distance.h"

#include "server/config/config_value.h"

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

unsigned edit_distance(struct slice a, struct slice b)
{
    unsigned row[CONFIG_NAME_MAX + 1];
    if (a.len > CONFIG_NAME_MAX || b.len > CONFIG_NAME_MAX)
        return CONFIG_NAME_MAX;
    for (size_t j = 0; j <= b.len; j++)
        row[j] = (unsigned)j;
    for (size_t i = 0; i < a.len; i++) {
        unsigned diagonal = row[0]++;
        for (size_t j = 0; j < b.len; j++) {
            unsigned replaced = diagonal + (a.ptr[i] != b.ptr[j]);
            diagonal = row[j + 1];
            row[j + 1] = least(replaced, least(row[j], diagonal) + 1);
        }
    }
    return row[b.len];
}
