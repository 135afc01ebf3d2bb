/* pg_lead.h - this process among those that know the database: its number, and what it leads.
 *
 * As long as one gateway leads everything, all environments are of realm 0. */
#pragma once

#include "base/slots.h"
#include "store/pg/pg_connect.h"
#include "store/positions.h"

struct pg_lead {
    int64_t me; /* of the gateway's row; its writers are PG_WRITERS_MAX times that, on */
    struct slots terms;          /* of struct pg_term, by environment */
    uint64_t term;               /* of realm 0; 0: it is not ours */
    struct positions *positions; /* follow */
};

enum { PG_REALM = 0 };

void pg_lead_finish(struct pg_lead *lead);

/* A pg_term_fn on a pg_lead. 0: the environment is not led. */
uint64_t pg_lead_term(const void *lead, uint32_t env);

/* Joins under the name of the options, as the process that this is. */
enum err pg_lead_join(struct pg_lead *lead, PGconn *conn, const struct pg_options *options,
                      struct failure *why);

/* Puts in what lead_v100 takes: the realm, environments that may be new in it, and who is dead, as
 * far as somebody is. The arrays are borrowed by the parameters. */
struct pg_lead_call {
    struct pg_params params;
    struct pg_array realms, envs, env_realms, dead, dead_beats;
};

void pg_lead_call_init(struct pg_lead_call *call, const struct pg_lead *lead,
                       const uint32_t *envs, size_t count, const struct store_lead *take);
void pg_lead_call_finish(struct pg_lead_call *call);

/* The columns of its answer, for the statement. */
extern const char pg_lead_columns[];

/* Takes what lead_v100 has answered, in binary: terms and counters. False: we lead nothing. */
bool pg_lead_take(struct pg_lead *lead, const PGresult *answer);

/* Takes the lead and waits for the answer. ERR_STORE with the reason: somebody else has it. */
enum err pg_lead_begin(struct pg_lead *lead, PGconn *conn, const struct pg_options *options,
                       struct failure *why);
