/* run_changes.h - the calls that change a run, or make another one of it. */
#pragma once

#include "api/request/route.h"
#include "api/triggers/trigger_options.h"

/* run_changes.c: reschedule, tags, the reset of an idempotency key. */
route_fn run_put_off, run_tag, run_free_key;

/* run_metadata.c. Its body comes by body_fields_take. */
route_fn run_metadata_get, run_metadata_put;

/* run_replay.c. The second takes the pieces of its body. */
route_fn run_replay;
enum err run_replay_take(struct api_call *call, struct slice piece);

/* The wishes for a run like the old one. What it took is the item's even on failure. */
enum err run_replay_plain(const struct run *old, const struct trigger_place *place,
                          struct trigger *item, struct failure *why);
