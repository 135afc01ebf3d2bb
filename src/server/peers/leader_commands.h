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
    /* Called once. output: the response, as an admin socket gives it; why: the reason of
     * a failure; NULL: output is the response. Both are borrowed. */
    void (*done)(struct leader_command *command, struct slice output, const char *why);
    uint64_t number;  /* private */
    struct list link; // leader_commands::pending
};

/* The leader cuts a follower that sends more than 1,000 messages a second. */
enum { LEADER_COMMANDS_PER_S = 200, LEADER_COMMANDS_MAX = 64 /* in progress */ };

/* The follower's side. */
struct leader_commands {
    const struct vault *vault; /* borrowed */
    uint64_t number;           /* of the last one */
    unsigned count;            /* of pending */
    int64_t second_ms;         /* when the present second has begun */
    unsigned in_second;        /* commands that were added in it */
    struct list pending;       // leader_command::link
};

void leader_commands_init(struct leader_commands *commands, const struct vault *vault);

/* Returns false if there are too many commands. */
bool leader_commands_may_add(struct leader_commands *commands, int64_t now_ms);

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
