/* remote_session.h - what a subcommand has that asks a gateway: its words, the connection, and
 * where it tells things. */
#pragma once

#include <stdio.h>

#include "os/archive/bundle.h"
#include "server/cli/remote.h"
#include "server/cli/remote_words.h"

struct remote_session {
    struct remote *remote;
    const struct said *said;
    const char *environment; /* "prod", "staging" or "preview" */
    struct bundle_limits limits;
    FILE *out; /* results */
    FILE *err; /* what goes on, and why it did not go well */
};

/* Prints what a gateway, or a build, has said. A terminal may show it: of what is not text only
 * line breaks and tabs stay, and of a long text its beginning. */
void remote_session_show(FILE *out, struct slice text);

/* Tells why, in lines; false. */
bool remote_session_refuse(const struct remote_session *session, const char *doing,
                           const struct remote_call *call);

/* The environment as people call it: "prod", "the branch x of preview". */
const char *remote_session_place(const struct remote_session *session, char text[160]);

/* The current version, to be freed: "" when there is none. False: it could not be asked, which
 * was told. */
bool remote_session_current(struct remote_session *session, char **version);

/* ask of the rows of commands (server/config/subcommand.h). remote_deploy.c, remote_versions.c */
bool remote_deploy(struct remote_session *session);
bool remote_versions(struct remote_session *session);
bool remote_promote(struct remote_session *session);
bool remote_rollback(struct remote_session *session);
