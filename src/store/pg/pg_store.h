/* pg_store.h - a PostgreSQL database, shared by several gateways, one of which leads. */
#pragma once

#include "runcast/store.h"

struct uv_loop_s;
struct vault;

enum { PG_WRITERS_MAX = 16, PG_READERS_MAX = 16 };

/* Strings and vault are borrowed until the store is closed. */
struct pg_options {
    const char *database;      /* for libpq: a URL or keywords; may list several hosts */
    const char *schema;        /* lower case letters, digits and _; NULL: runcast */
    const char *name;          /* of this gateway, kept across restarts; NULL: gateway */
    const char *peer_url;      /* URL for other gateways; NULL: none */
    const struct vault *vault; /* other gateways see which keys it opens; NULL: none */
    const char *durability;    /* synchronous_commit for acknowledged writes; NULL: on */
    int writers, readers;      /* connections; 0: 2 writers, 3 readers */
    unsigned timeout_ms;       /* writes fail after this time without a response; 0: 2 s */
    /* a failover never loses acknowledged writes, whichever server is promoted */
    bool lossless;
    bool stands_by; /* only join; lead nothing yet */
};

/* Connects, upgrades the schema, joins and, unless stands_by, takes the lead if it is free.
 *
 * Blocks; for a start only. Returns ERR_STORE with the reason, which contains no secret. */
enum err pg_store_open(struct uv_loop_s *loop, const struct pg_options *options,
                       struct store **store, struct failure *why);
