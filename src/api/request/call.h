/* call.h - one API call: its sender, its environment, its permissions, and its reply.
 *
 *   head: path, method ─► route ─► credential ─► environment ─► body ─► handler
 *                                                                  └► api_reply_…, later
 *
 * An unknown key gets 401 on every path under /api, whether the path exists or not. A
 * handler gets a struct api_call. It replies, now or later, or returns an error that
 * dispatch.c turns into a reply. Everything that a call names is looked up in its
 * environment: a run in another environment is 404. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "accounts/auth/auth.h"
#include "base/json/ignored.h"
#include "base/rope.h"
#include "core/engine/engine.h"
#include "net/http/http.h"
#include "net/http/server.h"

struct api;
struct api_call;
struct area;
struct route;
struct routed;

/* The header of a request key. A client repeats a call with it; a follower makes one for a call
 * without it. */
#define API_REQUEST_KEY "x-trigger-request-idempotency-key"

/* A header of a response after which SDKs do not repeat the call. */
#define API_DO_NOT_RETRY "x-should-retry: false\r\n"

/* Whether each run that a call creates has an idempotency key (api/triggers/own_keys.h). */
enum own_keys { OWN_KEYS_UNKNOWN, OWN_KEYS_ALL, OWN_KEYS_LACK };

enum { API_PARAMS_MAX = 4, API_QUERY_MAX = 64, MADE_KEY_SIZE = 33 };

struct query_pair {
    struct slice name, value;
};

struct api_call {
    struct api *api;
    struct exchange *x;
    const struct route *route;  /* NULL: none at this path */
    struct routed *routed;      /* derived by routes.h from the route's row */
    const struct area *area;    /* of the route */
    struct identity *identity;  /* NULL for AUTH_NONE and AUTH_SIGNED */
    struct account *account;    /* of a key, public token or signed URL; otherwise NULL */
    struct environment *env;    /* the runs of that environment; NULL like account */
    enum vocabulary vocabulary; /* chosen by x-trigger-api-version */
    struct slice params[API_PARAMS_MAX]; /* decoded, of the path */
    size_t param_count;
    struct query_pair *query; /* decoded */
    size_t query_count;
    struct buf headers;     /* header lines of the reply */
    struct buf text;        /* memory of params and query */
    struct ignored ignored; /* unknown parts of the request */
    struct failure why;     /* set by explain when the handler returns an error */
    struct bytes *why_full; /* the whole text, if it may not fit into why; otherwise NULL */
    struct quota *quota;    /* where quotas_hold counts */
    size_t quota_taken;     /* bytes counted there */
    struct bytes **shared;  /* counted by quotas_hold_run, each once (net/share.h) */
    size_t shared_count;
    uint8_t bom; /* bytes of a byte order mark seen so far at the start of the body */
    bool busy;   /* an operation will reply; set it when beginning one */
    bool cached; /* the handler has called api_let_cache */
    bool is_for_own_pages; /* its response has no CORS header */
    bool refused; /* the reply came from http, or was early, and is already logged */
    /* Why the call ends while its body is arriving, explained in `why`; OK: the client has
     * left. */
    enum err ended_by;
    enum own_keys own_keys;
    void *state; /* the handler's own */
    /* Set while it waits to enter (early_calls.h); NULL: it does not. */
    struct early_call *early;
    /* Set while its leader answers it (router/forwarding.h); NULL: it is answered here. */
    struct forwarded *forwarded;
    struct buf kept; /* the body that arrived while the call was to be forwarded */
    char made_key[MADE_KEY_SIZE]; /* the request key made for that; "": none */
    bool is_admitted;             /* its head was accepted */
    bool is_confirmed;            /* it has waited for that (api_confirm), or does so */
    bool is_unconfirmed;          /* it has waited in vain, and is refused */
    void (*on_drain)(struct api_call *call); /* set by api_hold */
    bool bears_doubt; /* stays held during a doubt (api_doubt), but sends nothing */
    struct list held; // api::held; linked while held
    struct list link; // api::calls, until it is answered early
    void (*on_gone)(struct api_call *call);    /* client left; a reply is still due */
    void (*on_drained)(struct api_call *call); /* of a stream: see http.h */
};

