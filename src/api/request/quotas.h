/* quotas.h - the memory quotas (base/quota.h) of a call's body and response.
 *
 *   secret key, token, signed URL ─► both in the project's; bodies of one environment,
 *                                    with its branches, in at most half of it, and so
 *                                    responses to clients of the branches
 *   worker's token                ─► both in the project's; if it serves all projects:
 *                                    bodies in their own quota, and responses in
 *                                    none, because they are short
 *   personal token                ─► both in the person's
 *   none                          ─► all such bodies in one small quota; responses in none:
 *                                    the only long one is a document that all connections
 *                                    share (/openapi.json)
 *
 * Responses to all callers with a credential also share one quota, around all of these. */
#pragma once

#include "api/request/call.h"
#include "base/slots.h"

/* Quotas for what the clients of one environment may hold. */
struct environment_quotas {
    struct quota seats;   /* long-lived connections */
    struct quota batches; /* bytes of open batches */
    struct quota streams; /* bytes of streams */
};

struct quotas {
    struct quota unauthenticated; /* bodies of callers without a credential */
    struct quota supervised;      /* bodies of a token that serves all projects */
    struct quota answers;         /* unsent ones, to all callers with a credential */
    struct quota streams;         /* bytes of streams of all projects */
    struct slots environments; /* struct environment_quotas, by the environment's number */
};

void quotas_init(struct quotas *quotas);
void quotas_finish(struct quotas *quotas);

/* Returns the quotas that quotas_put_inside has made for the environment. */
static inline struct environment_quotas *quotas_of(const struct quotas *quotas,
                                                   const struct environment *env)
{
    return slots_get(&quotas->environments, env->number);
}

/* Gives an environment the quotas for what its clients may hold. Each is inside one of its
 * project, which has a larger limit (twice, unless the options name another). So one
 * environment cannot take everything that its project has, and a project does not get more
 * by creating environments (preview branches).
 *
 * The preview branches of a project share a quota, half of the project's. So they cannot
 * take all of it from the other environments, however many there are. Streams are discarded
 * only above the limits of project and gateway, but with the same nesting. */
void quotas_put_inside(struct quotas *quotas, struct environment *env,
                       struct account *account, const struct api_options *options);

/* Frees the quotas of an environment that leaves memory, whose clients no longer hold
 * anything. */
void quotas_forget(struct quotas *quotas, const struct environment *env);

/* Sets the quotas of the exchange; call it when the head is complete and the caller is
 * known. Returns ERR_NO_ROOM if the call would show something while unsent responses fill
 * the quota for that. */
enum err quotas_enter(struct api_call *call);

/* Returns ERR_NO_ROOM if the quota for responses has filled since. Call it after loading
 * something long, before writing it. */
enum err quotas_check_answer(struct api_call *call);

/* Counts further bytes in memory for the response; released when the call ends. */
void quotas_hold(struct api_call *call, size_t bytes);

/* The same for a run that was read for the response. A run from the store is in memory only
 * for the calls that show it, and bytes that they share count once. Returns ERR_NO_ROOM if
 * the quota has filled since; then nothing is counted. */
enum err quotas_hold_run(struct api_call *call, const struct run_read *read);

/* Releases what was counted for the call. */
void quotas_leave(struct api_call *call);

/* Releases what was counted for a response that is now complete, because it counts again
 * while it is sent. Returns ERR_NO_ROOM if the quota is full of others' responses. */
enum err quotas_release_response(struct api_call *call);

/* Counts bytes in memory of a body that is consumed piece by piece, replacing what was
 * counted for the call so far. Returns ERR_NO_ROOM if the quota for bodies is full. */
enum err quotas_hold_piece(struct api_call *call, size_t bytes);

/* Returns true if bodies are in memory while they arrive, and so count in a quota.
 * Otherwise they are discarded, or are long and consumed piece by piece. */
bool quotas_keep_body(const struct route *route);

/* Max bytes of a body that is kept although it counts in no quota, because its sender has
 * no credential yet (signing in). The connections of these senders are counted. */
enum { UNAUTHENTICATED_BODY_MAX = 2048 };
