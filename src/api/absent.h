/* absent.h - what Trigger.dev has and runcast has not: its paths are 404 in words. */
#pragma once

#include "net/http.h"

/* What the path would be; NULL: nobody has anything there. */
const char *absent_at(enum http_method method, struct slice path);
