/* absent.h - what Trigger.dev has and runcast has not: its paths are 404 in words. */
#pragma once

#include "http/http.h"

/* What the path would be; NULL: nobody has anything there. */
const char *absent_at(enum http_method method, struct slice path);

/* It is one of them, and the path of a route, too, whose id nothing is called by. */
bool absent_hides_route(struct slice path);
