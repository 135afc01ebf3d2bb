/* secure.h - TLS to a server whose URL begins with https, or none: callers need not know.
 *
 *   connected ─► secure_shake … until it is done ─► secure_recv, secure_send
 *
 * Whom it speaks to is verified, with --ca as an authority beside those of the system, unless
 * --insecure says otherwise. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "options.h"
#include "poller.h"

/* True: the connection, which has just been made, or is ready again, can be used. False: events
 * are those to wait for. Ends the program when the server is not the one that is wanted. */
bool secure_shake(struct source *source, const struct options *options, uint32_t *events);

/* As recv and send of a socket that does not block, and that raises no SIGPIPE. */
ssize_t secure_recv(struct source *source, void *room, size_t size);
ssize_t secure_send(struct source *source, const void *bytes, size_t len);
