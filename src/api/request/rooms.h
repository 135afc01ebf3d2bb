/* rooms.h - whose memory the body of a call takes, and its answer (base/room.h).
 *
 *   secret key, token, signed URL ─► both of the project; bodies of one environment, with its
 *                                    branches, have half of it at most
 *   worker's token                ─► both of the project; of one that serves all projects bodies have
 *                                    a room of their own, and answers none: they are short
 *   personal token                ─► both of the person
 *   nobody                        ─► one small room for all strangers' bodies; answers
 *                                    count nowhere: what is long of them is one document
 *                                    that all connections share (/openapi.json)
 *
 * Answers of everybody who is known together have a room, too: it is outside of all those. */
#pragma once

#include "api/request/call.h"
#include "base/slots.h"

/* What the clients of one environment may hold. */
struct environment_rooms {
    struct room seats;   /* connections that stay */
    struct room batches; /* bytes of batches that are open */
    struct room streams; /* bytes of streams */
};

struct rooms {
    struct room strangers;     /* bodies of which nobody knows whose they are */
    struct room supervised;    /* bodies of a token that serves all projects */
    struct room answers;       /* unsent ones of everybody who is known */
    struct slots environments; /* struct environment_rooms, by the environment's number */
};

void rooms_init(struct rooms *rooms);
void rooms_finish(struct rooms *rooms);

/* Those of an environment that rooms_put_inside has put there. */
static inline struct environment_rooms *rooms_of(const struct rooms *rooms,
                                                 const struct environment *env)
{
    return slots_get(&rooms->environments, env->number);
}

/* Gives an environment its rooms for what its clients may hold, each inside of one of its
 * project that has a larger limit (twice, if the options name no other): one environment
 * cannot take all that its project has, and a project that makes more of them (preview
 * branches) gets no more for it. */
void rooms_put_inside(struct rooms *rooms, struct environment *env, struct project *project,
                      const struct api_options *options);

/* The environment leaves memory: its clients hold nothing any more. */
void rooms_forget(struct rooms *rooms, const struct environment *env);

/* The head of a call is complete and it is known who asks: sets the rooms of its exchange.
 * ERR_NO_ROOM: it would show something, and unsent answers have filled the room for that. */
enum err rooms_enter(struct api_call *call);

/* ERR_NO_ROOM when the room for answers has become full since: asked again when something
 * long was loaded, before it is written. */
enum err rooms_check_answer(struct api_call *call);

/* So many bytes more are in memory for the answer; given back when the call ends. */
void rooms_hold(struct api_call *call, size_t bytes);

/* The same of a run that was read for the answer: one from the store is in memory only for
 * the calls that show it, and what they share counts once. ERR_NO_ROOM: it was not held, the
 * room has become full since. */
enum err rooms_hold_run(struct api_call *call, const struct run_read *read);

/* What was held for the call is given back. */
void rooms_leave(struct api_call *call);

/* The answer is complete: what was held for it is given back, as it counts while it is sent.
 * ERR_NO_ROOM: the room is full with those of others. */
enum err rooms_let_go(struct api_call *call);

/* So many bytes are in memory now of a body that is used up piece by piece; what was said of
 * the call before counts no more. ERR_NO_ROOM: the room for bodies is full. */
enum err rooms_hold_piece(struct api_call *call, size_t bytes);

/* Bodies are in memory while they come, so they count in a room. False: they are thrown
 * away, or so long that they are used up piece by piece. */
bool rooms_keep_body(const struct route *route);

/* Bytes of a body that is kept although no room counts it, since its sender has no credential
 * yet: signing in. Their connections are counted. */
enum { STRANGER_BODY_MAX = 2048 };
