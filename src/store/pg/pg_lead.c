/* pg_lead.c - calls join_v101 and lead_v102, and keeps their results. */
#include "store/pg/pg_lead.h"

#include <stdio.h>
#include <string.h>

enum { FUNCTIONS_VERSION = 102 };

struct pg_term {
    uint64_t term;
};

const char pg_lead_columns[] =
    "led_realm, led_term, led_env, led_seq, led_purged, led_floor, led_stored";
const char pg_lead_position_columns[] = "env, seq, purged, floor, stored";

void pg_lead_finish(struct pg_lead *lead)
{
    uint32_t at = 0;
    for (struct pg_term *term; (term = slots_next(&lead->terms, &at));)
        free(term);
    slots_finish(&lead->terms);
}

uint64_t pg_lead_term(const void *owner, uint32_t env)
{
    const struct pg_lead *lead = owner;
    const struct pg_term *term = slots_get(&lead->terms, env);
    return term ? term->term : 0;
}

static void set_term(struct pg_lead *lead, uint32_t env, uint64_t term)
{
    void **place = slots_at(&lead->terms, env);
    if (!*place)
        *place = mem_new(struct pg_term);
    ((struct pg_term *)*place)->term = term;
}

void pg_lead_key_ids(const struct pg_options *options, char text[PG_KEY_IDS_TEXT])
{
    char ids[VAULT_KEYS][KEY_ID_TEXT_MAX];
    size_t count = options->vault ? vault_key_ids(options->vault, ids) : 0;
    int len = snprintf(text, PG_KEY_IDS_TEXT, "{");
    for (size_t i = 0; i < count; i++)
        len += snprintf(text + len, PG_KEY_IDS_TEXT - (size_t)len, "%s\"%s\"", i ? "," : "",
                        ids[i]);
    snprintf(text + len, PG_KEY_IDS_TEXT - (size_t)len, "}");
}

/* Finds a leader with none of our encryption keys: its name, first key and beat.
 *
 * Returns false if there is none, or the query fails. */
static bool find_stranger(PGconn *conn, const struct pg_options *options,
                          const char *key_ids, char name[64], char key[64], char beat[24])
{
    char sql[320];
    struct failure ignored;
    const char *values[] = { key_ids };
    snprintf(sql, sizeof(sql),
             "SELECT g.name, g.key_ids[1], g.beat FROM \"%s\".gateway g"
             " JOIN \"%s\".realm r ON r.leader = g.id"
             " WHERE r.realm = 0 AND g.key_ids <> '{}' AND NOT g.key_ids && $1::text[]",
             pg_schema_name(options), pg_schema_name(options));
    PGresult *result = pg_run(conn, sql, 1, values, &ignored);
    bool found = result && PQntuples(result);
    if (found) {
        snprintf(name, 64, "%s", PQgetvalue(result, 0, 0));
        snprintf(key, 64, "%s", PQgetvalue(result, 0, 1));
        snprintf(beat, 24, "%s", PQgetvalue(result, 0, 2));
    }
    PQclear(result);
    return found;
}

/* A gateway with another encryption key must neither stand by nor take over by its name.
 *
 * A leader that no longer beats does not count: it may have had an older key. */
static enum err check_keys(PGconn *conn, const struct pg_options *options,
                           const char *key_ids, struct failure *why)
{
    char name[64], key[64], before[24], beat[24], own[KEY_ID_TEXT_MAX] = "none";
    if (!find_stranger(conn, options, key_ids, name, key, before))
        return OK;
    int64_t waited = pg_run_number(conn, "SELECT count(pg_sleep(2.5))", 0);
    if (!waited || !find_stranger(conn, options, key_ids, name, key, beat) ||
        !strcmp(before, beat))
        return OK;
    if (options->vault)
        vault_key_id(options->vault, own);
    return explain(why, ERR_INVALID,
                   "the leading gateway \"%s\" has the encryption key %.16s, but this one "
                   "has %.16s; give all gateways of a database the same key, or this one "
                   "both (RUNCAST_NEXT_ENCRYPTION_KEY) while the key is replaced",
                   name, key, own);
}

enum err pg_lead_join(struct pg_lead *lead, PGconn *conn, const struct pg_options *options,
                      struct failure *why)
{
    char sql[128];
    pg_lead_key_ids(options, lead->key_ids);
    if (check_keys(conn, options, lead->key_ids, why))
        return why->code;
    snprintf(sql, sizeof(sql), "SELECT \"%s\".join_v101($1, $2, $3, %d, $4::text[], %d)",
             pg_schema_name(options), FUNCTIONS_VERSION, PG_WRITERS_MAX);
    const char *values[] = { options->name ? options->name : "gateway",
                             options->peer_url ? options->peer_url : "", RUNCAST_VERSION,
                             lead->key_ids };
    PGresult *result = pg_run(conn, sql, 4, values, why);
    if (!result)
        return why->code;
    lead->me = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    return OK;
}

