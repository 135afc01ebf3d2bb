/* envvars.h - the order of writes of environment variables, shared by all calls. */
#pragma once

#include "base/loop.h"

struct envvars;
struct vault;

struct envvars *envvars_create(struct loop *loop, struct vault *vault);

/* Requires that every call has its reply. */
void envvars_destroy(struct envvars *envvars);
