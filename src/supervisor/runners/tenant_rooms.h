/* tenant_rooms.h - limits the memory for request bodies per organization and in all.
 *
 *   body from a controller ─► quota of its organization ─► outer: quota of all
 *
 * Quotas (struct room) are freed only at the end, because requests point to them; a machine
 * executes runs of few organizations. */
#pragma once

#include "base/room.h"
#include "base/table.h"

struct tenant_rooms {
    struct room all;
    struct table rooms; /* struct tenant_room, by organization */
};

/* limit: bytes in all; each organization may use a quarter of it. */
void tenant_rooms_init(struct tenant_rooms *rooms, size_t limit);
void tenant_rooms_finish(struct tenant_rooms *rooms);

struct room *tenant_rooms_of(struct tenant_rooms *rooms, struct slice organization);
