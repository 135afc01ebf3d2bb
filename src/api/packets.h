/* packets.h - payloads and outputs that travel beside their run (management-api §15.2).
 *
 *   client: PUT /api/v2/packets/name ─► a signed URL, for an hour ─► PUT there, no key
 *   reader: run with application/store ─► a signed URL ─► GET there, the type as it came
 *
 * The URLs lead back to this gateway; a packet is a document under its name. */
#pragma once

#include "api/api.h"

enum {
    PACKET_NAME_MAX = 512,
    PACKET_BYTES_MAX = (10 << 20) + (64 << 10),
};

/* Appends the absolute URL that reads the packet without a credential, for an hour. The
 * name need not exist. */
void packet_url(struct api_call *call, const struct account *account, struct slice name,
                struct buf *out);

/* One or more segments with slashes between them, none empty, "." or "..". ERR_INVALID with
 * the text. */
enum err packet_check_name(struct slice name, struct failure *why);

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

/* Behind the signed URLs; params are the environment's id and the name. */
enum err packet_take_piece(struct api_call *call, struct slice piece);
route_fn packet_write, packet_read;
