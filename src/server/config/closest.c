/* closest.c - a name is close if it extends the given one, or differs in few characters. */
#include "server/config/closest.h"

#include "server/config/config_value.h"

enum { SHORT_LEN = 6, BEGINNING_MIN = 3 };

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Returns the Levenshtein distance: characters added, removed or replaced. Returns
 * CONFIG_NAME_MAX for longer names. */
static unsigned edit_distance(struct slice a, struct slice b)
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

void closest_offer(struct closest *closest, struct slice name)
{
    struct slice given = closest->given;
    unsigned too_far = given.len < SHORT_LEN ? 2 : 3;
    bool begins = given.len >= BEGINNING_MIN && given.len < name.len &&
                  memcmp(given.ptr, name.ptr, given.len) == 0;
    unsigned distance = begins ? 1 : edit_distance(given, name);
    if (distance >= (closest->found.ptr ? closest->distance : too_far))
        return;
    closest->distance = distance;
    closest->found = name;
}
