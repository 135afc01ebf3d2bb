/* operating.h - what operators do with a gateway: subcommands, and the list of gateways.
 *
 *   admin socket ──────────┐                      ┌─ this gateway leads: here
 *   GET /gateways ─────────┼─► a line of text ────┤
 *   command of a follower ─┘   (operator_call.h)  └─ it follows: at the leader */
#pragma once

#include "api/ops/gateways_query.h"
#include "server/operator/gateway_list.h"
#include "server/operator/operator_call.h"

struct operating;
struct uv_loop_s;

/* Borrowed until operating_destroy. */
struct operating_options {
    const struct subcommand *commands; /* the table */
    struct accounts *accounts;
    struct account_writer *writer;
    const struct vault *vault;
    const char *name, *peer_url; /* of this gateway */
    const char *url;             /* of its dashboard, at the time of a command */
    /* Sends a line to the leader, like following_command. */
    enum err (*send)(void *owner, struct leader_command *command, struct slice line,
                     struct failure *why);
    /* Sends a frame to a follower that has not left. */
    void (*reply)(void *owner, struct source_follower *to, const struct repl_frame *frame);
    void *owner;
};

struct operating *operating_create(struct loop *loop,
                                   const struct operating_options *options);
/* Ignores NULL. */
void operating_destroy(struct operating *operating);

/* Listens at the admin socket, unless it does so already. ERR_INVALID with the reason: the path
 * is too long or cannot be bound. */
enum err operating_listen(struct operating *operating, const char *path,
                          struct failure *why);

/* This gateway has the lead, and its accounts in memory: it carries out commands. */
void operating_lead(struct operating *operating);

/* It leads, and has everything in memory. Two times NULL: no longer. */
void operating_serve(struct operating *operating, struct rotate *rotate,
                     struct leading *leading);

/* Followers are served from now on. NULL: no longer. */
void operating_follow(struct operating *operating, const struct source *source);

/* Functions for source_options. */
void operating_take(struct operating *operating, struct source_follower *from,
                    const struct repl_frame *frame);
void operating_leave(struct operating *operating, const struct source_follower *follower);

/* Lists the gateways (api_options). */
void operating_list(struct operating *operating, struct gateways_query *query);
