/* absent.h - what Trigger.dev has and runcast has not: its paths are 404 in words. */
#pragma once

#include "http/http.h"

/* What Trigger.dev has at the path; NULL: nothing that runcast lacks. */
const char *absent_at(enum http_method method, struct slice path);

/* True for such a path that is also one of a route with an id in it: no id is called that. */
bool absent_hides_route(struct slice path);
