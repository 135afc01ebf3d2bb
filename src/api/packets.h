/* packets.h - where a payload or output that travels beside its run can be read. */
#pragma once

#include "api/api.h"

/* Appends the absolute URL that reads the packet without a credential, for some minutes
 * (management-api §15.2). The name need not exist. */
void packet_url(struct api_call *call, const struct account *account, struct slice name,
                struct buf *out);
