/* services.h - the life of what the calls of all clients share. */
#pragma once

#include "api/request/call.h"

/* Not ready at first: api_set_ready. */
struct api *api_create(struct engine *engine, struct schedules *schedules,
                       struct auth *auth, struct accounts *accounts,
                       const struct api_options *options);
/* All is loaded, and nobody is let in yet. ERR_INTERNAL with the reason: a folder of the data
 * directory cannot be used. */
enum err api_start(struct api *api, struct failure *why);

/* Brings a document of an environment back into memory. Takes documents of DOC_WORKER, DOC_CURRENT,
 * DOC_DEPLOYMENT, DOC_BUILD_VARIABLES, DOC_QUEUE, DOC_VARIABLE, DOC_SCHEDULE and DOC_BULK, in this
 * order of kinds; ignores other kinds. After an error, why says what is wrong with the document. */
enum err api_restore(struct api *api, const struct document *document, struct failure *why);

/* Every call is answered: what the parts have begun by themselves ends. False: something is
 * still on its way, to be asked again. */
bool api_may_end(struct api *api);

/* NULL is fine. */
void api_destroy(struct api *api);

/* The environment of the account, which is linked, comes into memory. What its clients may
 * hold counts for its project too. */
void api_add_environment(struct api *api, struct account *account);

/* The branch of the account was archived, or its project deleted: what is under way in its
 * environment ends, and then it leaves memory. Nothing if that was said before. */
void api_retire_environment(struct api *api, const struct account *account);

/* Options of which nothing has changed but what config_take lets change: that is looked at where it is
 * needed. */
void api_reload(struct api *api, const struct api_options *options);

/* Not ready: /readyz 503 with the reason, everything but health 503. NULL: ready. */
void api_set_ready(struct api *api, const char *reason);

/* The same while this gateway waits for the lead, or loads. On a database of several gateways calls
 * wait, too, for some seconds. */
void api_stand_by(struct api *api, const char *reason);

/* Calls that wait so are refused: another gateway leads, and takes them when they are repeated. */
void api_refuse_early(struct api *api);

/* Sockets get `drain`, spread over at most a third of the time, and are closed within twice that.
 * has_next: the next process follows (sockets.h). */
void api_drain_sockets(struct api *api, int64_t timeout_ms, bool has_next);

/* Held polls and dequeues are answered, in stints. */
void api_drain(struct api *api);

/* The same of what was held since then. */
void api_drain_held(struct api *api);

/* No call is held any more, and what is written at a drain was handed to the store. */
bool api_has_drained(const struct api *api);

/* Another gateway may lead by now (call.h, api_doubt): held calls end, in stints. Sockets and streams
 * stay, and are silent. */
void api_begin_doubt(struct api *api);

/* The doubt has ended, and nothing has changed: sockets and streams continue. */
void api_end_doubt(struct api *api);

/* Another gateway leads: sockets are closed with CLOSE_MOVED, and held calls end. */
void api_move(struct api *api);

/* It is not ready any more, but nobody is refused who is connected, until that is said anew. */
void api_serve_on(struct api *api);

/* What is held (polls, dequeues) is answered now: the server is about to close. */
void api_stop(struct api *api);
