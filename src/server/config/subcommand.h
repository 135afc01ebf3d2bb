/* subcommand.h - the rows of the table of subcommands, and functions on them.
 *
 *   subcommands.def ─► struct subcommand[] ─┬► config_read: the row of the arguments
 *                                           ├► errors about words, with the closest command
 *                                           ├► --help (config_help.h)
 *                                           ├► main: run, or stay
 *                                           └► the admin socket: change
 *   subcommands.def ─► deploy/describe/describe.py: the man page and completions
 *
 * A row is one form of a command. The first row of a command has its help; rows after it
 * without help are its other forms ("org create", "org list"). A command line selects the
 * row whose words it begins with, the longest if there are several; that row's usage
 * determines how the words that follow are parsed. A command line without words selects the
 * first row of the table.
 *
 * This folder knows the type but none of the commands: the table is passed to config_read,
 * and struct config has the table and the row. Function pointers use types of other
 * folders. */
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
    const char *does;  /* in a few words; "": see its help */
    const char *about; /* help, in lines; NULL: another form of the command above */
    const char *place; /* lines of help: which data directory or gateway it uses */

    /* Each row has either stay or run. stay runs until the process is stopped, and returns
     * its exit status. */
    int (*stay)(struct config *config);
    /* Carries out the command and prints its result. ERR_USAGE: the words are invalid. An
     * error without a text was already printed. */
    enum err (*run)(const struct config *config, FILE *out, struct failure *why);

    /* For run on accounts: the part that changes them, in the gateway or in this process.
     * NULL for other rows. */
    enum err (*change)(struct account_command *command, struct draft *draft);
    /* For run over a connection to a gateway: the part that uses the connection. Returns
     * false after printing an error. */
    bool (*ask)(struct remote_session *session);
};

/* Returns the first row of a command; NULL: there is no command of that name. */
const struct subcommand *subcommand_first(const struct subcommand *table, const char *name);

/* ERR_USAGE with the reason, which names the closest command, if there is none of that
 * name. */
enum err subcommand_check_name(const struct subcommand *table, const char *name,
                               struct failure *why);

/* words[0] is a command's name. ERR_USAGE with the reason if the words are not the
 * beginning of a row. */
enum err subcommand_check_topic(const struct subcommand *table, const char *const *words,
                                size_t count, struct failure *why);

/* Finds the row for the words, and parses the words after its own. ERR_USAGE with the
 * reason. */
enum err subcommand_read(const struct subcommand *table, const char *const *words,
                         size_t count, const struct subcommand **row, struct said *said,
                         struct failure *why);

/* Returns the kind of option that a name, without its dashes, is for any command. */
enum option_kind { OPTION_UNKNOWN, OPTION_SWITCH, OPTION_WITH_VALUE };
enum option_kind subcommand_option(const struct subcommand *table, struct slice name);

/* Appends the lines that show how to write a command, in all its forms. */
void subcommand_print_usage(const struct subcommand *table, const struct subcommand *first,
                            struct buf *out);
