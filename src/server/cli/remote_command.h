/* remote_command.h - the subcommands deploy, versions, promote and rollback: words in, text out.
 *
 *   deploy DIR [--env ENV] [--branch NAME] [--skip-promotion] [--external-id ID]
 *   versions | promote VERSION | rollback VERSION   [--env ENV] [--branch NAME]
 *
 * They ask a gateway that may be anywhere, by its API and the secret key of one environment,
 * which says which one is meant. */
#pragma once

#include <stdio.h>

#include "os/archive/bundle.h"

struct remote_settings {
    const char *const *words;
    size_t word_count;
    const char *url;     /* NULL or "": not said */
    const char *key;     /* the same */
    const char *ca_file; /* "": none */
    struct bundle_limits limits;
};

bool remote_command_knows(const char *noun);

/* The exit status: 0: done, 1: it could not, or the gateway refuses, 2: the words or the
 * settings are wrong. Why is told to err. */
int remote_command_run(const struct remote_settings *settings, FILE *out, FILE *err);
