/* quotas.c - finds the memory quotas that a call counts in, by its credential. */
#include "api/request/quotas.h"

#include "api/request/route.h"
#include "base/mem.h"
#include "net/share.h"

enum {
    KEPT_BODY_MAX = 16 << 20, /* longer ones are consumed while they arrive */
    UNAUTHENTICATED_QUOTA = 8 << 20,
    ALL_ANSWERS_QUOTA = 512 << 20,
    ALL_STREAMS = 4, /* the gateway has the stream memory of this many environments */
};

void quotas_init(struct quotas *quotas)
{
    *quotas = (struct quotas){ .unauthenticated.limit = UNAUTHENTICATED_QUOTA,
                               .supervised.limit = BODY_QUOTA,
                               .answers.limit = ALL_ANSWERS_QUOTA };
}

void quotas_finish(struct quotas *quotas)
{
    uint32_t at = 0;
    for (struct environment_quotas *own; (own = slots_next(&quotas->environments, &at));)
        free(own);
    slots_finish(&quotas->environments);
}

bool quotas_keep_body(const struct route *route)
{
    return route->body_limit <= KEPT_BODY_MAX && route->on_body != api_drop_body;
}

/* Returns the quota, of limit `most`, that contains an environment's quota. shared, a
 * member of the environment's outer quotas, is that quota or, for preview and its branches,
 * their common one, inside the project's. */
static struct quota *outer_of(struct quota *project, struct quota *shared, size_t most)
{
    project->limit = most;
    if (shared != project) {
        shared->outer = project;
        shared->limit = most / BRANCHES_PART;
    }
    return shared;
}

#define OUTER_QUOTA(account, member, most)                                                 \
    outer_of(&(account)->project->shared.member, &account_shared_quotas(account)->member,  \
             (size_t)(most))

static void put_own_inside(struct environment_quotas *own, struct account *account,
                           const struct api_options *options)
{
    size_t batches = (size_t)options->batch_memory,
           streams = (size_t)options->stream_memory;
    own->seats.limit = (size_t)options->realtime_connections;
    own->seats.outer = OUTER_QUOTA(account, seats, options->project_connections);
    own->batches.limit = batches;
    own->batches.outer = OUTER_QUOTA(account, batches, 2 * batches);
    own->streams.limit = streams;
    own->streams.outer = OUTER_QUOTA(account, streams, 2 * streams);
}

void quotas_put_inside(struct quotas *quotas, struct environment *env,
                       struct account *account, const struct api_options *options)
{
    void **place = slots_at(&quotas->environments, env->number);
    struct project *project = account->project;
    if (!*place)
        *place = mem_new(struct environment_quotas);
    put_own_inside(*place, account, options);
    quotas->streams.limit = ALL_STREAMS * (size_t)options->stream_memory;
    project->shared.streams.outer = &quotas->streams;
    project->shared.answers.outer = &quotas->answers;
    env->answers = OUTER_QUOTA(account, answers, project->shared.answers.limit);
    env->windows.quota.outer = OUTER_QUOTA(account, watched, PROJECT_WINDOWS_MAX);
    env->queues.own.configured.outer =
        OUTER_QUOTA(account, configured, PROJECT_QUEUES_CONFIGURED_MAX);
    env->queues.limits.configured.outer = env->queues.own.configured.outer;
    env->project_views = OUTER_QUOTA(account, views, PROJECT_VIEWS_MAX);
    env->tasks.quota = OUTER_QUOTA(account, figures, PROJECT_FIGURES_BYTES);
    env->project_unfinished = OUTER_QUOTA(account, unfinished, 0);
    project->stored.limit = (size_t)options->storage_quota;
}

void quotas_forget(struct quotas *quotas, const struct environment *env)
{
    free(quotas_of(quotas, env));
    *slots_at(&quotas->environments, env->number) = NULL;
}

/* Returns the project of a worker's token; NULL for other credentials. */
static struct project *served(const struct identity *who)
{
    return who && who->secret ? who->secret->project : NULL;
}

