/* remote_session.h - the state of a remote subcommand: words, connection, outputs. */
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
    FILE *err; /* progress and errors */
};

/* Prints text from a gateway or a build so that it is safe on a terminal: drops control
 * characters except line breaks and tabs, and truncates a long text. */
void remote_session_show(FILE *out, struct slice text);

/* Prints why the call failed, in lines. Returns false. */
bool remote_session_refuse(const struct remote_session *session, const char *doing,
                           const struct remote_call *call);

/* Writes the environment's name for people: "prod", "the branch x of preview". */
const char *remote_session_place(const struct remote_session *session, char text[160]);

/* Sets *version to the current version, which the caller frees; "": none. Returns false if
 * the call failed; the error was printed. */
bool remote_session_current(struct remote_session *session, char **version);

/* The function `ask` of each command's row (server/config/subcommand.h), in remote_deploy.c
 * and remote_versions.c. Each returns false after printing an error. */
bool remote_deploy(struct remote_session *session);
bool remote_versions(struct remote_session *session);
bool remote_promote(struct remote_session *session);
bool remote_rollback(struct remote_session *session);
