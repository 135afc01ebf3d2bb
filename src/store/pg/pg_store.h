/* pg_store.h - a PostgreSQL database, which several gateways know and one of them leads. */
#pragma once

#include "runcast/store.h"

struct uv_loop_s;

enum { PG_WRITERS_MAX = 16, PG_READERS_MAX = 16 };

/* Texts are borrowed until the store is closed. */
struct pg_options {
    const char *database; /* as libpq takes it: a URL, or keywords; a list of hosts too */
    const char *schema;   /* lower case letters, digits and _; NULL: runcast */
    const char *name;     /* of this gateway, the same after a restart; NULL: gateway */
    const char *peer_url; /* where other gateways reach it; NULL: nowhere */
    const char *const *key_ids; /* the encryption keys that it can open */
    size_t key_id_count;
    const char *durability; /* synchronous_commit of what is acknowledged; NULL: on */
    int writers, readers;   /* connections; 0: 2 and 3 */
    unsigned patience_ms;   /* writes fail once there was no answer for so long; 0: 2 s */
    bool lossless;          /* a failover has lost nothing, whoever is primary now */
    bool stands_by;         /* joins, and leads nothing yet */
};

/* Connects, brings the schema forward, joins under the name, and takes the lead of what nobody
 * else leads. Blocks, as a start may. ERR_STORE with the reason, which names no secret. */
enum err pg_store_open(struct uv_loop_s *loop, const struct pg_options *options,
                       struct store **store, struct failure *why);
