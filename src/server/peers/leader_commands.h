/* leader_commands.h - subcommands that an operator gives to a follower, for the leader.
 *
 *   admin socket of the follower ─► REPL_COMMAND ─► the leader carries it out
 *                                ◄─ REPL_ANSWER ◄─┘
 *
 * Like all of replication, both are authenticated. Commands and outputs may contain keys, so
 * they are also sealed with the encryption key of the gateways: without TLS, they are as
 * private as with it. */
#pragma once

#include "base/list.h"
#include "base/vault/vault.h"
#include "core/replication/frames.h"

/* A command in progress. */
struct leader_command {
    /* Called once. output: the response, as an admin socket gives it; why: NULL, or the reason
     * why there is no response. Both are borrowed. */
    void (*done)(struct leader_command *command, struct slice output, const char *why);
    uint64_t number;  /* private */
    struct list link; // leader_commands::pending
};

/* The follower's side. */
struct leader_commands {
    const struct vault *vault; /* borrowed */
    uint64_t number;           /* of the last one */
    struct list pending;       // leader_command::link
};

void leader_commands_init(struct leader_commands *commands, const struct vault *vault);

/* Makes the frame of a command; the caller sends and finishes it. line is of the operator. */
void leader_commands_add(struct leader_commands *commands, struct leader_command *command,
                         struct slice line, struct repl_frame *frame);

/* Takes the leader's response. One to an unknown command is ignored. */
void leader_commands_take(struct leader_commands *commands,
                          const struct repl_command *answer);

/* The connection has ended. */
void leader_commands_end(struct leader_commands *commands, const char *why);

/* ---- the leader's side ---- */

/* Appends the line of a command. ERR_INVALID: it was sealed with another key. */
enum err leader_command_open(const struct vault *vault, const struct repl_command *command,
                             struct buf *line);

/* Makes the frame of a response; the caller sends and finishes it. */
void leader_command_answer(const struct vault *vault, uint64_t number, struct slice output,
                           struct repl_frame *frame);
