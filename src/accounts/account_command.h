/* account_command.h - the subcommands of operators on accounts: words in, text out.
 *
 *   org create NAME [--slug SLUG] | list | rename SLUG --name NAME
 *   org delete SLUG --confirm SLUG
 *   project create NAME [--org SLUG] [--ref REF] | list | rename REF --name NAME
 *   project delete REF --confirm REF
 *   user create NAME --email EMAIL [--org SLUG] | list
 *   user rename EMAIL --name NAME [--org SLUG] | delete EMAIL [--org SLUG] [--confirm EMAIL]
 *   token create --user EMAIL [--name NAME] | list | revoke ID
 *   worker-token create [--project REF] [--env ENV] [--name NAME] | list | revoke ID
 *   dashboard [--user EMAIL]
 *   keys [--project REF] | keys rotate ENV [--project REF] [--grace 24h]
 *
 * Whoever may say them may everything: over a socket that only its owner opens, or with the
 * data directory and its key at hand. A secret is shown once, when it is made; keys also
 * later. */
#pragma once

#include <stdio.h>

#include "accounts/account_writer.h"

enum { COMMAND_WORDS_MAX = 16 };

struct json_t;

struct account_command {
    struct accounts *accounts;
    struct account_writer *writer;
    const char *words[COMMAND_WORDS_MAX]; /* borrowed until done */
    size_t word_count;
    const char
        *actor; /* borrowed until done: who asks, for the audit; NULL: none is kept */
    const char
        *url;  /* borrowed until done: of the gateway that does it; NULL: none serves */
    FILE *out; /* borrowed until done: what the operator reads */
    /* Once, later. command->write.why says why not; ERR_USAGE: the words are wrong
     * whatever there is. */
    void (*done)(struct account_command *command, enum err status);

    /* account_command.c's */
    struct account_write write;
    struct json_t *request; /* what words point into; NULL: elsewhere */
    const char *name;
    struct organization *organization;
    struct project *project;
    struct user *user;
    struct account *account;
    int64_t grace_ms;
    char keys[ENVIRONMENT_TYPES][SECRET_KEY_MAX];
    char ref[PROJECT_REF_MAX];
    char token[PERSONAL_TOKEN_MAX];
};

/* Whether there is such a command, with such an argument and such options: ERR_USAGE if not,
 * and why. What they mean only the accounts know. */
enum err account_command_check(const char *const *words, size_t count, struct failure *why);

bool account_command_knows(const char *noun, const char *verb);

/* Words from a JSON array of texts. ERR_INVALID with command->write.why: done will not
 * come.
 */
enum err account_command_read(struct account_command *command, struct slice line);

void account_command_begin(struct account_command *command);
