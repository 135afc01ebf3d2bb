/* events.h - all event streams, for api/router/services.c and retention. */
#pragma once

#include "base/loop.h"

struct environment;
struct events;

struct events *events_create(struct loop *loop);

/* Sends `floor` to each stream of an environment whose floor retention has moved. */
void events_send_floor(struct events *events, const struct environment *env);
