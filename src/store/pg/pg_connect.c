/* pg_connect.c - connects with time limits, and queries the server for a struct
 * pg_hello. */
#include "store/pg/pg_connect.h"

#include <ctype.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEP_MS = 100, NS_PER_MS = 1000 * 1000 }; /* between two looks at the job */

enum { WITH_ADVICE_MAX = 160 }; /* bytes of a reason, so that the advice fits, too */

static const char hello_sql[] =
    "SELECT w.line, t.typname, t.oid, t.typarray"
    " FROM (SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8) AS line) w"
    " LEFT JOIN (pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace AND n.nspname = "
    "$1)"
    " ON t.typname IN ('commit_request_v101', 'commit_claim_v101', 'commit_document_v101',"
    " 'commit_run_v101')";

const char *pg_schema_name(const struct pg_options *options)
{
    return options->schema ? options->schema : "runcast";
}

/* Appends as much of the text as fits. Returns the new length. */
static size_t add(char out[PG_REASON_MAX], size_t len, struct slice text)
{
    size_t room = PG_REASON_MAX - 1 - len, taken = text.len < room ? text.len : room;
    memcpy(out + len, text.ptr, taken);
    return len + taken;
}

static bool is_advice(struct slice line)
{
    return line.len && line.ptr[0] == '\t';
}

void pg_reason(char out[PG_REASON_MAX], const char *message)
{
    struct slice rest = slice_of(message), line;
    size_t len = 0;
    while (slice_split(&rest, '\n', &line))
        if (line.len && !is_advice(line))
            len = add(out, len ? add(out, len, SLICE("; ")) : 0, line);
    while (len && out[len - 1] == ' ')
        len--;
    out[len] = '\0';
}

static enum err explain_conn(struct failure *why, const char *what, const char *message)
{
    char reason[PG_REASON_MAX];
    pg_reason(reason, message);
    return explain(why, ERR_STORE, "%s: %s", what, reason);
}

/* Returns advice for an error from libpq about a server whose identity is not verified. */
static const char *advice_for(const char *message)
{
    static const struct {
        const char *said, *advice;
    } advices[] = {
        { "does not match host name",
          "; the host in the address must be a name that the server's certificate has" },
        { "certificate verify failed",
          "; sslrootcert in the address must be a file with the CA that signed the "
          "server's certificate" },
        { "root certificate file",
          "; sslrootcert in the address must be a file with the CA that signed the "
          "server's certificate" },
        { "server does not support SSL",
          "; switch TLS on at the server: ssl = on, ssl_cert_file, ssl_key_file" },
    };
    for (size_t i = 0; i < sizeof(advices) / sizeof(advices[0]); i++)
        if (strstr(message, advices[i].said))
            return advices[i].advice;
    return "";
}

static void explain_unreached(struct failure *why, const char *message)
{
    const char *advice = advice_for(message);
    char reason[PG_REASON_MAX];
    pg_reason(reason, message);
    explain(why, ERR_STORE, "cannot reach the database: %.*s%s",
            *advice ? WITH_ADVICE_MAX : PG_REASON_MAX, reason, advice);
}

bool pg_is_another_history(const struct pg_options *options, const char *timeline,
                           const struct pg_hello *hello)
{
    return !options->lossless && timeline[0] && strcmp(hello->timeline, timeline);
}

PGresult *pg_run(PGconn *conn, const char *sql, int count, const char *const *values,
                 struct failure *why)
{
    PGresult *result = count ? PQexecParams(conn, sql, count, NULL, values, NULL, NULL, 0)
                             : PQexec(conn, sql);
    ExecStatusType status = PQresultStatus(result);
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK)
        return result;
    explain_conn(why, "rejected by the database", PQerrorMessage(conn));
    PQclear(result);
    return NULL;
}

int64_t pg_run_number(PGconn *conn, const char *sql, int64_t fallback)
{
    struct failure why;
    PGresult *result = pg_run(conn, sql, 0, NULL, &why);
    if (result && PQntuples(result) && !PQgetisnull(result, 0, 0))
        fallback = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    return fallback;
}

static void note_type(struct pg_types *types, const char *name, uint32_t one, uint32_t many)
{
    if (!strcmp(name, "commit_request_v101"))
        types->request = one, types->requests = many;
    else if (!strcmp(name, "commit_claim_v101"))
        types->claim = one, types->claims = many;
    else if (!strcmp(name, "commit_document_v101"))
        types->document = one, types->documents = many;
    else if (!strcmp(name, "commit_run_v101"))
        types->run = one, types->runs = many;
}

