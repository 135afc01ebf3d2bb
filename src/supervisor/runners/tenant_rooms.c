/* tenant_rooms.c - creates the quota of an organization at its first request. */
#include "supervisor/runners/tenant_rooms.h"

#include <string.h>

#include "base/mem.h"
#include "supervisor/gateway_client/run_message.h"

enum { SHARES = 4 };

struct tenant_room {
    struct room room;
    char organization[MESSAGE_ID_MAX];
};

static struct slice key_of(const void *value)
{
    return slice_of(((const struct tenant_room *)value)->organization);
}

void tenant_rooms_init(struct tenant_rooms *rooms, size_t limit)
{
    *rooms = (struct tenant_rooms){ .all.limit = limit };
    table_init(&rooms->rooms, key_of);
}

void tenant_rooms_finish(struct tenant_rooms *rooms)
{
    size_t at = 0;
    for (void *own; (own = table_next(&rooms->rooms, &at));)
        free(own);
    table_finish(&rooms->rooms);
}

struct room *tenant_rooms_of(struct tenant_rooms *rooms, struct slice organization)
{
    struct tenant_room *own = table_find(&rooms->rooms, organization);
    if (!own) {
        assert(organization.len < sizeof(own->organization));
        own = mem_new(struct tenant_room);
        own->room =
            (struct room){ .limit = rooms->all.limit / SHARES, .outer = &rooms->all };
        memcpy(own->organization, organization.ptr, organization.len);
        table_insert(&rooms->rooms, own);
    }
    return &own->room;
}