void pg_lead_call_init(struct pg_lead_call *call, const struct pg_lead *lead,
                       const uint32_t *envs, size_t count, const struct store_lead *take)
{
    *call = (struct pg_lead_call){ 0 };
    pg_array_begin(&call->realms, PG_INT4);
    pg_array_begin(&call->envs, PG_INT4);
    pg_array_begin(&call->env_realms, PG_INT4);
    pg_array_begin(&call->dead, PG_INT8);
    pg_array_begin(&call->dead_beats, PG_INT8);
    pg_put_int4(&call->realms, PG_REALM);
    for (size_t i = 0; i < count; i++) {
        pg_put_int4(&call->envs, (int32_t)envs[i]);
        pg_put_int4(&call->env_realms, PG_REALM);
    }
    for (size_t i = 0; take && i < take->dead_count; i++) {
        pg_put_int8(&call->dead, (int64_t)take->dead[i].id);
        pg_put_int8(&call->dead_beats, (int64_t)take->dead[i].beat);
    }
    pg_param_int8(&call->params, lead->me);
    pg_param_array(&call->params, PG_INT4_ARRAY, pg_array_end(&call->realms));
    pg_param_array(&call->params, PG_INT4_ARRAY, pg_array_end(&call->envs));
    pg_param_array(&call->params, PG_INT4_ARRAY, pg_array_end(&call->env_realms));
    pg_param_array(&call->params, PG_INT8_ARRAY, pg_array_end(&call->dead));
    pg_param_array(&call->params, PG_INT8_ARRAY, pg_array_end(&call->dead_beats));
}

void pg_lead_call_finish(struct pg_lead_call *call)
{
    pg_params_finish(&call->params);
    pg_array_finish(&call->realms);
    pg_array_finish(&call->envs);
    pg_array_finish(&call->env_realms);
    pg_array_finish(&call->dead);
    pg_array_finish(&call->dead_beats);
}

int64_t pg_lead_number(const PGresult *answer, int row, int column)
{
    struct slice value = { PQgetvalue(answer, row, column),
                           (size_t)PQgetlength(answer, row, column) };
    int64_t number = 0;
    int32_t small = 0;
    if (value.len == 4 && pg_take_int4(&value, &small))
        return small;
    pg_take_int8(&value, &number);
    return number;
}

/* Reads the columns of pg_lead_position_columns; first is the first of them. */
static struct store_position position_at(const PGresult *answer, int row, int first)
{
    return (struct store_position){
        .env = (uint32_t)pg_lead_number(answer, row, first),
        .seq = (uint64_t)pg_lead_number(answer, row, first + 1),
        .purged = (uint64_t)pg_lead_number(answer, row, first + 2),
        .floor = pg_lead_number(answer, row, first + 3),
        .stored = pg_lead_number(answer, row, first + 4),
    };
}

/* Keeps our position of an environment that we already lead, because it has advanced
 * since. */
static void take_environment(struct pg_lead *lead, const PGresult *answer, int row)
{
    struct store_position position = position_at(answer, row, 2);
    bool is_new = pg_lead_term(lead, position.env) != lead->term;
    set_term(lead, position.env, lead->term);
    if (is_new)
        positions_put(lead->positions, position);
}

/* The first answer has the counters of all environments. Those that were noted before may be of
 * another history. */
static void forget_noted(struct pg_lead *lead, const PGresult *answer)
{
    if (!lead->term && PQntuples(answer))
        positions_finish(lead->positions);
}

bool pg_lead_take(struct pg_lead *lead, const PGresult *answer)
{
    forget_noted(lead, answer);
    for (int row = 0; row < PQntuples(answer); row++) {
        lead->term = (uint64_t)pg_lead_number(answer, row, 1);
        if (!PQgetisnull(answer, row, 2))
            take_environment(lead, answer, row);
    }
    return PQntuples(answer) > 0;
}

void pg_lead_begin_history(struct pg_lead *lead)
{
    if (!lead->term)
        positions_finish(lead->positions);
}

void pg_lead_note(struct pg_lead *lead, const PGresult *answer)
{
    for (int row = 0; row < PQntuples(answer); row++) {
        struct store_position position = position_at(answer, row, 0);
        if (!pg_lead_term(lead, position.env))
            positions_put(lead->positions, position);
    }
}

static PGresult *ask_lead(const struct pg_lead *lead, PGconn *conn, const char *schema)
{
    struct pg_lead_call call;
    struct buf sql = { 0 };
    Oid types[6];
    const char *values[6];
    int lens[6], formats[6];
    pg_lead_call_init(&call, lead, NULL, 0, NULL);
    for (size_t i = 0; i < 6; i++) {
        types[i] = call.params.items[i].type;
        values[i] = pg_param_value(&call.params, i);
        lens[i] = (int)call.params.items[i].len;
        formats[i] = 1;
    }
    buf_print(&sql, "SELECT %s FROM \"%s\".lead_v102($1, $2, $3, $4, $5, $6)",
              pg_lead_columns, schema);
    buf_add_char(&sql, '\0');
    PGresult *answer = PQexecParams(conn, sql.ptr, 6, types, values, lens, formats, 1);
    buf_finish(&sql);
    pg_lead_call_finish(&call);
    return answer;
}

enum err pg_lead_begin(struct pg_lead *lead, PGconn *conn, const struct pg_options *options,
                       struct failure *why)
{
    char reason[PG_REASON_MAX];
    PGresult *answer = ask_lead(lead, conn, pg_schema_name(options));
    if (PQresultStatus(answer) != PGRES_TUPLES_OK) {
        pg_reason(reason, PQerrorMessage(conn));
        explain(why, ERR_STORE, "cannot take the lead: %s", reason);
    } else if (!pg_lead_take(lead, answer)) {
        explain(why, ERR_STORE, "another gateway leads this database");
    } else {
        why->code = OK;
    }
    PQclear(answer);
    return why->code;
}
