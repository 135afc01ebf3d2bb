/* peer_commands.h - the leader's end of commands that operators give to followers.
 *
 *   REPL_COMMAND ─► opened ─► operator_call ─► REPL_ANSWER, unless the follower has left
 *
 * A follower has the encryption key, with which it could read and write everything in the
 * database. So its commands have the rights of those at this gateway's own admin socket. */
#pragma once

#include "core/replication/source.h"
#include "server/operator/operator_call.h"

struct peer_commands;

struct peer_commands_options {
    const struct vault *vault;   /* borrowed */
    struct operators *operators; /* borrowed */
    /* Sends a frame to a follower that has not left. */
    void (*send)(void *owner, struct source_follower *to, const struct repl_frame *frame);
    void *owner;
};

struct peer_commands *peer_commands_create(const struct peer_commands_options *options);

/* Commands in progress still end, without a response. Ignores NULL. */
void peer_commands_destroy(struct peer_commands *commands);

/* A follower has sent REPL_COMMAND. */
void peer_commands_take(struct peer_commands *commands, struct source_follower *from,
                        const struct repl_command *command);

/* The follower has left. */
void peer_commands_leave(struct peer_commands *commands,
                         const struct source_follower *follower);
