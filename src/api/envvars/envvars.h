/* envvars.h - what all writes of environment variables share: their order. */
#pragma once

#include "base/loop.h"

struct envvars;
struct vault;

struct envvars *envvars_create(struct loop *loop, struct vault *vault);

/* Every call was answered. */
void envvars_destroy(struct envvars *envvars);
