/* scrape.h - one answer of /metrics. */
#pragma once

#include "api/request/call.h"

/* Replies, in some turns. */
void scrape_begin(struct api_call *call);
