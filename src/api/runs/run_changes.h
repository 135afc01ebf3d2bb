/* run_changes.h - handlers that change a run or replay it. */
#pragma once

#include "api/request/route.h"
#include "api/triggers/trigger_options.h"

/* run_changes.c: reschedule, add tags, reset an idempotency key. */
route_fn run_put_off, run_tag, run_free_key;

/* run_metadata.c. The body of the second one is received by body_fields_take. */
route_fn run_metadata_get, run_metadata_put;

/* run_replay.c. The second one receives the pieces of the body. */
route_fn run_replay;
enum err run_replay_take(struct api_call *call, struct slice piece);

/* Fills in item for a run like the old one, without overrides. Even on failure the
 * caller owns what item holds. */
enum err run_replay_plain(const struct run *old, const struct trigger_place *place,
                          struct trigger *item, struct failure *why);
