/* remote_versions.c - lists an environment's versions and changes its current one. */
#include <stdlib.h>
#include <string.h>

#include "base/json/members.h"
#include "base/json/scan.h"
#include "server/cli/remote_session.h"

/* ---- the list ---- */

/* Prints "2026-11-25 07:40" for "2026-11-25T07:40:12.345Z"; "-" for NULL. */
static void print_time(FILE *out, const struct bytes *time)
{
    if (time && time->len >= 16)
        fprintf(out, "%.10s %.5s  ", (const char *)time->data,
                (const char *)time->data + 11);
    else
        fprintf(out, "%-16s  ", "-");
}

static void print_item(FILE *out, struct slice item, const char *current)
{
    struct bytes *version = members_text(item, "version");
    struct bytes *status = members_text(item, "status");
    struct bytes *created = members_text(item, "createdAt");
    struct bytes *deployed = members_text(item, "deployedAt");
    struct bytes *external = members_text(item, "externalId");
    bool is_current = version && slice_is(bytes_slice(version), current);
    fprintf(out, "%c %-13.*s  %-10.*s  ", is_current ? '*' : ' ',
            SLICE_ARG(bytes_slice(version)), SLICE_ARG(bytes_slice(status)));
    print_time(out, created);
    print_time(out, deployed);
    remote_session_show(out, external ? bytes_slice(external) : SLICE("-"));
    fputc('\n', out);
    bytes_unref(version);
    bytes_unref(status);
    bytes_unref(created);
    bytes_unref(deployed);
    bytes_unref(external);
}

static void print_all(const struct remote_session *session, struct slice answer,
                      const char *current)
{
    struct slice data = scan_member(answer, "data"), item;
    struct bytes *more = NULL;
    bool some = false;
    for (struct scan_members each = scan_members(data); scan_next_element(&each, &item);) {
        if (!some)
            fprintf(session->out, "  %-13s  %-10s  %-16s  %-16s  %s\n", "VERSION", "STATUS",
                    "CREATED (UTC)", "DEPLOYED (UTC)", "EXTERNAL ID");
        some = true;
        print_item(session->out, item, current);
    }
    char place[160];
    if (!some)
        fprintf(session->out, "nothing was deployed to %s yet\n",
                remote_session_place(session, place));
    more = members_text(scan_member(answer, "pagination"), "next");
    if (more)
        fprintf(session->out, "  and older ones\n");
    bytes_unref(more);
}

bool remote_versions(struct remote_session *session)
{
    struct remote_call call = { .target = "/api/v1/deployments?page%5Bsize%5D=100" };
    char *current = NULL;
    bool done = remote_session_current(session, &current);
    if (done && !remote_ask(session->remote, &call))
        done = remote_session_refuse(session, "cannot list the versions", &call);
    if (done && call.answer)
        print_all(session, bytes_slice(call.answer), current);
    remote_call_finish(&call);
    free(current);
    return done;
}

/* ---- promote, rollback ---- */

/* Returns < 0 if the first is older. A version is a date, a dot and a number. */
static int compare(const char *a, const char *b)
{
    unsigned long long days[2] = { 0 }, numbers[2] = { 0 };
    remote_version_read(a, &days[0], &numbers[0]);
    remote_version_read(b, &days[1], &numbers[1]);
    return days[0] != days[1] ? (days[0] < days[1] ? -1 : 1)
                              : (numbers[0] > numbers[1]) - (numbers[0] < numbers[1]);
}

/* Refuses to promote an older version, or to roll back to a newer one. */
static bool check_direction(const struct remote_session *session, const char *version,
                            const char *current, bool back)
{
    int order = *current ? compare(version, current) : 0;
    if (back && order > 0)
        fprintf(session->err,
                "runcast: version %s is newer than the current one, %s; runcast promote "
                "makes a newer version current, and runcast versions lists those that "
                "exist\n",
                version, current);
    else if (!back && order < 0)
        fprintf(session->err,
                "runcast: version %s is older than the current one, %s; runcast rollback "
                "makes an older version current, and runcast versions lists those that "
                "exist\n",
                version, current);
    return back ? order <= 0 : order >= 0;
}

static bool make_current(struct remote_session *session, const char *version,
                         const char *current, bool back)
{
    char place[160];
    struct buf target = { 0 };
    buf_print(&target, "/api/v1/deployments/%s/promote%s", version,
              back ? "?allowRollbacks=true" : "");
    buf_add_char(&target, '\0');
    struct remote_call call = { .method = "POST", .target = target.ptr };
    bool done = remote_ask(session->remote, &call);
    if (slice_is(buf_slice(&call.refusal), "Deployment not found"))
        buf_add_text(&call.refusal, "; runcast versions lists those that exist");
    if (!done)
        remote_session_refuse(session, version, &call);
    else
        fprintf(session->out, "version %s is the current one of %s%s%s\n", version,
                remote_session_place(session, place), *current ? ", after " : "", current);
    remote_call_finish(&call);
    buf_finish(&target);
    return done;
}

static bool change(struct remote_session *session, bool back)
{
    const char *version = session->said->argument;
    unsigned long long day, number;
    char *current = NULL;
    if (!remote_version_read(version, &day, &number)) {
        fprintf(session->err,
                "runcast: \"%.60s\" is not a version like 20261125.1; runcast versions "
                "lists those that exist\n",
                version);
        return false;
    }
    bool done = remote_session_current(session, &current) &&
                check_direction(session, version, current, back) &&
                make_current(session, version, current, back);
    free(current);
    return done;
}

bool remote_promote(struct remote_session *session)
{
    return change(session, false);
}

bool remote_rollback(struct remote_session *session)
{
    return change(session, true);
}
