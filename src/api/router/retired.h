/* retired.h - frees retired environments, with all that the API keeps for them.
 *
 * Environments are retired when their branch is archived or their project deleted. */
#pragma once

#include "api/request/call.h"

struct retired;

struct retired *retired_create(struct api *api);
/* Ignores NULL. */
void retired_destroy(struct retired *retired);

/* Frees the retired environment of that number as soon as no code holds it. */
void retired_add(struct retired *retired, uint32_t number);
