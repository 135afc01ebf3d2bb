/* admission.h - who becomes a connection of a server; private to http. */
#pragma once

#include "net/address.h"
#include "net/http/listener.h"

struct connection;

/* A socket that somebody has connected becomes a connection; takes over fd. NULL: the socket was
 * refused. */
struct connection *admission_adopt(struct listener *listener, int fd,
                                   const struct address *peer);

/* No more is accepted there. */
bool admission_is_full(const struct listener *listener);
