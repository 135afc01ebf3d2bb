/* pg_reach.h - which ports and files a database requires, for confining the process. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { PG_PORTS_MAX = 16, PG_FILES_MAX = 8 };

struct pg_reach {
    uint16_t ports[PG_PORTS_MAX]; /* to connect to */
    size_t port_count;
    char *files[PG_FILES_MAX]; /* certificates, keys, passwords; some may not exist */
    size_t file_count;
    bool unverified; /* the server is on another machine and need not prove its identity */
};

/* Derives it from the connection string and libpq's variables, without connecting.
 *
 * Returns ERR_INVALID if libpq rejects the string; the reason contains no password. */
enum err pg_reach_of(const char *database, struct pg_reach *reach, struct failure *why);
void pg_reach_finish(struct pg_reach *reach);
