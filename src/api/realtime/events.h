/* events.h - all event streams, for api/router/services.c and retention. */
#pragma once

#include "base/loop.h"

struct environment;
struct events;

struct events *events_create(struct loop *loop);

/* Retention has moved the environment's floor: `floor` to each of its streams. */
void events_tell_floor(struct events *events, const struct environment *env);
