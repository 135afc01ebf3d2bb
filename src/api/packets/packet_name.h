/* packet_name.h - the names of packets, and signed URLs for them.
 *
 * A packet is a payload or output stored separately from its run: a document named within
 * an environment. */
#pragma once

#include "api/request/call.h"

enum { PACKET_NAME_MAX = 512 };

/* Checks a name: one or more segments with slashes between them, none of them empty, "." or
 * "..". Returns ERR_INVALID with why. */
enum err packet_check_name(struct slice name, struct failure *why);

/* Appends a URL that reads ("GET") or writes ("PUT") the packet without a credential. It is
 * absolute and valid for an hour. The packet need not exist. */
void packet_url(struct api_call *call, const struct account *account, const char *method,
                struct slice name, struct buf *out);

/* Returns true if the identity may read every packet by its name. Other tokens can still
 * read the packets of runs that they may read. */
bool packet_any_is_open_to(const struct identity *who);

/* Checks that the caller may use the packet that is the run's payload. A client that
 * triggers a run with a packet can read it through that run, so it must be allowed to read
 * every packet. Returns ERR_FORBIDDEN with call->why. */
enum err packet_check_named(struct api_call *call, const struct run *run);

/* Outputs of runs and tokens are also packets, named "~output/<id>". They cannot be
 * uploaded, and only secret keys may request them by name. packet_is_output returns false
 * for any other name. */
void packet_name_output(struct slice id, struct buf *out);
bool packet_is_output(struct slice name, struct slice *id);
