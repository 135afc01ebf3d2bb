/* secure.h - TLS if the server's URL is https, plain TCP if not; callers need not know.
 *
 *   connected ─► secure_shake … until it is done ─► secure_recv, secure_send
 *
 * The server's certificate is verified with the system's authorities and --ca, unless
 * --insecure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "options.h"
#include "poller.h"

/* Returns true if the new connection, or one that is ready again, can be used. If not,
 * events are those to wait for. Ends the program if the server is not the expected one. */
bool secure_shake(struct source *source, const struct options *options, uint32_t *events);

/* Like recv and send of a non-blocking socket, without SIGPIPE. */
ssize_t secure_recv(struct source *source, void *room, size_t size);
ssize_t secure_send(struct source *source, const void *bytes, size_t len);
