/* rooms.c - finds the memory quotas (rooms) that a call counts in, by its credential. */
#include "api/request/rooms.h"

#include "api/request/route.h"
#include "base/mem.h"
#include "base/share.h"

enum {
    KEPT_BODY_MAX = 16 << 20, /* longer ones are used up while they arrive */
    STRANGERS_ROOM = 8 << 20,
    ALL_ANSWERS_ROOM = 512 << 20,
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

static void put_inside(struct room *room, struct room *project, int64_t limit)
{
    room->limit = (size_t)limit;
    room->outer = project;
    project->limit = 2 * room->limit;
}

static void put_seats_inside(struct room *room, struct room *project,
                             const struct api_options *options)
{
    put_inside(room, project, options->realtime_connections);
    project->limit = (size_t)options->project_connections;
}

void rooms_put_inside(struct rooms *rooms, struct environment *env, struct project *project,
                      const struct api_options *options)
{
    void **place = slots_at(&rooms->environments, env->number);
    if (!*place)
        *place = mem_new(struct environment_rooms);
    struct environment_rooms *own = *place;
    project->answers.outer = &rooms->answers;
    env->answers = &project->answers;
    put_seats_inside(&own->seats, &project->seats, options);
    put_inside(&own->batches, &project->batches, options->batch_memory);
    put_inside(&own->streams, &project->streams, options->stream_memory);
    env->windows.room.outer = &project->watched;
    project->watched.limit = PROJECT_WINDOWS_MAX;
    env->queues.configured.outer = &project->configured;
    project->configured.limit = PROJECT_QUEUES_CONFIGURED_MAX;
    env->project_views = &project->views;
    project->views.limit = PROJECT_VIEWS_MAX;
    env->project_unfinished = &project->unfinished;
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
    room->limit = room->outer->limit / 2;
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

/* Returns the quota for responses to the caller; NULL: they are not counted. A project's
 * quota is inside the one of all since the project has an environment. */
static struct room *answer_room(struct api_call *call)
{
    const struct identity *who = call->identity;
    if (call->account)
        return &call->account->project->answers;
    if (who && who->user) {
        who->user->answers.outer = &api_rooms(call->api)->answers;
        return &who->user->answers;
    }
    return served(who) ? &served(who)->answers : NULL;
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
