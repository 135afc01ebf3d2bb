/* unready.h - reasons not to send work here, for /readyz and runcast_ready. */
#pragma once

#include "api/request/call.h"

enum { UNREADY_REASONS_MAX = 3 };

/* Fills words with one word for each reason and returns their number; 0: the gateway is
 * ready. A gateway that drains never becomes ready again. One that follows is ready while its
 * memory is current and it can forward calls. */
size_t unready_reasons(const struct api *api, const char *words[UNREADY_REASONS_MAX]);
