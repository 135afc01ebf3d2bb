/* limit_expiry.h - ends overrides of keys of concurrency limits at their time. */
#pragma once

#include "api/request/call.h"

struct limit_expiry;

struct limit_expiry *limit_expiry_create(struct api *api);
void limit_expiry_destroy(struct limit_expiry *expiry);

/* Ends what has ended, and waits for the next end. Call it when an override was added, and
 * when all documents are loaded. */
void limit_expiry_look(struct limit_expiry *expiry);

/* Ends no more overrides. */
void limit_expiry_stop(struct limit_expiry *expiry);