struct certificates;
struct early_call;
struct forwarded;
struct gateways_query;
struct relay_pool;
struct api_options {
    const char *public_url; /* "": the request's Host */
    const char *own_url;    /* public-url, or the address of a listener */
    const char *allow_origin;
    const char *data;                        /* the data directory */
    const struct certificates *certificates; /* metrics show their dates; NULL: none */
    const char *metrics_token; /* "": none; only the admin listener shows metrics */
    const char *dashboard_url; /* of the dashboard, if only the admin listener serves it */
    bool dashboard;            /* it is served to browsers */
    bool dashboard_is_admins;  /* at the admin listener only, which then takes all calls */
    int64_t subscriptions_max;
    int64_t realtime_connections; /* of one environment (connection_limit.h) */
    int64_t project_connections;  /* of all environments of a project */
    int64_t batch_memory;
    int64_t schedules_max; /* of an environment; a project may have four times as many */
    int64_t branches_max;  /* of a project; archived ones have a separate limit */
    int64_t user_projects; /* of an organization; its users cannot create more */
    int64_t user_organizations;  /* of a user, who cannot create more; 0: none */
    int64_t storage_quota;       /* bytes that a project may store; 0: no limit */
    int64_t stream_memory;       /* bytes of streams of one environment */
    int64_t stream_bytes;        /* bytes of one stream */
    int64_t trace_rows;          /* spans and logs of one run */
    int64_t trace_bytes;         /* bytes of spans and logs of one run */
    int64_t trace_share;         /* bytes of them in one environment; 0: no limit */
    int64_t project_trace_share; /* the same of a project */
    int64_t dequeue_wait_ms;     /* how long a dequeue is held */
    int64_t drain_timeout_ms;
    int64_t deploy_bundle;  /* bytes of an archive */
    int64_t deploy_hold_ms; /* how long a call that deploys is held */
    int64_t deploy_timeout_ms;
    bool executes;         /* a supervise role of this gateway builds deployments */
    int64_t keep_versions; /* of an environment */
    int64_t rate_limit;    /* requests a minute of an environment or token; 0: no limit */
    /* Returns why no call may be served right now, although everything is in memory; NULL:
     * it may. Called with the owner, for each call. */
    const char *(*why_not)(void *owner);
    /* Returns the connections to the gateway that leads; NULL: none now. Called with the owner.
     * NULL: this gateway forwards no calls. */
    struct relay_pool *(*leader)(void *owner);
    /* Lists the gateways on the database, with the owner (api/ops/gateways_query.h). NULL: not
     * possible. */
    void (*list_gateways)(void *owner, struct gateways_query *query);
    struct account_writer *writer;
    struct request_log *request_log; /* NULL: none */
    void *owner;                     /* the creator of the api */
};

struct account_writer;
struct artifacts;
struct deployments;
struct envvars;
struct events;
struct run_notifications;
struct bulks;
struct open_batches;
struct logins;
struct long_polls;
struct limit_expiry;
struct request_log;
struct quotas;
struct schedules;
struct sockets;
struct streams;
struct traces;
struct unknown_credentials;

/* Returns why the gateway is not ready; NULL: it is. No call is held while it is not. */
const char *api_not_ready(const struct api *api);

/* Returns why memory may be outdated, because another gateway may lead by now (this is
 * called a doubt); NULL: there is no doubt. Correct also during a drain, and in the turn in
 * which a suspended process continues. */
const char *api_doubt(const struct api *api);

/* Returns ERR_FORBIDDEN unless the caller is a sign-in whose user confirmed their identity
 * within the last ten minutes. Required by routes whose effect cannot be undone. */
enum err api_check_fresh(struct api_call *call);

/* The same for sign-ins only; a personal token needs no confirmation. Required by routes
 * that create a credential, because the new credential could confirm a sign-in. */
enum err api_check_not_stale(struct api_call *call);

/* Returns true while this gateway serves routes with route::follows only, because another
 * one leads. */
bool api_follows(const struct api *api);

/* Returns why the gateway refuses the call; NULL: it serves it. A gateway that follows
 * refuses in doubt, and all routes that are the leader's. In a drain that the next process
 * follows, it refuses only in doubt: connected clients are served to the end. */
const char *api_why_refused(const struct api_call *call);

/* Returns ERR_DRAINING while the gateway refuses the call. */
enum err api_check_ready(struct api_call *call);

/* Returns ERR_DRAINING while the memory of the call's environment is too old to be shown. */
enum err api_check_current(struct api_call *call);

/* Returns ERR_DRAINING if the gateway does not lead, or cannot be certain that it does. A
 * gateway that drains leads until it has handed the lead over. */
enum err api_check_lead(const struct api *api, struct failure *why);

