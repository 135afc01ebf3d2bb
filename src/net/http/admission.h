/* admission.h - decides which sockets become connections of a server; private to http. */
#pragma once

#include "net/address.h"
#include "net/http/listener.h"

struct connection;

/* Turns a connected socket into a connection. Takes ownership of fd. Returns NULL if the
 * socket was rejected. */
struct connection *admission_adopt(struct listener *listener, int fd,
                                   const struct address *peer);

/* Returns the bytes that a connection needs, whatever it becomes. */
size_t admission_conn_size(void);

/* Returns true if the listener may accept no more connections. */
bool admission_is_full(const struct listener *listener);
