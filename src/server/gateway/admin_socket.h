/* admin_socket.h - the socket by which subcommands speak to the running gateway.
 *
 * A Unix socket, 0600, in the data directory. One line is a request, the answer is text
 * until the end, "error: …" when it could not be done:
 *
 *   ["org","list"]        the words of a command that has a change (server/config/subcommand.h)
 *   vault rotate [KEY]    everything sealed again, with this key or one that is drawn */
#pragma once

#include <stdio.h>

#include "accounts/account_command.h"
#include "base/error.h"
#include "server/config/subcommand.h"

struct admin;
struct rotate;
struct uv_loop_s;

/* What commands are carried out with; borrowed until the admin socket is destroyed. */
struct admin_options {
    const struct subcommand *commands; /* the table */
    struct accounts *accounts;
    struct account_writer *writer;
    const char *url; /* of the gateway, as it is when a command asks */
};

/* ERR_INVALID with the reason: the path is too long, or not to be bound. */
enum err admin_create(struct uv_loop_s *loop, const char *path,
                      const struct admin_options *options, struct admin **admin,
                      struct failure *why);

/* From now on the key can be rotated. */
void admin_serve_rotation(struct admin *admin, struct rotate *rotate);

/* NULL is fine. The handles are closed; the memory goes with the last of them. */
void admin_destroy(struct admin *admin);

/* As a client: sends the request and copies the answer. ERR_NOT_FOUND: nobody listens;
 * ERR_USAGE: its words are wrong; ERR_INVALID: it could not be done, and why. */
enum err admin_ask(const char *path, const char *request, FILE *out, struct failure *why);
