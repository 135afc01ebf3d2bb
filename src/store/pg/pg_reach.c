/* pg_reach.c - parses a connection string like libpq does. */
#include "store/pg/pg_reach.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { PORT_OF_POSTGRES = 5432 };

static void add_port(struct pg_reach *reach, struct slice text)
{
    char digits[8];
    snprintf(digits, sizeof(digits), "%.*s", SLICE_ARG(text));
    unsigned long port = strtoul(digits, NULL, 10);
    if (reach->port_count < PG_PORTS_MAX)
        reach->ports[reach->port_count++] =
            (uint16_t)(port && port <= UINT16_MAX ? port : PORT_OF_POSTGRES);
}

/* One port per host, or one for all hosts. A missing one is the default port. */
static void add_ports(struct pg_reach *reach, const char *list)
{
    struct slice rest = slice_of(list ? list : ""), port;
    if (!rest.len)
        add_port(reach, rest);
    while (slice_split(&rest, ',', &port))
        add_port(reach, port);
}

static void add_file(struct pg_reach *reach, const char *path)
{
    if (path && path[0] == '/' && reach->file_count < PG_FILES_MAX)
        reach->files[reach->file_count++] = mem_text(slice_of(path));
}

/* libpq's default file for a root certificate. */
static void add_usual_files(struct pg_reach *reach)
{
    const char *home = getenv("HOME");
    char path[512];
    if (!home)
        return;
    snprintf(path, sizeof(path), "%s/.postgresql/root.crt", home);
    add_file(reach, path);
}

static const PQconninfoOption *find(const PQconninfoOption *all, const char *keyword)
{
    for (; all && all->keyword; all++)
        if (!strcmp(all->keyword, keyword))
            return all;
    return NULL;
}

/* Returns the value from the connection string, or else from libpq's variables. */
static const char *value_of(const PQconninfoOption *given, const PQconninfoOption *usual,
                            const char *keyword)
{
    const PQconninfoOption *said = find(given, keyword), *other = find(usual, keyword);
    return said && said->val ? said->val : other ? other->val : NULL;
}

/* Returns true for a UNIX socket or a loopback address. */
static bool is_here(struct slice host)
{
    return !host.len || *host.ptr == '/' || *host.ptr == '@' ||
           slice_is(host, "localhost") || slice_is(host, "::1") ||
           slice_starts(host, "127.");
}

static bool has_hosts_elsewhere(const char *list)
{
    struct slice rest = slice_of(list ? list : ""), host;
    while (slice_split(&rest, ',', &host))
        if (!is_here(host))
            return true;
    return false;
}

static bool is_unverified(const PQconninfoOption *given, const PQconninfoOption *usual)
{
    const char *mode = value_of(given, usual, "sslmode");
    return (!mode || strcmp(mode, "verify-full")) &&
           (has_hosts_elsewhere(value_of(given, usual, "host")) ||
            has_hosts_elsewhere(value_of(given, usual, "hostaddr")));
}

enum err pg_reach_of(const char *database, struct pg_reach *reach, struct failure *why)
{
    static const char *const files[] = { "passfile",    "sslcert", "sslkey",
                                         "sslrootcert", "sslcrl",  "sslcrldir" };
    char *trouble = NULL;
    *reach = (struct pg_reach){ 0 };
    PQconninfoOption *given = PQconninfoParse(database, &trouble);
    PQfreemem(trouble); /* it may quote a password */
    if (!given)
        return explain(why, ERR_INVALID,
                       "database is not the address of a PostgreSQL; give one like "
                       "postgresql://user@host:5432/name");
    PQconninfoOption *usual = PQconndefaults();
    add_ports(reach, value_of(given, usual, "port"));
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        add_file(reach, value_of(given, usual, files[i]));
    add_usual_files(reach);
    reach->unverified = is_unverified(given, usual);
    PQconninfoFree(usual);
    PQconninfoFree(given);
    return OK;
}

void pg_reach_finish(struct pg_reach *reach)
{
    for (size_t i = 0; i < reach->file_count; i++)
        free(reach->files[i]);
    reach->file_count = 0;
}
