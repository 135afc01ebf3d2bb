/* leaving.h - frees retired environments, with all that the API keeps for them.
 *
 * Environments are retired when their branch is archived or their project deleted. */
#pragma once

#include "api/request/call.h"

struct leaving;

struct leaving *leaving_create(struct api *api);
/* Ignores NULL. */
void leaving_destroy(struct leaving *leaving);

/* Frees the retired environment of that number as soon as no code holds it. */
void leaving_add(struct leaving *leaving, uint32_t number);
