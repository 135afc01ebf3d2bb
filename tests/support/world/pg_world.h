/* pg_world.h - a real PostgreSQL for a test in C, and a relay to it that loses messages.
 *
 *   store ──TCP──► relay ──TCP──► PostgreSQL      relay_url: through the relay; url: direct
 *
 * All cases of a program share one server, each with its own schema. Both run in a child
 * process (tests/support/js/pg_world.mjs), and exit with this process however it exits. An
 * order has been carried out when its call returns. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Setup and teardown of a group of tests. Aborts if PostgreSQL is not installed. */
int pg_world_set_up(void **state);
int pg_world_tear_down(void **state);

/* postgresql://… of the database, with its owner; borrowed. */
const char *pg_world_url(void);
const char *pg_world_relay_url(void);

/* Returns the result of a statement of the superuser, as psql prints it: columns by `|`,
 * rows by `;`. Valid until the next order. */
const char *pg_world_ask(const char *sql);

/* Gives an order to the server: "stop immediate", "stop fast", "kill", "start", "promote",
 * "readonly on", "freeze", "continue", "endbackends kill commit_v101"; or to the relay:
 * "hold client", "pass", "refuse", "accept". Returns the result, valid until the next
 * order. */
const char *pg_world_order(const char *format, ...) __attribute__((format(printf, 1, 2)));

enum pg_side { PG_CLIENT, PG_SERVER };

/* Makes the n-th message from this side, on connections that have sent the text, suffer
 * "cut", "tear", "stall", "double" or "ghost" (tests/support/js/pg_relay.mjs explains
 * each). Replaces the previous order. */
void pg_world_strike(const char *what, enum pg_side from, unsigned n, const char *of);

/* Returns false if the message of the last order has not arrived. */
bool pg_world_struck(void);
