/* scrape.h - one answer of /metrics. */
#pragma once

#include "call/call.h"

/* Replies, in some turns. */
void scrape_begin(struct api_call *call);
