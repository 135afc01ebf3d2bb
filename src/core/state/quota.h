/* quota.h - the storage quotas of projects. */
#pragma once

#include "core/state/state.h"

/* Adds the environment to its project's storage quota. From now on its stored bytes count,
 * even while the environment is not in memory. Further calls have no effect. */
void engine_join_stored(struct engine *engine, uint32_t number, struct quota *project);

/* Returns ERR_QUOTA if `more` bytes would exceed the project's storage quota. Commits in
 * flight do not count, unless they were reserved (engine_hold_stored). */
enum err engine_check_quota(const struct environment *env, size_t more,
                            struct failure *why);

/* Returns true if both environments belong to one project, so that limits count them
 * together. */
bool engine_share_quota(const struct environment *env, uint32_t other);

/* Returns true if the environment's project has reached its storage quota. Workers then get
 * none of its runs, and executing runs keep only small outputs. Waiting workers get runs as
 * soon as the project is below the quota again. */
bool engine_is_at_quota(const struct environment *env);

/* Call it when quotas have changed: waiting workers get runs of every environment below its
 * quota. */
void engine_check_full_quotas(struct engine *engine);

/* Returns the project's storage quota if it is reached, otherwise NULL. */
const struct quota *engine_full_quota(const struct environment *env);

/* Reserves quota for bytes being written. Release them when the write has succeeded or
 * failed. */
void engine_hold_stored(const struct environment *env, size_t bytes);
void engine_release_stored(struct engine *engine, const struct environment *env,
                           size_t bytes);

/* Returns ERR_QUOTA if a text would grow from before to after bytes and the project is
 * full. */
enum err engine_check_growth(const struct environment *env, size_t before, size_t after,
                             struct failure *why);

/* ---- the engine's ---- */

/* The environment's stored bytes have changed by this many; may be negative. */
void quota_on_stored(void *owner, uint32_t number, int64_t bytes);
uint64_t quota_share_of(void *owner, uint32_t number);
