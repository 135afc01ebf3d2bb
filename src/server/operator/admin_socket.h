/* admin_socket.h - a running gateway's UNIX socket for subcommands, in its data directory.
 *
 * Its mode is 0600. A request is one line (operator_call.h). The response is all text up to
 * the end; if the request failed, it begins with "error: " or "usage: ". */
#pragma once

#include <stdio.h>

#include "base/error.h"

struct admin;
struct operators;
struct uv_loop_s;

/* operators is borrowed until admin_destroy. ERR_INVALID with the reason: the path is too long
 * or cannot be bound. */
enum err admin_create(struct uv_loop_s *loop, const char *path, struct operators *operators,
                      struct admin **admin, struct failure *why);

/* Closes the handles; closing the last one frees the memory. Ignores NULL. */
void admin_destroy(struct admin *admin);

/* For the client: sends the request and copies the response. ERR_NOT_FOUND: no gateway
 * listens; ERR_USAGE: invalid words; ERR_INVALID: the command failed, and why. */
enum err admin_ask(const char *path, const char *request, FILE *out, struct failure *why);
