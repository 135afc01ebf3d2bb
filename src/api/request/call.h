/* call.h - one API call: who asks, for which environment, what it may reach, how it is answered.
 *
 *   head: path, method ─► route ─► credential ─► environment ─► body ─► handler
 *                                                                  └► api_reply_…, later
 *
 * Credentials are checked before routing: an unknown key gets 401 on every path under
 * /api. A handler gets a struct api_call and either replies, now or later, or returns an
 * error that dispatch.c turns into a reply. What it names is found in the call's environment:
 * anybody else's run is 404. */
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

enum { API_PARAMS_MAX = 4, API_QUERY_MAX = 64 };

struct query_pair {
    struct slice name, value;
};

struct api_call {
    struct api *api;
    struct exchange *x;
    const struct route *route;   /* NULL: there is none at this path */
    const struct routed *routed; /* what was derived from the route's row */
    const struct area *area;     /* of the route */
    struct identity *identity;   /* NULL for AUTH_NONE and AUTH_SIGNED */
    struct account *account;     /* of a key, public token or signed URL; else NULL */
    struct environment *env;     /* the same environment's runs; NULL like account */
    enum vocabulary vocabulary;  /* by x-trigger-api-version */
    struct slice params[API_PARAMS_MAX]; /* decoded, of the path */
    size_t param_count;
    struct query_pair *query; /* decoded */
    size_t query_count;
    struct buf headers;     /* lines to be sent with the reply */
    struct buf text;        /* what params and query point into */
    struct ignored ignored; /* what of the request nobody reads */
    struct failure why;     /* set by explain when the handler returns an error */
    struct bytes
        *why_full;     /* the same text when it may be longer than why has room for; NULL:
                               why has all of it */
    struct room *room; /* of rooms_hold */
    size_t room_taken; /* bytes */
    struct bytes **shared; /* of rooms_hold_run, which take room once (base/share.h) */
    size_t shared_count;
    uint8_t bom;  /* bytes of a byte order mark that the body has begun with so far */
    bool busy;    /* an operation will reply; set it when one is begun */
    bool cached;  /* the handler has said how long the answer may be kept: api_let_cache */
    bool refused; /* by http, which has answered and is in the log */
    /* Why the call ends while its body arrives, explained in `why`; OK: the client has left. */
    enum err ended_by;
    void *state; /* the handler's, for the pieces of a body */
    /* Held until the gateway leads (api/router/early_calls.h); NULL: it is not. */
    struct early_call *early;
    void (*on_drain)(struct api_call *call); /* api_hold */
    bool bears_doubt; /* held, it stays during a doubt, since it sends nothing meanwhile */
    struct list held; // api::held; linked while held
    struct list link; // api::calls, until it is answered early
    void (*on_gone)(struct api_call *call);    /* the peer left; still to be replied */
    void (*on_drained)(struct api_call *call); /* of a stream: http.h */
};

