/* restore.h - brings an environment's documents back into memory at start. */
#pragma once

#include "api/request/call.h"

/* Takes documents of DOC_WORKER, DOC_CURRENT, DOC_DEPLOYMENT, DOC_BUILD_VARIABLES, DOC_QUEUE,
 * DOC_VARIABLE, DOC_SCHEDULE and DOC_BULK, in this order of kinds; ignores other kinds. After an
 * error, why says what is wrong with the document. */
enum err api_restore(struct api *api, const struct document *document, struct failure *why);
