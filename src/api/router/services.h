/* services.h - creates, starts, drains and stops the parts that all clients' calls
 * share. */
#pragma once

#include "api/request/call.h"

/* Creates all parts. They are not ready until api_set_ready. */
struct api *api_create(struct engine *engine, struct schedules *schedules,
                       struct auth *auth, struct accounts *accounts,
                       const struct api_options *options);
/* Call it when everything is loaded, before any call is accepted. Returns ERR_INTERNAL with
 * the reason if a folder of the data directory cannot be used. */
enum err api_start(struct api *api, struct failure *why);

/* Brings a document of an environment back into memory. Takes documents of DOC_WORKER,
 * DOC_CURRENT, DOC_DEPLOYMENT, DOC_BUILD_VARIABLES, DOC_QUEUE, DOC_VARIABLE,
 * DOC_SCHEDULE, DOC_BULK, DOC_ACTIVITY and DOC_LIMIT, in this order of kinds; ignores other
 * kinds. After an error, why explains what is wrong with the document. */
enum err api_restore(struct api *api, const struct document *document, struct failure *why);

/* Ends what the parts have begun by themselves; call it when every call is answered.
 * Returns false while something is in flight: call it again. */
bool api_may_end(struct api *api);

/* Ignores NULL. */
void api_destroy(struct api *api);

/* Brings the environment of a linked account into memory. Everything that its clients hold
 * also counts for its project. */
void api_add_environment(struct api *api, struct account *account);

/* Ends everything in progress in an environment, then frees its memory. Call it when the
 * account's branch was archived or its project deleted. Further calls do nothing. */
void api_retire_environment(struct api *api, const struct account *account);

/* Replaces the options. Only those that config_take allows to change may differ; they are
 * read where they are needed. */
void api_reload(struct api *api, const struct api_options *options);

/* Sets whether the gateway is ready; reason NULL: it is. Otherwise /readyz is 503 with the
 * reason, and every call except health is 503. */
void api_set_ready(struct api *api, const char *reason);

/* The same while this gateway waits for the lead, or loads. If several gateways may use the
 * database, calls also wait, for some seconds. */
void api_stand_by(struct api *api, const char *reason);

/* The gateway stands by, and its memory follows the leader's: from now on it serves the routes
 * with route::follows, except in doubt (api_doubt). Calls that begin in doubt wait, as while
 * it stands by; api_end_doubt lets them enter. api_stand_by ends this, and so does
 * api_set_ready once this gateway leads. */
void api_follow(struct api *api);

/* Retention has moved the floor of an environment: sends it to sockets and event streams. */
void api_send_floor(struct api *api, const struct environment *env);

/* The leader does not answer any more: calls that it has are sent again if they can be, and end
 * otherwise. */
void api_leave_leader(struct api *api);

/* This gateway drains, and is about to hand over the lead: new calls that only a leader answers
 * wait, and are forwarded to the next one. */
void api_hand_over(struct api *api);

/* The lead was handed over: those calls need not wait longer. They are refused if the next leader
 * accepts none. */
void api_has_handed_over(struct api *api);

/* No gateway takes the lead: refuses those calls. */
void api_end_hand_over(struct api *api);

/* Refuses the calls that wait this way: another gateway leads, and will accept them when
 * they are repeated. */
void api_refuse_early(struct api *api);

/* Sends `drain` to sockets, spread over at most a third of the timeout, and closes them
 * within two thirds of it. has_next: the next process follows (sockets.h). */
void api_drain_sockets(struct api *api, int64_t timeout_ms, bool has_next);

/* Replies to held polls and dequeues, in time slices. */
void api_drain(struct api *api);

/* Replies to calls held since api_drain. */
void api_drain_held(struct api *api);

/* Returns true once no call is held, and the store has everything that a drain writes. */
bool api_has_drained(const struct api *api);

/* Stores what is otherwise stored from time to time: activity, and last uses of keys. Call it
 * until it returns false: the store has it. Later activity and uses are not stored. */
bool api_stores_last(struct api *api);

/* Ends held calls in time slices, because another gateway may lead by now (call.h,
 * api_doubt). A call that bears doubt stays held. Sockets and streams stay, but send
 * nothing. */
void api_begin_doubt(struct api *api);

/* Ends the doubt: memory is current, so sockets and streams continue, and calls that wait
 * enter. */
void api_end_doubt(struct api *api);

/* Closes sockets with CLOSE_MOVED and ends held calls, because another gateway leads. */
void api_move(struct api *api);

/* Serves connected clients although the gateway is not ready, until api_set_ready. */
void api_serve_on(struct api *api);

/* Replies to everything held (polls, dequeues) now, because the server is about to
 * close. */
void api_stop(struct api *api);
