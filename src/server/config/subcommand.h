/* subcommand.h - the rows of the table of subcommands, and what follows from them.
 *
 *   subcommands.def ─► struct subcommand[] ─┬► config_read: the row that the arguments mean
 *                                           ├► errors of words, with the closest command
 *                                           ├► --help (config_help.h)
 *                                           ├► main: run, or stay
 *                                           └► the admin socket: change
 *   subcommands.def ─► deploy/describe/describe.py: the man page and completions
 *
 * A row is one form of a command. The first row of a command has its help; rows that follow it
 * without help are other forms of it ("org create", "org list"). A command line means the row
 * whose words it begins with, the longest one of several; the usage of that row judges what
 * follows. A command line without words means the first row of the table.
 *
 * This folder knows the type and no command: the table is handed to config_read, and the config
 * that it fills has the table and the row, for whoever acts on them. Functions have the types of
 * the folders that they belong to. */
#pragma once

#include <stdio.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

struct account_command;
struct config;
struct draft;
struct remote_session;
struct said;

struct subcommand {
    const char *words; /* "org create"; NULL ends the table */
    const char *usage; /* what follows them (base/usage.h) */
    const char *does;  /* in a few words; "": its help says it */
    const char *about; /* help, in lines; NULL: a form of the command above */
    const char *place; /* lines of help: which data directory or gateway it works on */

    /* Each row has either stay or run. stay works until the process is told to stop, and returns
     * its exit status. */
    int (*stay)(struct config *config);
    /* Carries the command out and prints its result. ERR_USAGE: the words are wrong. Errors without
     * a text were reported already. */
    enum err (*run)(const struct config *config, FILE *out, struct failure *why);

    /* For run on accounts: its part where the accounts are, in the gateway or in this process.
     * NULL for other rows. */
    enum err (*change)(struct account_command *command, struct draft *draft);
    /* For run over a connection to a gateway: its part that has the connection. Returns false
     * after it has reported an error. */
    bool (*ask)(struct remote_session *session);
};

/* The first row of a command; NULL: none is called so. */
const struct subcommand *subcommand_first(const struct subcommand *table, const char *name);

/* ERR_USAGE with the reason, which names the closest command, if none is called so. */
enum err subcommand_check_name(const struct subcommand *table, const char *name,
                               struct failure *why);

/* ERR_USAGE with the reason if the words, of which the first is a command's name, are not the
 * beginning of a row. */
enum err subcommand_check_topic(const struct subcommand *table, const char *const *words,
                                size_t count, struct failure *why);

/* Finds the row that the words mean, and reads those that follow it. ERR_USAGE with the reason. */
enum err subcommand_read(const struct subcommand *table, const char *const *words,
                         size_t count, const struct subcommand **row, struct said *said,
                         struct failure *why);

/* What a name without its dashes is as an option of any command. */
enum option_kind { OPTION_UNKNOWN, OPTION_SWITCH, OPTION_WITH_VALUE };
enum option_kind subcommand_option(const struct subcommand *table, struct slice name);

/* Appends the lines that show how a command is said, in all its forms. */
void subcommand_print_usage(const struct subcommand *table, const struct subcommand *first,
                            struct buf *out);
