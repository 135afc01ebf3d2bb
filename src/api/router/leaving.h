/* leaving.h - the environments of archived branches leave memory, and all that the parts of
 * the api keep for them, when nobody will look at them again. */
#pragma once

#include "api/request/call.h"

struct leaving;

struct leaving *leaving_create(struct api *api);
/* NULL is fine. */
void leaving_destroy(struct leaving *leaving);

/* The environment of that number, which is retired, leaves memory when nobody holds it. */
void leaving_add(struct leaving *leaving, uint32_t number);
