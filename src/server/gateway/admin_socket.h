/* admin_socket.h - a running gateway's UNIX socket for subcommands, in its data directory.
 *
 * Its mode is 0600. A request is one line. The response is all text up to the end; if the
 * request failed, it begins with "error: " or "usage: ":
 *
 *   ["org","list"]        the words of a command with a change (server/config/subcommand.h)
 *   vault rotate [KEY]    seals everything again, with this key or a generated one
 *   lead NAME             hands the lead over to the gateway of that name */
#pragma once

#include <stdio.h>

#include "accounts/account_command.h"
#include "base/error.h"
#include "server/config/subcommand.h"

struct admin;
struct leading;
struct rotate;
struct uv_loop_s;

/* Used to carry out commands; borrowed until the admin socket is destroyed. */
struct admin_options {
    const struct subcommand *commands; /* the table */
    struct accounts *accounts;
    struct account_writer *writer;
    const char *url; /* of the gateway, at the time of a command */
};

/* ERR_INVALID with the reason: the path is too long or cannot be bound. */
enum err admin_create(struct uv_loop_s *loop, const char *path,
                      const struct admin_options *options, struct admin **admin,
                      struct failure *why);

/* Accepts key rotations, and requests to hand the lead over, from now on. */
void admin_serve_leader(struct admin *admin, struct rotate *rotate,
                        struct leading *leading);

/* Closes the handles; closing the last one frees the memory. Ignores NULL. */
void admin_destroy(struct admin *admin);

/* For the client: sends the request and copies the response. ERR_NOT_FOUND: no gateway
 * listens; ERR_USAGE: invalid words; ERR_INVALID: the command failed, and why. */
enum err admin_ask(const char *path, const char *request, FILE *out, struct failure *why);