static enum err read_hello(PGresult *result, struct pg_hello *hello, struct failure *why)
{
    if (!result)
        return why->code;
    *hello = (struct pg_hello){ 0 };
    snprintf(hello->timeline, sizeof(hello->timeline), "%s", PQgetvalue(result, 0, 0));
    for (int i = 0; i < PQntuples(result); i++)
        note_type(&hello->types, PQgetvalue(result, i, 1),
                  (uint32_t)strtoul(PQgetvalue(result, i, 2), NULL, 10),
                  (uint32_t)strtoul(PQgetvalue(result, i, 3), NULL, 10));
    PQclear(result);
    return OK;
}

enum err pg_hello(PGconn *conn, const struct pg_options *options, struct pg_hello *hello,
                  struct failure *why)
{
    const char *values[] = { pg_schema_name(options) };
    return read_hello(pg_run(conn, hello_sql, 1, values, why), hello, why);
}

/* Waits for the response to what was sent. Returns false with the reason. */
static bool wait_for_answer(PGconn *conn, const struct work *work, struct failure *why)
{
    uint64_t end = uv_hrtime() + (uint64_t)PG_HELLO_MS * NS_PER_MS;
    while (PQisBusy(conn)) {
        struct pollfd socket = { .fd = PQsocket(conn), .events = POLLIN };
        if (!work_may_continue(work))
            explain(why, ERR_STORE, "cannot reach the database: canceled");
        else if (uv_hrtime() >= end)
            explain(why, ERR_STORE,
                    "cannot reach the database: it accepted the connection, but did not "
                    "respond for %d s",
                    PG_HELLO_MS / 1000);
        else if (poll(&socket, 1, STEP_MS) <= 0 || PQconsumeInput(conn))
            continue;
        else
            explain_conn(why, "cannot reach the database", PQerrorMessage(conn));
        return false;
    }
    return true;
}

/* Like pg_hello, within the limits of a job. */
static enum err hello_in_time(PGconn *conn, const struct pg_options *options,
                              const struct work *work, struct pg_hello *hello,
                              struct failure *why)
{
    const char *values[] = { pg_schema_name(options) };
    PGresult *result = NULL;
    if (!PQsendQueryParams(conn, hello_sql, 1, NULL, values, NULL, NULL, 0))
        return explain_conn(why, "cannot reach the database", PQerrorMessage(conn));
    if (!wait_for_answer(conn, work, why))
        return why->code;
    result = PQgetResult(conn);
    if (PQresultStatus(result) != PGRES_TUPLES_OK) {
        explain_conn(why, "rejected by the database", PQerrorMessage(conn));
        PQclear(result);
        return why->code;
    }
    if (!wait_for_answer(conn, work, why)) {
        PQclear(result);
        return why->code;
    }
    PQclear(PQgetResult(conn)); /* NULL: the end of the response */
    return read_hello(result, hello, why);
}

static void ignore_notice(void *arg, const PGresult *result)
{
    (void)arg;
    (void)result;
}

/* The values before dbname are defaults. The connection string can override them. */
PGconn *pg_connect(const struct pg_options *options, const struct work *work,
                   struct pg_hello *hello, struct failure *why)
{
    const char *const keys[] = { "connect_timeout",  "tcp_user_timeout",
                                 "keepalives_idle",  "keepalives_interval",
                                 "keepalives_count", "target_session_attrs",
                                 "gssencmode",       "fallback_application_name",
                                 "dbname",           NULL };
    const char *const values[] = { "5",       "5000",    "5",
                                   "2",       "3",       "read-write",
                                   "disable", "runcast", options->database,
                                   NULL };
    PGconn *conn = PQconnectdbParams(keys, values, 1);
    if (!conn) {
        explain(why, ERR_STORE, "cannot reach the database: out of memory");
        return NULL;
    }
    if (PQstatus(conn) != CONNECTION_OK) {
        explain_unreached(why, PQerrorMessage(conn));
    } else {
        PQsetNoticeReceiver(conn, ignore_notice, NULL);
        enum err err = work ? hello_in_time(conn, options, work, hello, why)
                            : pg_hello(conn, options, hello, why);
        if (!err)
            return conn;
    }
    PQfinish(conn);
    return NULL;
}
