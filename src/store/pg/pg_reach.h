/* pg_reach.h - what a process reaches beyond itself that opens a database, for who confines it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { PG_PORTS_MAX = 16, PG_FILES_MAX = 8 };

struct pg_reach {
    uint16_t ports[PG_PORTS_MAX]; /* that are connected to */
    size_t port_count;
    char *files[PG_FILES_MAX]; /* certificates, keys, passwords; some may not be there */
    size_t file_count;
    bool unproved; /* a server elsewhere, which need not prove that it is the right one */
};

/* By the address alone, and libpq's variables: nothing is connected to. ERR_INVALID: libpq does
 * not take the address; the reason shows no password. */
enum err pg_reach_of(const char *database, struct pg_reach *reach, struct failure *why);
void pg_reach_finish(struct pg_reach *reach);
