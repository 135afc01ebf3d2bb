/* account_command.h - the operator's subcommands on accounts: words in, text out.
 *
 * There are no permissions: a command comes over a socket that only its owner can open, or
 * from a process that has the data directory and its key. A token is shown once, when it is
 * made; keys can be listed later. */
#pragma once

#include <stdio.h>

#include "accounts/account_writer.h"
#include "base/usage.h"

struct account_command;
struct json_t;

/* One function per command: reads its words and drafts its changes.
 *
 * Its output goes to command->out, and the caller shows it once the changes are
 * committed. */
typedef enum err command_fn(struct account_command *command, struct draft *draft);

struct account_command {
    struct accounts *accounts;
    struct account_writer *writer;
    command_fn *change;
    struct said said; /* words after the command's own, parsed; borrowed until done */
    const char *words[USAGE_WORDS_MAX]; /* all words, as given; borrowed until done */
    size_t word_count;
    /* borrowed until done: the user and process that sent the command, for the audit log;
     * NULL: not logged */
    const char *actor;
    /* borrowed until done: URL of the gateway's dashboard; "": it has none; NULL: no
     * gateway serves this data */
    const char *url;
    FILE *out; /* borrowed until done: output for the operator */
    /* Called once, later. On an error command->write.why has the reason. ERR_USAGE: the
     * words are invalid whatever accounts exist. */
    void (*done)(struct account_command *command, enum err status);

    /* Private to account_command.c and the commands. */
    struct account_write write;
    /* owns the words if account_command_read read them; else NULL */
    struct json_t *request;
    const char *name;
    struct organization *organization;
    struct project *project;
    struct user *user;
    struct account *account;
    int64_t grace_ms;
    unsigned tokens; /* how many it has ended */
    bool goes_on;    /* with another write: its changes exceed one draft */
    char keys[ENVIRONMENT_TYPES][SECRET_KEY_MAX];
    char ref[PROJECT_REF_MAX];
    char token[PERSONAL_TOKEN_MAX];
};

/* Reads command->words from a JSON array of strings. The caller sets change and said.
 *
 * Returns ERR_INVALID with command->write.why if the command cannot begin. */
enum err account_command_read(struct account_command *command, struct slice line);

/* Frees what account_command_read made, for a command that is not begun. */
void account_command_forget(struct account_command *command);

void account_command_begin(struct account_command *command);
