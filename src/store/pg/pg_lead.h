/* pg_lead.h - this process's row among the gateways, and the environments that it leads.
 *
 * A realm is a group of environments with one leader. Today all environments are in realm
 * 0: one gateway leads everything. */
#pragma once

#include "base/slots.h"
#include "base/vault/vault.h"
#include "store/pg/pg_connect.h"
#include "store/positions.h"

enum { PG_KEY_IDS_TEXT = VAULT_KEYS * (KEY_ID_TEXT_MAX + 2) + 3 };

struct pg_lead {
    /* number of the gateway's row; its writers are numbered from PG_WRITERS_MAX times
     * that */
    int64_t me;
    struct slots terms;            /* struct pg_term, by environment */
    uint64_t term;                 /* of realm 0; 0: not led */
    struct positions *positions;   /* updated when the lead is taken */
    char key_ids[PG_KEY_IDS_TEXT]; /* as in the gateway's row */
};

enum { PG_REALM = 0 };

void pg_lead_finish(struct pg_lead *lead);

/* A pg_term_fn; lead is a struct pg_lead. Returns 0 if the environment is not led. */
uint64_t pg_lead_term(const void *lead, uint32_t env);

/* Joins under the name in the options. */
enum err pg_lead_join(struct pg_lead *lead, PGconn *conn, const struct pg_options *options,
                      struct failure *why);

/* Writes the ids of the keys that this gateway can open, as an array: {"one","two"}. */
void pg_lead_key_ids(const struct pg_options *options, char text[PG_KEY_IDS_TEXT]);

/* Parameters of lead_v102: the realm, environments that may be new, and dead gateways if
 * any.
 *
 * params borrows the arrays. */
struct pg_lead_call {
    struct pg_params params;
    struct pg_array realms, envs, env_realms, dead, dead_beats;
};

void pg_lead_call_init(struct pg_lead_call *call, const struct pg_lead *lead,
                       const uint32_t *envs, size_t count, const struct store_lead *take);
void pg_lead_call_finish(struct pg_lead_call *call);

/* Result columns of lead_v102, for a statement; and those of positions alone. */
extern const char pg_lead_columns[], pg_lead_position_columns[];

/* Reads a binary number of a row; 0 for NULL. */
int64_t pg_lead_number(const PGresult *answer, int row, int column);

/* Reads the binary result of lead_v102: terms and counters. Returns false if we lead
 * nothing. */
bool pg_lead_take(struct pg_lead *lead, const PGresult *answer);

/* Notes the positions of environments that we do not lead, from the table of
 * environments. */
void pg_lead_note(struct pg_lead *lead, const PGresult *answer);

/* Forgets the positions that were noted: they are of another history. Those that came with the
 * lead stay, because a history without this lead has another leader. */
void pg_lead_begin_history(struct pg_lead *lead);

/* Takes the lead and waits for the result. Returns ERR_STORE with the reason if another
 * gateway has the lead. */
enum err pg_lead_begin(struct pg_lead *lead, PGconn *conn, const struct pg_options *options,
                       struct failure *why);
