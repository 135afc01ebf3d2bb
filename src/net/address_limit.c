/* address_limit.c - a table with one entry per address, kept while it has connections. */
#include "net/address_limit.h"

#include "base/mem.h"

enum { NETWORK_BYTES = 8 };

struct address_count {
    unsigned char ip[16]; /* for IPv6, the network */
    unsigned count;
    bool exempt;
};

static struct slice key_of(const void *value)
{
    const struct address_count *entry = value;
    return (struct slice){ (const char *)entry->ip, sizeof(entry->ip) };
}

void address_limit_init(struct address_limit *limit)
{
    table_init(&limit->counts, key_of);
}

void address_limit_finish(struct address_limit *limit)
{
    table_finish(&limit->counts);
}

static struct address_count *find(struct address_limit *limit,
                                  const struct address *address)
{
    struct address_count wanted = { 0 };
    size_t len = address_is_ip4(address) ? sizeof(wanted.ip) : NETWORK_BYTES;
    memcpy(wanted.ip, address->ip, len);
    struct address_count *entry = table_find(&limit->counts, key_of(&wanted));
    if (entry)
        return entry;
    entry = mem_new(struct address_count);
    *entry = wanted;
    table_insert(&limit->counts, entry);
    return entry;
}

bool address_limit_enter(struct address_limit *limit, struct address_slot *place,
                         const struct address *address, unsigned most)
{
    address_limit_leave(limit, place);
    struct address_count *entry = find(limit, address);
    if (entry->count >= most && !entry->exempt)
        return false; /* the entry has other connections: most is at least 1 */
    entry->count++;
    place->of = entry;
    return true;
}

void address_limit_leave(struct address_limit *limit, struct address_slot *place)
{
    struct address_count *entry = place->of;
    place->of = NULL;
    if (!entry || --entry->count)
        return;
    table_remove(&limit->counts, key_of(entry));
    free(entry);
}

void address_limit_exempt(struct address_slot *place)
{
    if (place->of)
        place->of->exempt = true;
}
