/* quota.c - how many bytes a project stores, and whether it may store more.
 *
 *   store: bytes of an environment ─┐
 *   store: it has grown or shrunk  ─┼─► quota of the project ─► full: nothing starts in its
 *   bytes that are being written   ─┘                         environments until it is not
 *
 * Environments of one project share its quota, a struct quota (base/quota.h). */
#include "core/state/quota.h"

#include "base/metrics.h"
#include "core/state/members.h"

/* Adds stored bytes, or removes them (negative). More than the sum may be removed if the
 * sum in the database was too small from the start; the result is at least 0. */
static void count_stored(struct quota *project, int64_t bytes)
{
    size_t less = bytes < 0 ? (size_t)-bytes : 0;
    if (less > project->used)
        less = project->used;
    size_t more = bytes > 0 ? (size_t)bytes : 0;
    quota_release(project, less);
    quota_take(project, more);
    metric_add(M_STORED_BYTES, (int64_t)more - (int64_t)less);
}

static bool is_full(const struct quota *project)
{
    return project && project->limit && !quota_has(project, 1);
}

const struct quota *engine_full_quota(const struct environment *env)
{
    const struct quota *project = engine_storage_quota(env);
    return is_full(project) ? project : NULL;
}

bool engine_is_at_quota(const struct environment *env)
{
    return is_full(engine_storage_quota(env));
}

/* Matches waiting runs in every environment of the project once it is below its quota
 * again. */
static void match_project(struct engine *engine, const struct quota *project)
{
    uint32_t at = 0;
    for (struct environment *env; (env = slots_next(&engine->environments, &at));)
        if (engine_storage_quota(env) == project)
            engine_match(engine, env);
}

void engine_check_full_quotas(struct engine *engine)
{
    uint32_t at = 0;
    for (struct environment *env; (env = slots_next(&engine->environments, &at));)
        if (!engine_is_at_quota(env))
            engine_match(engine, env);
}

void engine_hold_stored(const struct environment *env, size_t bytes)
{
    quota_take(engine_storage_quota(env), bytes);
}

/* If the sum in the database was too small, more than the sum may be removed. */
void engine_release_stored(struct engine *engine, const struct environment *env,
                           size_t bytes)
{
    struct quota *project = engine_storage_quota(env);
    if (!project || !bytes)
        return;
    bool was_full = is_full(project);
    quota_release(project, bytes < project->used ? bytes : project->used);
    if (was_full && !is_full(project))
        match_project(engine, project);
}

void quota_on_stored(void *owner, uint32_t number, int64_t bytes)
{
    struct engine *engine = owner;
    struct quota *project = slots_get(&engine->stored, number);
    if (!project)
        return;
    bool was_full = is_full(project);
    count_stored(project, bytes);
    if (was_full && !is_full(project))
        match_project(engine, project);
}

/* Returns a number for the project, the same for all its branches. */
uint64_t quota_share_of(void *owner, uint32_t number)
{
    const struct engine *engine = owner;
    const struct quota *project = slots_get(&engine->stored, number);
    return project ? (uintptr_t)project : number;
}

void engine_join_stored(struct engine *engine, uint32_t number, struct quota *project)
{
    if (engine->follows)
        return; /* the store knows the bytes once this gateway leads */
    void **joined = slots_at(&engine->stored, number);
    if (*joined)
        return;
    *joined = project;
    count_stored(project, engine->store->ops->position(engine->store, number).stored);
}

enum err engine_check_quota(const struct environment *env, size_t more, struct failure *why)
{
    const struct quota *project = engine_storage_quota(env);
    if (!project || !project->limit || quota_has(project, more))
        return OK;
    metric_add(M_OVER_QUOTA, 1);
    return explain(why, ERR_QUOTA,
                   "storage_quota: the project stores %zu of %zu bytes, and this is %zu "
                   "more; wait until retention removes finished runs, or raise the quota",
                   project->used, project->limit, more);
}

bool engine_share_quota(const struct environment *env, uint32_t other)
{
    const struct quota *project = engine_storage_quota(env);
    return project && slots_get(&env->engine->stored, other) == project;
}

enum err engine_check_growth(const struct environment *env, size_t before, size_t after,
                             struct failure *why)
{
    bool grows = after > before && engine_is_at_quota(env);
    return grows ? engine_check_quota(env, after - before, why) : OK;
}
