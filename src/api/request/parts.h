/* parts.h - the parts of the API that calls may use.
 *
 * services.c creates them at startup, and ends them. Other files use the functions of
 * call.h. */
#pragma once

#include "accounts/auth/unknown_credentials.h"
#include "api/request/call.h"
#include "api/request/quotas.h"

struct early_calls;
struct forwarding;
struct rate_limit;
struct routes;

struct api {
    struct engine *engine;
    struct schedules *schedules;
    struct auth *auth;
    struct accounts *accounts;
    struct api_options options;
    struct sockets *sockets;
    struct long_polls *long_polls;
    struct limit_expiry *limit_expiry;
    struct events *events;
    struct run_notifications *run_notifications;
    struct traces *traces;
    struct envvars *envvars;
    struct streams *streams;
    struct open_batches *open_batches;
    struct bulks *bulks;
    struct logins *logins;
    struct artifacts *artifacts;
    struct deployments *deployments;
    const struct area *const *areas; /* of all routes */
    size_t area_count;
    struct routes *routes;   /* of all areas */
    struct bytes *document;  /* /openapi.json */
    struct bytes *timezones; /* offered to clients along with UTC */
    struct list held;        // api_call::held
    struct list calls;       // api_call::link; in the order in which they came
    const char *not_ready;   /* NULL: ready */
    bool serves_on;          /* not ready, but connected clients are served */
    bool may_lead_soon;      /* not ready yet; calls are held until it is */
    bool follows;            /* not ready, but serves routes with route::follows */
    bool hands_over;         /* drains; calls wait for the gateway that leads next */
    struct early_calls *early_calls;
    struct forwarding *forwarding;
    struct unknown_credentials unknown_credentials; /* while it follows */
    struct rate_limit *rate_limit;                  /* NULL: no limit */
    struct quotas quotas;
    unsigned skipped; /* bits of api_skip */
};
