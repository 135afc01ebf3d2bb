/* tenant_rooms.h - the memory that the runs of one organization may take on a machine that serves
 * several.
 *
 *   body of a controller ─► room of its organization ─► outer: room of all
 *
 * A room stays until the supervisor ends, as requests point to it: a machine executes for few
 * organizations. */
#pragma once

#include "base/room.h"
#include "base/table.h"

struct tenant_rooms {
    struct room all;
    struct table rooms; /* of struct tenant_room, by organization */
};

/* limit: bytes of all; an organization has a quarter of it. */
void tenant_rooms_init(struct tenant_rooms *rooms, size_t limit);
void tenant_rooms_finish(struct tenant_rooms *rooms);

struct room *tenant_rooms_of(struct tenant_rooms *rooms, struct slice organization);
