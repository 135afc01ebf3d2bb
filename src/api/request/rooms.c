/* rooms.c - finds the memory quotas (rooms) that a call counts in, by its credential. */
#include "api/request/rooms.h"

#include "api/request/route.h"
#include "base/mem.h"
#include "base/share.h"

enum {
    KEPT_BODY_MAX = 16 << 20, /* longer ones are used up while they arrive */
    STRANGERS_ROOM = 8 << 20,
    ALL_ANSWERS_ROOM = 512 << 20,
    ALL_STREAMS = 4, /* the gateway has the stream memory of this many environments */
};

void rooms_init(struct rooms *rooms)
{
    *rooms = (struct rooms){ .strangers.limit = STRANGERS_ROOM,
                             .supervised.limit = BODY_ROOM,
                             .answers.limit = ALL_ANSWERS_ROOM };
}

void rooms_finish(struct rooms *rooms)
{
    uint32_t at = 0;
    for (struct environment_rooms *own; (own = slots_next(&rooms->environments, &at));)
        free(own);
    slots_finish(&rooms->environments);
}

bool rooms_keep_body(const struct route *route)
{
    return route->body_limit <= KEPT_BODY_MAX && route->on_body != api_drop_body;
}

/* Returns the room, of limit `most`, into which an environment's room goes. shared, a member
 * of the environment's outer quotas, is that room or, for preview and its branches, the one
 * of these, inside the project's. */
static struct room *outer_of(struct room *project, struct room *shared, size_t most)
{
    project->limit = most;
    if (shared != project) {
        shared->outer = project;
        shared->limit = most / BRANCHES_PART;
    }
    return shared;
}

#define OUTER_ROOM(account, member, most)                                                  \
    outer_of(&(account)->project->shared.member, &account_shared_rooms(account)->member,   \
             (size_t)(most))

static void put_own_inside(struct environment_rooms *own, struct account *account,
                           const struct api_options *options)
{
    size_t batches = (size_t)options->batch_memory,
           streams = (size_t)options->stream_memory;
    own->seats.limit = (size_t)options->realtime_connections;
    own->seats.outer = OUTER_ROOM(account, seats, options->project_connections);
    own->batches.limit = batches;
    own->batches.outer = OUTER_ROOM(account, batches, 2 * batches);
    own->streams.limit = streams;
    own->streams.outer = OUTER_ROOM(account, streams, 2 * streams);
}

void rooms_put_inside(struct rooms *rooms, struct environment *env, struct account *account,
                      const struct api_options *options)
{
    void **place = slots_at(&rooms->environments, env->number);
    struct project *project = account->project;
    if (!*place)
        *place = mem_new(struct environment_rooms);
    put_own_inside(*place, account, options);
    rooms->streams.limit = ALL_STREAMS * (size_t)options->stream_memory;
    project->shared.streams.outer = &rooms->streams;
    project->shared.answers.outer = &rooms->answers;
    env->answers = OUTER_ROOM(account, answers, project->shared.answers.limit);
    env->windows.room.outer = OUTER_ROOM(account, watched, PROJECT_WINDOWS_MAX);
    env->queues.configured.outer =
        OUTER_ROOM(account, configured, PROJECT_QUEUES_CONFIGURED_MAX);
    env->project_views = OUTER_ROOM(account, views, PROJECT_VIEWS_MAX);
    env->tasks.room = OUTER_ROOM(account, figures, PROJECT_FIGURES_BYTES);
    env->project_unfinished = OUTER_ROOM(account, unfinished, 0);
    project->stored.limit = (size_t)options->storage_quota;
}

void rooms_forget(struct rooms *rooms, const struct environment *env)
{
    free(rooms_of(rooms, env));
    *slots_at(&rooms->environments, env->number) = NULL;
}

/* Returns the project of a worker's token; NULL for other credentials. */
static struct project *served(const struct identity *who)
{
    return who && who->secret ? who->secret->project : NULL;
}

