/* gateway_admin.h - the socket by which subcommands speak to the running gateway.
 *
 * A Unix socket, 0600, in the data directory. One line is a request, the answer is text
 * until the end: "keys" gives the secret keys. */
#pragma once

#include <stdio.h>

#include "auth/accounts.h"
#include "base/error.h"

struct admin;
struct uv_loop_s;

/* ERR_INVALID with the reason: the path is too long, or not to be bound. */
enum err admin_create(struct uv_loop_s *loop, const char *path, struct accounts *accounts,
                      struct admin **admin, struct failure *why);

/* NULL is fine. The handles are closed; the memory goes with the last of them. */
void admin_destroy(struct admin *admin);

/* As a client: sends the request and copies the answer. ERR_NOT_FOUND: nobody listens. */
enum err admin_ask(const char *path, const char *request, FILE *out, struct failure *why);