struct certificates;
struct early_call;
struct api_options {
    const char *public_url; /* "" : the request's Host */
    const char *own_url;    /* public-url, or the address of a listener */
    const char *allow_origin;
    const char *data;                        /* the data directory */
    const struct certificates *certificates; /* whose dates metrics tell; NULL: none */
    const char *metrics_token; /* "": there is none, the admin listener shows metrics */
    const char *dashboard_url; /* where they are, when the admin listener alone shows it */
    bool dashboard;            /* browsers are shown it */
    bool dashboard_is_admins;  /* at the admin listener only, which then takes all calls */
    int64_t subscriptions_max;
    int64_t realtime_connections; /* seats of one environment, see connection_limit.h */
    int64_t project_connections;  /* of all environments of a project */
    int64_t batch_memory;
    int64_t schedules_max;      /* of an environment; of a project four times as many */
    int64_t branches_max;       /* of a project; those archived have a limit of their own */
    int64_t user_projects;      /* of an organization: above it its users make none */
    int64_t user_organizations; /* of a user: above it they make none; 0: nobody does */
    int64_t storage_quota;      /* bytes that a project may store; 0: no limit */
    int64_t stream_memory;      /* contents of streams, of one environment */
    int64_t stream_bytes;       /* of one stream */
    int64_t trace_rows;         /* spans and logs of one run */
    int64_t trace_bytes;        /* the same */
    int64_t trace_share;        /* bytes of them in one environment; 0: no limit */
    int64_t project_trace_share; /* the same of a project */
    int64_t dequeue_wait_ms;     /* how long a dequeue is held */
    int64_t drain_timeout_ms;
    int64_t deploy_bundle;  /* bytes of an archive */
    int64_t deploy_hold_ms; /* how long a call that deploys is held */
    int64_t deploy_timeout_ms;
    bool executes; /* a supervise role of the gateway's own builds what is deployed */
    int64_t keep_versions; /* of an environment */
    int64_t rate_limit; /* requests a minute of a key's environment, or a token; 0: none */
    /* Why nothing may be answered at this moment, though everything is in memory; NULL: it may.
     * Asked with the owner, for each call. */
    const char *(*why_not)(void *owner);
    struct account_writer *writer;
    struct request_log *request_log; /* NULL: there is none */
    void *owner;                     /* who created it: api_options(api)->owner */
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
struct request_log;
struct rooms;
struct schedules;
struct sockets;
struct streams;
struct traces;

/* Why the gateway is not ready; NULL: it is. Nothing is held then. */
const char *api_not_ready(const struct api *api);

/* Why memory may be old, because another gateway may lead by now; NULL: it is not. Also counts
 * in a drain, and in the turn in which a process that stood still continues. */
const char *api_doubt(const struct api *api);

/* ERR_DRAINING: the gateway refuses calls meanwhile. In a drain that the next process follows it
 * does so only in doubt: clients that are connected are served to the end. */
enum err api_check_ready(const struct api *api, struct failure *why);

/* ERR_DRAINING: the gateway does not lead, or cannot be certain that it does. A gateway that drains
 * leads until it has handed the lead over. */
enum err api_check_lead(const struct api *api, struct failure *why);

struct sockets *api_sockets(const struct api *api);
/* The calls that api_hold holds: api_call::held. */
struct list *api_held(struct api *api);
/* All calls but those that were answered early: api_call::link. */
struct list *api_calls(struct api *api);
struct long_polls *api_long_polls(const struct api *api);
struct rooms *api_rooms(struct api *api);
struct events *api_events(const struct api *api);
struct run_notifications *api_run_notifications(const struct api *api);
struct traces *api_traces(const struct api *api);
struct envvars *api_envvars(const struct api *api);
struct bytes *api_document(const struct api *api);  /* of openapi.c; borrowed */
struct bytes *api_timezones(const struct api *api); /* of timezones.h; borrowed */
struct bulks *api_bulks(const struct api *api);
struct logins *api_logins(const struct api *api);
struct artifacts *api_artifacts(const struct api *api);
struct deployments *api_deployments(const struct api *api);
struct streams *api_streams(const struct api *api);
struct open_batches *api_open_batches(const struct api *api);
struct engine *api_engine(const struct api *api);
struct schedules *api_schedules(const struct api *api);
struct auth *api_auth(const struct api *api);
struct accounts *api_accounts(const struct api *api);
const struct api_options *api_options(const struct api *api);

/* Says in the log what a worker sends and runcast does not do, once in the life of the
 * process: by bit. */
enum { SKIP_METRICS };
void api_skip(struct api *api, unsigned bit, const char *what);

/* ---- the request ---- */

/* The call enters the environment of its identity: here, or later when its handler has to find
 * the identity first. */
enum err api_enter(struct api_call *call);

/* The call is about the account's environment, which stays in memory until it ends. */
void api_enter_environment(struct api_call *call, struct account *account);

/* A key of preview works through branches only: of header (x-trigger-branch) the identity
 * becomes one of its branch. Others stay as they are. ERR_UNAUTHORIZED. */
enum err api_choose_branch(struct api *api, struct slice header, struct identity **identity,
                           struct failure *why);

/* Decodes the parameters of path and query, for dispatch.c. ERR_INVALID. */
enum err api_read_target(struct api_call *call);

/* The id that a client gives to all tries of one call; absent when there is none. A longer
 * one has been refused when the call's handler begins. */
enum { API_REQUEST_ID_MAX = 255 };
struct slice api_request_id(const struct api_call *call);

/* The key of a CLAIM_REQUEST for this call, which all tries of it share and no other call has:
 * kind names what is done, and to what. Each public token has keys of its own. The caller's;
 * NULL: the call names no request. */
struct bytes *api_request_claim(const struct api_call *call, struct slice kind);

enum {
    API_REQUEST_KEPT_MS = 3600 * 1000
}; /* how long such a claim recognizes a repetition */

/* Absent when there is none; the first if it repeats. */
struct slice api_query(const struct api_call *call, const char *name);

/* Whether the answer may come compressed. */
bool api_accepts_gzip(const struct api_call *call);

/* The body as an envelope by jansson: an object, depth <= 64, no member twice, and all its
 * objects together have at most 1000 members, since all of it is read in one turn.
 * ERR_INVALID with a sentence, which becomes the message of the SDK's exception. For small
 * bodies without user values only; the caller's to json_decref. A text may have a zero byte. */
enum err api_read_json(struct api_call *call, json_t **body);

/* The body as text that scan.h may read: valid JSON object. */
enum err api_read_object(struct api_call *call, struct slice *body);

/* For route.on_body of a body that nobody reads. */
enum err api_drop_body(struct api_call *call, struct slice piece);

/* ERR_FORBIDDEN unless the identity may; secret keys always may. */
enum err api_check_scope(struct api_call *call, const char *action, const char *type,
                         struct slice id);

/* The run's scopes: runs:{id}, tasks:{task}, tags:{each}, batch:{batch} for reading;
 * runs:{id}, tasks:{task} for writing. */
enum err api_check_run_scope(struct api_call *call, const char *action,
                             const struct run *run);

/* "https://host" that clients reach us by, without a slash at the end. Of what a proxy says the
 * scheme is not believed: behind one that ends TLS public-url names it. */
void api_base_url(const struct api_call *call, struct buf *out);

/* The path of public-url without a slash at its end, "/jobs", under which a proxy shows the gateway;
 * empty if it has none. */
struct slice api_path_prefix(const struct api *api);

/* The rule of api_check_run_scope, for an identity without a call. */
bool api_identity_may_run(const struct identity *identity, const char *action,
                          const struct run *run);

/* Subscriptions: read:runs, read:batch:{id}, read:runs:{id}, or read:tags of any one of the
 * tags, since a filter is an AND. */
bool api_identity_may_follow(const struct identity *identity, const struct filter *filter);

/* Lists: read:runs, read:tasks, or read:tasks:{task} of every task that the filter names. */
bool api_identity_may_list(const struct identity *identity,
                           const struct run_filter *filter);

/* ---- the reply; each ends the call ---- */

void api_add_header(struct api_call *call, const char *name, struct slice value);

/* The answer may be kept, as cache-control says it; without this it is no-store. */
void api_let_cache(struct api_call *call, const char *control);

/* x-runs-seq: epoch.seq (read your writes). 0, nothing had to be written: what the
 * environment has is what the caller asked for. */
void api_add_seq(struct api_call *call, uint64_t seq);

/* x-trigger-jwt-claims, and x-trigger-jwt unless scopes is NULL. A token of no scopes grants
 * nothing, but it is there: the official SDKs sign one themselves when it is missing, which
 * a browser cannot. */
void api_add_token(struct api_call *call, const char *const *scopes, size_t count);

void api_reply_json(struct api_call *call, int status, struct slice body);

void api_reply_text(struct api_call *call, int status, const char *type, struct slice body);

/* Replies with a body that need not be copied; the content type is among the headers. A
 * reference is taken while it is sent. */
void api_reply_shared(struct api_call *call, int status, struct bytes *body);

/* Replies with a long body in parts, at least one; references are taken while they are sent. */
void api_reply_json_parts(struct api_call *call, int status, struct bytes *const *parts,
                          size_t count);

/* Replies with a body whose long values are only referred to. */
void api_reply_json_rope(struct api_call *call, int status, const struct rope *body);

/* Replies with a value; takes over the reference. */
void api_reply_value(struct api_call *call, int status, json_t *value);

/* A reply that goes on, by http_stream_write; api_call_end and http_stream_end end it. */
void api_stream_begin(struct api_call *call, const char *type);

/* 200 with a body of so many bytes, which comes in pieces: http_stream_begin_sized. */
void api_stream_begin_sized(struct api_call *call, size_t len);

/* Replies without a body, as to preflights. */
void api_reply_empty(struct api_call *call, int status);

/* The last reply of a call whose handler has released its state before the call was complete. Either
 * the client has left and the reply is discarded, or the call is refused as ended_by says. */
void api_reply_gone(struct api_call *call);
/* Answers a call that an operation will reply to, which goes on: its reply goes nowhere. */
void api_reply_early(struct api_call *call, enum err error);

/* The call is answered late on purpose (a poll, a stream): on_drain is called when the
 * gateway drains, so that it is answered then. Ends with the reply. */
void api_hold(struct api_call *call, void (*on_drain)(struct api_call *call));

/* The exchange is answered by other means (a socket took it over, a stream has ended). */
void api_call_end(struct api_call *call);

/* A call for the exchange, which dispatch.c sends on its way. */
struct api_call *api_call_create(struct api *api, struct exchange *x);

/* Frees the call; for reply.c. */
void api_call_free(struct api_call *call);

/* call->why if it is set and of that code, else the error's own text. */
void api_reply_error(struct api_call *call, enum err error);

/* An operation did not come about: why has the reason if it was refused (NULL: none), missing
 * is what to say when there is no such thing. */
void api_reply_refused(struct api_call *call, enum err status, const struct failure *why,
                       const char *missing);

/* {"error": text} with a status of its own. Of 404, 409 and 507 SDKs are told not to come
 * again; of another status the caller adds x-should-retry if it matters. */
void api_reply_refusal(struct api_call *call, int status, const char *text);

/* {"error": title, "details": [{code, path, message}]} or "issues": 400. */
void api_reply_details(struct api_call *call, const char *title, const char *list,
                       const char *path, const char *message);
