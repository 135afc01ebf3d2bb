/* retired.h - frees retired environments, with everything that the API keeps for them.
 *
 * An environment is retired when its branch is archived or its project is deleted. */
#pragma once

#include "api/request/call.h"

struct retired;

struct retired *retired_create(struct api *api);
/* Ignores NULL. */
void retired_destroy(struct retired *retired);

/* Frees the retired environment with that number as soon as no code holds it. */
void retired_add(struct retired *retired, uint32_t number);
