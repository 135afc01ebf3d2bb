/* pg_refusal.c - the table of PostgreSQL's error codes. */
#include "store/pg/sql/pg_refusal.h"

#include <stddef.h>
#include <string.h>

static const struct {
    const char *prefix;
    enum pg_remedy remedy;
} remedies[] = {
    { "53100", PG_NO_SPACE },   /* disk_full */
    { "57014", PG_STOPPED },    /* query_canceled */
    { "55P03", PG_STOPPED },    /* lock_not_available: lock_timeout */
    { "57P", PG_REPEAT },       /* shutdown, crash, cannot connect now */
    { "08", PG_REPEAT },        /* connection exceptions, also of a pooler */
    { "25006", PG_REPEAT },     /* read only: it is a standby now */
    { "40", PG_REPEAT },        /* serialization, deadlock */
    { "53400", PG_ONE_BY_ONE }, /* a configured limit, such as that of temporary files */
    { "53", PG_REPEAT },        /* too many connections, out of memory */
    { "22", PG_ONE_BY_ONE },    /* data exceptions */
    { "23", PG_ONE_BY_ONE },    /* constraints */
    { "54", PG_ONE_BY_ONE },    /* limits of the server: a row, an index entry */
};

enum pg_remedy pg_remedy_of(const char *sqlstate)
{
    if (!sqlstate)
        return PG_REPEAT;
    for (size_t i = 0; i < sizeof(remedies) / sizeof(remedies[0]); i++)
        if (!strncmp(sqlstate, remedies[i].prefix, strlen(remedies[i].prefix)))
            return remedies[i].remedy;
    return PG_REFUSED;
}
