/* scrape.h - one response of /metrics. */
#pragma once

#include "api/request/call.h"

/* Replies some turns later. */
void scrape_begin(struct api_call *call);
