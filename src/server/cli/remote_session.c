/* remote_session.c - errors, output and the current version, for all remote subcommands. */
#include "server/cli/remote_session.h"

#include "base/json/members.h"
#include "base/mem.h"

enum { SHOWN_MAX = 16 * 1024 };

void remote_session_show(FILE *out, struct slice text)
{
    size_t len = text.len < SHOWN_MAX ? text.len : SHOWN_MAX;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if ((c >= 0x20 && c != 0x7f) || c == '\n' || c == '\t')
            fputc(c, out);
    }
}

bool remote_session_refuse(const struct remote_session *session, const char *doing,
                           const struct remote_call *call)
{
    fprintf(session->err, "runcast: %s: ", doing);
    remote_session_show(session->err, buf_slice(&call->refusal));
    fputc('\n', session->err);
    return false;
}

const char *remote_session_place(const struct remote_session *session, char text[160])
{
    const char *branch = said_option(session->said, "--branch");
    if (branch)
        snprintf(text, 160, "the branch %.120s of preview", branch);
    else
        snprintf(text, 160, "%s", session->environment);
    return text;
}

bool remote_session_current(struct remote_session *session, char **version)
{
    struct remote_call call = { .target = "/api/v1/deployments/current" };
    bool asked = remote_ask(session->remote, &call);
    struct bytes *text =
        call.answer ? members_text(bytes_slice(call.answer), "version") : NULL;
    if (asked || call.status == 404)
        *version = mem_text(text ? bytes_slice(text) : SLICE(""));
    else
        remote_session_refuse(session, "cannot read the current version", &call);
    asked = asked || call.status == 404;
    bytes_unref(text);
    remote_call_finish(&call);
    return asked;
}
