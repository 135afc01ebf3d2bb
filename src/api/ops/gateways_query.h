/* gateways_query.h - lists the gateways on the database.
 *
 * Only the one that leads knows all of them. Another one asks it (api_options). */
#pragma once

#include "api/request/call.h"

/* Embedded in a call. */
struct gateways_query {
    bool has_addresses; /* for operators */
    /* Called once, maybe within list_gateways. json: {"gateways": […]}, borrowed. why: the
     * reason of a failure; NULL: json is the list. */
    void (*done)(struct gateways_query *query, struct slice json, const char *why);
};

/* Replies with the list, later. */
enum err gateways_list(struct api_call *call, bool has_addresses);