/* Returns the quota of the environment whose key was used: branches of preview share it. It
 * may take half of the project's quota; the rest stays free for other environments. */
static struct room *environment_bodies(struct account *account)
{
    struct room *room = &account_of_keys(account)->bodies;
    room->outer = &account->project->bodies;
    room->limit = room->outer->limit / BRANCHES_PART;
    return room;
}

static struct room *body_room(struct api_call *call)
{
    const struct identity *who = call->identity;
    if (call->account)
        return environment_bodies(call->account);
    if (who && who->user)
        return &who->user->bodies;
    if (who && who->secret && who->secret->serves_all)
        return &api_rooms(call->api)->supervised;
    return served(who) ? &served(who)->bodies : &api_rooms(call->api)->strangers;
}

/* Returns the quota for responses to the caller; NULL: they are not counted. It is inside
 * the one of all since the project has an environment. */
static struct room *answer_room(struct api_call *call)
{
    const struct identity *who = call->identity;
    if (call->account)
        return &account_shared_rooms(call->account)->answers;
    if (who && who->user) {
        who->user->answers.outer = &api_rooms(call->api)->answers;
        return &who->user->answers;
    }
    return served(who) ? &served(who)->shared.answers : NULL;
}

enum err rooms_check_answer(struct api_call *call)
{
    if (room_has(call->x->answer_room, 1))
        return OK;
    return explain(&call->why, ERR_NO_ROOM,
                   "Too many responses wait to be read by you; read them, then try again "
                   "with fewer requests at once");
}

/* Returns true if the response may be long. Only reads have long ones, and calls that keep
 * workers going are never refused. */
static bool may_be_long(const struct api_call *call)
{
    const struct route *route = call->route;
    return route->method == HTTP_GET_ && route->auth != AUTH_NONE &&
           !slice_starts(call->x->path, "/engine/");
}

enum err rooms_enter(struct api_call *call)
{
    call->x->body_room = rooms_keep_body(call->route) ? body_room(call) : NULL;
    call->x->answer_room = answer_room(call);
    return may_be_long(call) ? rooms_check_answer(call) : OK;
}

void rooms_hold(struct api_call *call, size_t bytes)
{
    call->room = call->x->answer_room;
    call->room_taken += bytes;
    room_take(call->room, bytes);
}

static void hold_packets(struct api_call *call, const struct run *run)
{
    struct bytes *packets[] = { run->payload, run->output, run->metadata,
                                run->metadata_seed, run->error };
    size_t more = sizeof(packets) / sizeof(packets[0]);
    call->room = call->x->answer_room;
    call->shared =
        mem_resize(call->shared, (call->shared_count + more) * sizeof(struct bytes *));
    for (size_t i = 0; i < more; i++) {
        call->shared[call->shared_count++] = packets[i];
        share_take(call->room, packets[i]);
    }
}

enum err rooms_hold_run(struct api_call *call, const struct run_read *read)
{
    enum err full = may_be_long(call) ? rooms_check_answer(call) : OK;
    if (!full && read->loaded)
        hold_packets(call, read->run);
    return full;
}

void rooms_leave(struct api_call *call)
{
    room_give(call->room, call->room_taken);
    call->room_taken = 0;
    for (size_t i = 0; i < call->shared_count; i++)
        share_give(call->room, call->shared[i]);
    free(call->shared);
    call->shared = NULL;
    call->shared_count = 0;
}

enum err rooms_let_go(struct api_call *call)
{
    rooms_leave(call);
    return may_be_long(call) ? rooms_check_answer(call) : OK;
}

enum err rooms_hold_piece(struct api_call *call, size_t bytes)
{
    room_give(call->room, call->room_taken);
    call->room = body_room(call);
    call->room_taken = 0;
    if (bytes && !room_has(call->room, bytes))
        return explain(&call->why, ERR_NO_ROOM,
                       "The bodies of your requests in flight use all memory of your "
                       "share; try again, or send fewer at once");
    call->room_taken = bytes;
    room_take(call->room, bytes);
    return OK;
}