struct sockets *api_sockets(const struct api *api);
/* The calls of api_hold, by api_call::held. */
struct list *api_held(struct api *api);
/* All calls except those with an early reply, by api_call::link. */
struct list *api_calls(struct api *api);
struct long_polls *api_long_polls(const struct api *api);
struct limit_expiry *api_limit_expiry(const struct api *api);
struct quotas *api_quotas(struct api *api);
struct events *api_events(const struct api *api);
struct run_notifications *api_run_notifications(const struct api *api);
struct traces *api_traces(const struct api *api);
struct envvars *api_envvars(const struct api *api);
struct bytes *api_document(const struct api *api);  /* of openapi.c; borrowed */
struct bytes *api_timezones(const struct api *api); /* of timezones.h; borrowed */
struct bulks *api_bulks(const struct api *api);
struct logins *api_logins(const struct api *api);
struct rate_limit *api_rate_limit(const struct api *api); /* NULL: no limit */
struct artifacts *api_artifacts(const struct api *api);
struct deployments *api_deployments(const struct api *api);
struct streams *api_streams(const struct api *api);
struct open_batches *api_open_batches(const struct api *api);
struct engine *api_engine(const struct api *api);
struct schedules *api_schedules(const struct api *api);
struct auth *api_auth(const struct api *api);
struct unknown_credentials *api_unknown_credentials(struct api *api);
struct accounts *api_accounts(const struct api *api);
const struct api_options *api_options(const struct api *api);

/* Logs that a worker sends something that runcast ignores, once per process for each
 * bit. */
enum { SKIP_METRICS };
void api_skip(struct api *api, unsigned bit, const char *what);

/* At a gateway that follows, lets the call wait until memory has what the leader has by now,
 * and returns true: return OK, and the handler is called again. Then it gets 503, or this
 * returns false: memory has that. At a leader it always has. Call it before anything begins;
 * the identity is found again if the handler has found it itself. */
bool api_confirm(struct api_call *call);

/* The same after a credential or its branch was refused: it may be known to the leader.
 * Returns false if the refusal stands. */
bool api_confirm_credential(struct api_call *call);

/* ---- the request ---- */

/* Enters the environment of the call's identity. Called by dispatch.c, or later by a
 * handler that finds the identity itself. */
enum err api_enter(struct api_call *call);

/* Puts the call into the account's environment, which stays in memory until the call
 * ends. */
void api_enter_environment(struct api_call *call, struct account *account);

/* Replaces an identity of preview with one of the branch that header names. A key of
 * preview works only through branches (x-trigger-branch). Other identities stay. Returns
 * ERR_UNAUTHORIZED with the reason. */
enum err api_choose_branch(struct api *api, struct slice header, struct identity **identity,
                           struct failure *why);

/* Decodes the parameters of path and query, for dispatch.c. Returns ERR_INVALID with the
 * reason. */
enum err api_read_target(struct api_call *call);

/* Returns the id that a client gives to all attempts of one call, or absent. A longer id
 * was refused before the handler began. */
enum { API_REQUEST_ID_MAX = 255 };
struct slice api_request_id(const struct api_call *call);

/* Returns the key of a CLAIM_REQUEST for this call, which only its own attempts share.
 * kind: the id of the triggered task; for any other call CLAIM_NO_TASK, the action, and its
 * object. Each public token has its own keys. The caller owns the key; NULL: the call has
 * no request id. */
struct bytes *api_request_claim(const struct api_call *call, struct slice kind);

enum { API_REQUEST_KEPT_MS = 3600 * 1000 }; /* how long such a claim recognizes a retry */

/* Sets the claim of a user's write on accounts. kind: what is created; inside: where. The
 * caller owns its key. Returns false if the call has no request id. */
bool api_claim_for_user(const struct api_call *call, const char *kind, const char *inside,
                        struct claim *claim);

/* Returns the first parameter of that name; absent if there is none. */
struct slice api_query(const struct api_call *call, const char *name);

/* Returns true if the response may be compressed. */
bool api_accepts_gzip(const struct api_call *call);

/* Reads the body with jansson: an object, at most 64 deep, without duplicate members. All
 * its objects together have at most 1000 members, because it is read in one turn. Returns
 * ERR_INVALID with a sentence, which becomes the message of the SDK's exception. Only for
 * small bodies without user values. The caller releases body with json_decref. A text may
 * contain a zero byte. */
enum err api_read_json(struct api_call *call, json_t **body);

/* Returns the body as text that scan.h may read: a valid JSON object. */
enum err api_read_object(struct api_call *call, struct slice *body);

/* Ignores the body; for route.on_body. */
enum err api_drop_body(struct api_call *call, struct slice piece);

/* Returns ERR_FORBIDDEN unless the identity has the scope. Secret keys have every scope. */
enum err api_check_scope(struct api_call *call, const char *action, const char *type,
                         struct slice id);

/* The same for a run, through any of its scopes. To read: runs:{id}, tasks:{task},
 * tags:{each}, batch:{batch}. To write: runs:{id}, tasks:{task}. */
enum err api_check_run_scope(struct api_call *call, const char *action,
                             const struct run *run);