/* Returns the quota of the environment whose key was used: branches of preview share it. It
 * may take half of the project's quota; the rest stays free for other environments. */
static struct quota *environment_bodies(struct account *account)
{
    struct quota *quota = &account_of_keys(account)->bodies;
    quota->outer = &account->project->bodies;
    quota->limit = quota->outer->limit / BRANCHES_PART;
    return quota;
}

static struct quota *body_quota(struct api_call *call)
{
    const struct identity *who = call->identity;
    if (call->account)
        return environment_bodies(call->account);
    if (who && who->user)
        return &who->user->bodies;
    if (who && who->secret && who->secret->serves_all)
        return &api_quotas(call->api)->supervised;
    return served(who) ? &served(who)->bodies : &api_quotas(call->api)->unauthenticated;
}

/* Returns the quota for responses to the caller; NULL: they are not counted. It is inside
 * the total quota once the project has an environment. */
static struct quota *answer_quota(struct api_call *call)
{
    const struct identity *who = call->identity;
    if (call->account)
        return &account_shared_quotas(call->account)->answers;
    if (who && who->user) {
        who->user->answers.outer = &api_quotas(call->api)->answers;
        return &who->user->answers;
    }
    return served(who) ? &served(who)->shared.answers : NULL;
}

enum err quotas_check_answer(struct api_call *call)
{
    if (quota_has(call->x->answer_quota, 1))
        return OK;
    return explain(&call->why, ERR_NO_ROOM,
                   "Too many of your responses are still unread; read them, then try again "
                   "with fewer requests at once");
}

/* Returns true if the response may be long. Only reads have long ones, and calls that
 * workers depend on are never refused. */
static bool may_be_long(const struct api_call *call)
{
    const struct route *route = call->route;
    return route->method == HTTP_GET_ && route->auth != AUTH_NONE &&
           !slice_starts(call->x->path, "/engine/");
}

enum err quotas_enter(struct api_call *call)
{
    call->x->body_quota = quotas_keep_body(call->route) ? body_quota(call) : NULL;
    call->x->answer_quota = answer_quota(call);
    return may_be_long(call) ? quotas_check_answer(call) : OK;
}

void quotas_hold(struct api_call *call, size_t bytes)
{
    call->quota = call->x->answer_quota;
    call->quota_taken += bytes;
    quota_take(call->quota, bytes);
}

static void hold_packets(struct api_call *call, const struct run *run)
{
    struct bytes *packets[] = { run->payload, run->output, run->metadata,
                                run->metadata_seed, run->error };
    size_t more = sizeof(packets) / sizeof(packets[0]);
    call->quota = call->x->answer_quota;
    call->shared =
        mem_resize(call->shared, (call->shared_count + more) * sizeof(struct bytes *));
    for (size_t i = 0; i < more; i++) {
        call->shared[call->shared_count++] = packets[i];
        share_take(call->quota, packets[i]);
    }
}

enum err quotas_hold_run(struct api_call *call, const struct run_read *read)
{
    enum err full = may_be_long(call) ? quotas_check_answer(call) : OK;
    if (!full && read->loaded)
        hold_packets(call, read->run);
    return full;
}

void quotas_leave(struct api_call *call)
{
    quota_release(call->quota, call->quota_taken);
    call->quota_taken = 0;
    for (size_t i = 0; i < call->shared_count; i++)
        share_give(call->quota, call->shared[i]);
    free(call->shared);
    call->shared = NULL;
    call->shared_count = 0;
}

enum err quotas_release_response(struct api_call *call)
{
    quotas_leave(call);
    return may_be_long(call) ? quotas_check_answer(call) : OK;
}

enum err quotas_hold_piece(struct api_call *call, size_t bytes)
{
    quota_release(call->quota, call->quota_taken);
    call->quota = body_quota(call);
    call->quota_taken = 0;
    if (bytes && !quota_has(call->quota, bytes))
        return explain(&call->why, ERR_NO_ROOM,
                       "The bodies of your requests in flight use all memory of your "
                       "share; try again, or send fewer at once");
    call->quota_taken = bytes;
    quota_take(call->quota, bytes);
    return OK;
}
