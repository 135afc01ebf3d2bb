/* operator_call.h - one line of an operator, and the text that answers it.
 *
 *   admin socket ─► operator_call ─┬ this gateway leads: carries it out ─► text
 *                                  └ it follows: following_command ─► the leader's
 *                                    operator_call (peer_commands.h) ─► the same text
 *
 * The text of a failed call begins with "error: " or, for invalid words, with "usage: ".
 * The lines:
 *
 *   ["org","list"]        the words of a command with a change (server/config/subcommand.h)
 *   vault rotate [KEY]    seals everything again, with this key or a generated one
 *   lead NAME             hands the lead over to the gateway of that name
 *   gateways [json]       lists the gateways (gateway_list.h) */
#pragma once

#include <stdio.h>

#include "accounts/account_command.h"
#include "server/config/subcommand.h"
#include "server/peers/leader_commands.h"

struct leading;
struct operators;
struct rotate;

enum { OPERATOR_LINE_MAX = 4096, OPERATOR_ACTOR_MAX = 192 };

#define OPERATOR_USAGE_MARK "usage: "
#define OPERATOR_ERROR_MARK "error: "

/* Borrowed until operators_destroy. */
struct operators_options {
    const struct subcommand *commands; /* the table */
    struct accounts *accounts;
    struct account_writer *writer;
    const char *url;  /* of the gateway, at the time of a command */
    const char *name; /* of this gateway, for the leader's audit log */
    /* Sends a line to the leader, like following_command. NULL: this gateway never follows. */
    enum err (*send)(void *owner, struct leader_command *command, struct slice line,
                     struct failure *why);
    void *send_owner;
    /* Prints the gateways, while this one leads. NULL: not needed. */
    void (*list)(void *owner, bool as_json, FILE *out);
    void *list_owner;
};

/* Until operators_lead, lines are for the leader. */
struct operators *operators_create(const struct operators_options *options);
/* Calls in progress still end, without accounts. Ignores NULL. */
void operators_destroy(struct operators *operators);

/* This gateway leads, and has the accounts in memory. */
void operators_lead(struct operators *operators);

/* Accepts key rotations, and requests to hand the lead over, from now on. Two times NULL: this
 * gateway does not lead any more. */
void operators_serve(struct operators *operators, struct rotate *rotate,
                     struct leading *leading);

struct operator_call {
    char line[OPERATOR_LINE_MAX];   /* wiped by operator_call_begin */
    char actor[OPERATOR_ACTOR_MAX]; /* who gave the line, for the audit log */
    /* Called once, maybe within operator_call_begin. The call may be freed by then; text is
     * the call's, until operator_call_finish. */
    void (*done)(struct operator_call *call, struct slice text);

    /* Private to operator_call.c. */
    struct operators *operators;
    struct account_command command;
    struct leader_command forwarded;
    FILE *out; /* the text; NULL: none yet, or it is complete */
    char *text;
    size_t text_len;
};

/* Begins the call, whose line, actor and done are set; all else is zero. */
void operator_call_begin(struct operator_call *call, struct operators *operators);

/* Returns true until done is called. */
bool operator_call_is_busy(const struct operator_call *call);

/* Wipes and frees the text. */
void operator_call_finish(struct operator_call *call);
