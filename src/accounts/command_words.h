/* command_words.h - the subcommands on accounts, and helpers that read their words. */
#pragma once

#include "accounts/account_command.h"

/* Sets the reason for the operator. Returns ERR_USAGE: a word is invalid whatever
 * exists. */
enum err command_misuse(struct account_command *command, const char *text);
/* Sets the reason. Returns ERR_INVALID: the existing accounts do not allow it. */
enum err command_refuse(struct account_command *command, const char *text);

/* The value of "--name"; the last one counts. Returns NULL if it was not given. */
const char *command_option(const struct account_command *command, const char *name);

bool command_is_name(const char *text);

/* Sets command->project to the one that --project names, or to the only one. */
enum err command_find_project(struct account_command *command);

/* Prints the day; "-" if unix_ms is 0. */
void command_print_time(FILE *out, int64_t unix_ms);

/* account_command.c */
command_fn command_create_organization;
command_fn command_list_organizations;
command_fn command_create_project;
command_fn command_list_projects;
command_fn command_create_user;
command_fn command_list_users;
command_fn command_list_keys;
command_fn command_list_keys_and_token;
command_fn command_rotate_key;

/* command_changes.c */
command_fn command_rename_organization;
command_fn command_rename_project;
command_fn command_rename_user;
command_fn command_delete_user;
command_fn command_delete_organization;
command_fn command_delete_project;

/* command_tokens.c */
/* Makes a new token for command->user, and prints it on a line of its own. */
void command_generate_token(struct account_command *command, struct draft *draft,
                            const char *name);
command_fn command_create_link;
command_fn command_create_token;
command_fn command_list_tokens;
command_fn command_revoke_token;
command_fn command_create_worker_token;
command_fn command_list_worker_tokens;
command_fn command_revoke_worker_token;
