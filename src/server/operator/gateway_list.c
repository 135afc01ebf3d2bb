/* gateway_list.c - joins what the database and the followers report about each gateway. */
#include "server/operator/gateway_list.h"

#include <inttypes.h>
#include <string.h>

#include "base/json/members.h"
#include "base/text.h"

enum { SILENT_MS = 5 * 1000 /* a follower that reports does so about once a second */ };

/* One gateway. Texts are borrowed. */
struct listed {
    const char *name, *peer_url;
    const char *role;
    const char *reason;  /* NULL: none */
    const char *version; /* "": unknown */
    int64_t since_ms;    /* Unix ms, of leading or following; 0: unknown */
    bool has_lag;
    uint64_t behind;
    int64_t lag_ms;
};

/* ---- roles ---- */

static const struct source_follower *follower_of(const struct gateway_list *list,
                                                 uint64_t gateway)
{
    const struct source *source = list->source;
    if (!source)
        return NULL;
    list_each (link, &source->followers) {
        const struct source_follower *follower =
            container_of(link, struct source_follower, link);
        if (follower->gateway == gateway)
            return follower;
    }
    return NULL;
}

static void stand_by(struct listed *listed, const char *role, const char *reason)
{
    listed->role = role;
    listed->reason = reason;
}

static bool is_in_doubt(const struct gateway_list *list)
{
    return leading_why_not(list->leading) != NULL;
}

/* A follower of an older version reports nothing. One that has all changes is not current
 * either while its leader is in doubt. */
static void judge_follower(const struct gateway_list *list,
                           const struct source_follower *follower, struct listed *listed)
{
    const struct repl_report *report = &follower->report;
    bool reports = follower->reported_ms != 0;
    bool is_silent = loop_now_ms(list->loop) - follower->reported_ms > SILENT_MS;
    listed->role = "follows";
    listed->since_ms = follower->joined_ms;
    listed->version = report->program;
    if (reports && is_silent)
        stand_by(listed, "stands by", "does not report");
    else if (reports && !report->is_current)
        stand_by(listed, "stands by",
                 is_in_doubt(list) ? "its leader is not confirmed"
                                   : "catching up, or answers reach it late");
    listed->has_lag = reports && !is_silent;
    listed->behind = follower->behind;
    listed->lag_ms = report->lag_ms;
}

static struct listed judge(const struct gateway_list *list,
                           const struct store_gateway *gateway, bool is_dead)
{
    const struct source_follower *follower = follower_of(list, gateway->id);
    struct listed listed = { .name = gateway->name,
                             .peer_url = gateway->peer_url,
                             .version = "" };
    if (is_dead)
        stand_by(&listed, "down", "no heartbeat");
    else if (follower)
        judge_follower(list, follower, &listed);
    else if (!gateway->peer_url[0])
        stand_by(&listed, "stands by", "no peer-listen");
    else
        stand_by(&listed, "stands by", "not connected; its log has the reason");
    if (!is_dead && gateway->draining)
        listed.reason = "drains, or will not lead; its log has the reason";
    return listed;
}

static struct listed judge_own(const struct gateway_list *list)
{
    return (struct listed){ .name = list->name,
                            .peer_url = list->peer_url,
                            .role = "leads",
                            .reason =
                                is_in_doubt(list) ? "the database does not respond" : NULL,
                            .version = RUNCAST_VERSION,
                            .since_ms = list->since_ms };
}

/* Gets the next gateway, this one first. Returns false at the end. */
static bool next(const struct gateway_list *list, size_t *at, struct listed *listed)
{
    bool is_dead;
    const struct store_gateway *gateway = NULL;
    if (!*at)
        *listed = judge_own(list);
    else if (!(gateway = leading_other(list->leading, *at - 1, &is_dead)))
        return false;
    if (gateway)
        *listed = judge(list, gateway, is_dead);
    ++*at;
    return true;
}

/* ---- as a table ---- */

static void print_since(int64_t since_ms, FILE *out)
{
    char text[TIME_TEXT_LEN + 1] = "-";
    if (since_ms)
        text_from_time(since_ms, text);
    fprintf(out, "%-24s  ", text);
}

static void print_lag(const struct listed *listed, FILE *out)
{
    char text[64] = "-";
    if (listed->has_lag)
        snprintf(text, sizeof(text), "%" PRIu64 " changes, %" PRId64 " ms", listed->behind,
                 listed->lag_ms);
    fprintf(out, "%-20s  ", text);
}

static void print(const struct listed *listed, FILE *out)
{
    fprintf(out, "%-20s  %-9s  %-10s  ", listed->name, listed->role,
            *listed->version ? listed->version : "-");
    print_since(listed->since_ms, out);
    print_lag(listed, out);
    fprintf(out, "%s", *listed->peer_url ? listed->peer_url : "-");
    if (listed->reason)
        fprintf(out, "  %s", listed->reason);
    fprintf(out, "\n");
}

void gateway_list_print(const struct gateway_list *list, FILE *out)
{
    struct listed listed;
    fprintf(out, "%-20s  %-9s  %-10s  %-24s  %-20s  %s\n", "NAME", "ROLE", "VERSION",
            "SINCE", "LAG", "ADDRESS");
    for (size_t at = 0; next(list, &at, &listed);)
        print(&listed, out);
}

/* ---- as JSON ---- */

static void add(const struct listed *listed, bool has_address, struct buf *out)
{
    buf_add_char(out, '{');
    members_add_text(out, "name", slice_of(listed->name));
    members_add_text(out, "role", slice_of(listed->role));
    if (listed->reason)
        members_add_text(out, "reason", slice_of(listed->reason));
    if (*listed->version)
        members_add_text(out, "version", slice_of(listed->version));
    members_add_time(out, "since", listed->since_ms);
    if (listed->has_lag) {
        members_add_name(out, "lag");
        buf_print(out, "{\"changes\":%" PRIu64 ",\"ms\":%" PRId64 "}", listed->behind,
                  listed->lag_ms);
    }
    if (has_address && *listed->peer_url)
        members_add_text(out, "peerUrl", slice_of(listed->peer_url));
    buf_add_char(out, '}');
}

void gateway_list_add(const struct gateway_list *list, bool has_addresses, struct buf *out)
{
    struct listed listed;
    buf_add_text(out, "{\"gateways\":[");
    for (size_t at = 0; next(list, &at, &listed);) {
        if (at > 1)
            buf_add_char(out, ',');
        add(&listed, has_addresses, out);
    }
    buf_add_text(out, "]}");
}
