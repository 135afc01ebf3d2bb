/* account_command.h - the subcommands of operators on accounts: words in, text out.
 *
 * Whoever may say them may everything: over a socket that only its owner opens, or with the
 * data directory and its key at hand. A secret is shown once, when it is made; keys also
 * later. */
#pragma once

#include <stdio.h>

#include "accounts/account_writer.h"
#include "base/usage.h"

struct account_command;
struct json_t;

/* One for each command: reads its words and drafts what it changes; what it prints is shown when
 * that is written. */
typedef enum err command_fn(struct account_command *command, struct draft *draft);

struct account_command {
    struct accounts *accounts;
    struct account_writer *writer;
    command_fn *change;
    struct said said; /* what follows the command's own words; borrowed until done */
    const char *words[USAGE_WORDS_MAX]; /* all, as they were said; borrowed until done */
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

/* Words from a JSON array of texts; change and said are left to the caller. ERR_INVALID with
 * command->write.why: it cannot begin. */
enum err account_command_read(struct account_command *command, struct slice line);

/* A command with words that does not begin after all. */
void account_command_forget(struct account_command *command);

void account_command_begin(struct account_command *command);
