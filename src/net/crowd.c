/* crowd.c - a table with one entry per address, kept while it has connections. */
#include "net/crowd.h"

#include "base/mem.h"

enum { NETWORK_BYTES = 8 };

struct neighbour {
    unsigned char ip[16]; /* for IPv6, the network */
    unsigned count;
    bool excused;
};

static struct slice key_of(const void *value)
{
    const struct neighbour *neighbour = value;
    return (struct slice){ (const char *)neighbour->ip, sizeof(neighbour->ip) };
}

void crowd_init(struct crowd *crowd)
{
    table_init(&crowd->neighbours, key_of);
}

void crowd_finish(struct crowd *crowd)
{
    table_finish(&crowd->neighbours);
}

static struct neighbour *find(struct crowd *crowd, const struct address *address)
{
    struct neighbour wanted = { 0 };
    size_t len = address_is_ip4(address) ? sizeof(wanted.ip) : NETWORK_BYTES;
    memcpy(wanted.ip, address->ip, len);
    struct neighbour *neighbour = table_find(&crowd->neighbours, key_of(&wanted));
    if (neighbour)
        return neighbour;
    neighbour = mem_new(struct neighbour);
    *neighbour = wanted;
    table_insert(&crowd->neighbours, neighbour);
    return neighbour;
}

bool crowd_enter(struct crowd *crowd, struct crowd_place *place,
                 const struct address *address, unsigned most)
{
    crowd_leave(crowd, place);
    struct neighbour *neighbour = find(crowd, address);
    if (neighbour->count >= most && !neighbour->excused)
        return false; /* the entry has other connections: most is at least 1 */
    neighbour->count++;
    place->of = neighbour;
    return true;
}

void crowd_leave(struct crowd *crowd, struct crowd_place *place)
{
    struct neighbour *neighbour = place->of;
    place->of = NULL;
    if (!neighbour || --neighbour->count)
        return;
    table_remove(&crowd->neighbours, key_of(neighbour));
    free(neighbour);
}

void crowd_excuse(struct crowd_place *place)
{
    if (place->of)
        place->of->excused = true;
}
