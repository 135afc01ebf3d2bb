/* upgrade.h - whether a page may open a WebSocket of runs.v1, and in which encoding. */
#pragma once

#include "api/request/call.h"
#include "core/wire/wire.h"

/* Returns true if a page of this origin may connect: the origin is http://host or
 * https://host of the request itself, or is in the list. */
bool upgrade_origin_is_allowed(const struct api_call *call, struct slice origin);

/* Chooses the first offered subprotocol that we support; NULL if none is offered. Several
 * lines of the header are one list. Returns ERR_INVALID with the reason. */
enum err upgrade_choose_protocol(struct api_call *call, const char **protocol,
                                 enum encoding *encoding);
