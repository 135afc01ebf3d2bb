/* packet_name.h - what packets are called, and the signed URLs that lead to them.
 *
 * A packet is a document under its name, with the environment that it is of. */
#pragma once

#include "api/request/call.h"

enum { PACKET_NAME_MAX = 512 };

/* One or more segments with slashes between them, none empty, "." or "..". ERR_INVALID with
 * the text. */
enum err packet_check_name(struct slice name, struct failure *why);

/* Appends the absolute URL that reads ("GET") or writes ("PUT") the packet without a
 * credential, for an hour. The name need not exist. */
void packet_url(struct api_call *call, const struct account *account, const char *method,
                struct slice name, struct buf *out);

/* May this identity read every packet by its name? A token that may not still reads those
 * of the runs that it may read. */
bool packet_any_is_open_to(const struct identity *who);

/* Whoever names a stored packet as the payload of a run can read it through that run:
 * ERR_FORBIDDEN with the text, unless the caller may read every packet. */
enum err packet_check_named(struct api_call *call, const struct run *run);

/* The outputs of runs and tokens are packets too, under names that nobody uploads:
 * "~output/<id>". They are for secret keys. False: the name is another. */
void packet_name_output(struct slice id, struct buf *out);
bool packet_is_output(struct slice name, struct slice *id);
