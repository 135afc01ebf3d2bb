/* gateway_list.h - the gateways on the database, as the one that leads sees them.
 *
 *   heartbeats in the database (leading.h) ─┐
 *   reports of followers (source.h) ────────┴─► name, role, version, since, lag, address
 *
 * The role is "leads", "follows", "stands by" or "down", the last two with a reason, and "leads"
 * with one while the database does not confirm it. Nothing is stored: each list is made from
 * memory. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "core/replication/source.h"
#include "store/lead/leading.h"

struct gateway_list {
    struct loop *loop;
    const struct leading *leading;
    const struct source *source; /* NULL: this gateway has no followers */
    const char *name, *peer_url; /* of this gateway, which leads */
    int64_t since_ms;            /* when it began to lead; Unix ms */
};

/* Prints a table. */
void gateway_list_print(const struct gateway_list *list, FILE *out);

/* Appends {"gateways": […]}. The addresses are for operators only. */
void gateway_list_add(const struct gateway_list *list, bool has_addresses, struct buf *out);
