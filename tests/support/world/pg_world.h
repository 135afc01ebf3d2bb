/* pg_world.h - a real PostgreSQL for a test in C, and a relay before it that loses messages.
 *
 *   store ──TCP──► relay ──TCP──► PostgreSQL      relay_url: through the relay; url: straight
 *
 * One for all cases of a program: a case has a schema of its own. Both belong to a child, which
 * tests/support/js/pg_world.mjs is, and end with this process however it ends. Orders are
 * carried out when the call returns. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* For a group of tests. Aborts when PostgreSQL is not installed. */
int pg_world_set_up(void **state);
int pg_world_tear_down(void **state);

/* postgresql://… of the database, whose owner it names; borrowed. */
const char *pg_world_url(void);
const char *pg_world_relay_url(void);

/* What a statement of the superuser says, as psql does: columns by `|`, rows by `;`. Valid until
 * the next order. */
const char *pg_world_ask(const char *sql);

/* Any of the server's orders: "stop immediate", "stop fast", "kill", "start", "readonly on",
 * "freeze", "continue", "endbackends kill commit_v100"; and of the relay's: "hold client", "pass",
 * "refuse", "accept". The answer, valid until the next order. */
const char *pg_world_order(const char *format, ...) __attribute__((format(printf, 1, 2)));

enum pg_side { PG_CLIENT, PG_SERVER };

/* The n-th message from this side, of connections on which the text has been said, is cut, torn,
 * stalled, doubled, or becomes a ghost ("cut", "tear", "stall", "double", "ghost":
 * tests/support/js/pg_relay.mjs says what each is). Whatever was ordered before is forgotten. */
void pg_world_strike(const char *what, enum pg_side from, unsigned n, const char *of);

/* The message of the last order came. False: there were not so many. */
bool pg_world_struck(void);