/* Appends the "https://host" at which clients reach us, without a trailing slash. The
 * scheme that a proxy reports is not trusted: behind a proxy that terminates TLS,
 * public-url names it. */
void api_base_url(const struct api_call *call, struct buf *out);

/* Returns the path of public-url without a trailing slash, like "/jobs"; empty if none. A
 * proxy serves the gateway under it. */
struct slice api_path_prefix(const struct api *api);

/* The rule of api_check_run_scope, for an identity without a call. */
bool api_identity_may_run(const struct identity *identity, const char *action,
                          const struct run *run);

/* To subscribe: read:runs, read:batch:{id}, read:runs:{id}, or read:tags for any one of the
 * tags, because a filter is an AND. */
bool api_identity_may_follow(const struct identity *identity, const struct filter *filter);

/* To list: read:runs, read:tasks, or read:tasks:{task} of every task that the filter
 * names. */
bool api_identity_may_list(const struct identity *identity,
                           const struct run_filter *filter);

/* ---- the reply; each ends the call ---- */

void api_add_header(struct api_call *call, const char *name, struct slice value);

/* Sets cache-control for the response; the default is no-store. */
void api_let_cache(struct api_call *call, const char *control);

/* Adds x-runs-seq: epoch.seq (read your writes). seq 0: nothing was written, so the
 * environment's current one is added. */
void api_add_seq(struct api_call *call, uint64_t seq);

/* Adds x-trigger-jwt-claims, and x-trigger-jwt unless scopes is NULL. A token without
 * scopes grants nothing, but is sent, because the official SDKs sign one themselves if it
 * is missing, which a browser cannot do. */
void api_add_token(struct api_call *call, const char *const *scopes, size_t count);

void api_reply_json(struct api_call *call, int status, struct slice body);

void api_reply_text(struct api_call *call, int status, const char *type, struct slice body);

/* Replies with a body that is not copied; the content type is among the headers. Takes a
 * reference while it is sent. */
void api_reply_shared(struct api_call *call, int status, struct bytes *body);

/* Replies with a long body in parts, at least one; takes references while they are sent. */
void api_reply_json_parts(struct api_call *call, int status, struct bytes *const *parts,
                          size_t count);

/* Replies with a body whose long values are references. */
void api_reply_json_rope(struct api_call *call, int status, const struct rope *body);

/* Replies with a value; takes ownership of the reference. */
void api_reply_value(struct api_call *call, int status, json_t *value);

/* Begins a reply that http_stream_write continues; api_call_end and http_stream_end end
 * it. */
void api_stream_begin(struct api_call *call, const char *type);

/* Replies 200 with a body of len bytes that follows in pieces: http_stream_begin_sized. */
void api_stream_begin_sized(struct api_call *call, size_t len);

/* Replies without a body, as to preflights. */
void api_reply_empty(struct api_call *call, int status);

/* The last reply of a call whose handler released its state before the call was complete.
 * Either the client has left and the reply is discarded, or the call is refused with
 * ended_by. */
void api_reply_gone(struct api_call *call);
/* Replies to a call whose operation continues; that operation's reply is discarded. line: another
 * header, with its end of line; "": none. */
void api_reply_early(struct api_call *call, enum err error, const char *line);

/* Marks a call whose reply is late on purpose (a poll, a stream). on_drain is called when
 * the gateway drains, and must reply. The mark ends with the reply. */
void api_hold(struct api_call *call, void (*on_drain)(struct api_call *call));

/* Ends a call whose exchange got its reply by other means (a socket, the end of a
 * stream). */
void api_call_end(struct api_call *call);

/* Creates a call for the exchange; for dispatch.c. */
struct api_call *api_call_create(struct api *api, struct exchange *x);

/* Frees the call; for reply.c. */
void api_call_free(struct api_call *call);

/* Replies with call->why if it is set and has that code, otherwise with the error's own
 * text. */
void api_reply_error(struct api_call *call, enum err error);

/* Replies for a failed operation. why: the reason if it was refused; NULL: none. missing:
 * the text for ERR_NOT_FOUND. */
void api_reply_refused(struct api_call *call, enum err status, const struct failure *why,
                       const char *missing);

/* Replies {"error": text} with any status. For 404, 409 and 507 SDKs are advised not to
 * retry; for another status the caller adds x-should-retry if it matters. */
void api_reply_refusal(struct api_call *call, int status, const char *text);

/* Replies 400: {"error": "title: path: message", "details": [{code, path, message}]}; list:
 * "details" or "issues". SDKs show the error alone. */
void api_reply_details(struct api_call *call, const char *title, const char *list,
                       const char *path, const char *message);
