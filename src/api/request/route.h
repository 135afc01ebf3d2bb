/* route.h - one row per endpoint: its path, who may call it, its handler, and its purpose.
 *
 *   static const struct route routes[] = {
 *       { .method = HTTP_GET_, .path = "/api/v1/queues/{queue}",
 *         .auth = AUTH_KEY, .handle = retrieve,
 *         .id = "retrieve_queue_v1", .summary = "Retrieve a queue",
 *         .query = "type?: QueueParamType", .reply = "QueueItem" },
 *       { 0 },
 *   };
 *   const struct area queues_area = { .tag = "queues", .routes = routes };
 *
 * api/router/areas.def names each area. The rows are the source of route look-ups, the
 * checks before a handler, /openapi.json, and the warning about unknown members. Types have
 * a short notation (type.h). */
#pragma once

#include "api/request/call.h"

/* Which credentials a route accepts, and what else is special about it. */
enum route_auth {
    AUTH_NONE = 0,
    AUTH_KEY = 1 << 0,
    AUTH_PUBLIC = 1 << 1,   /* the handler checks scopes */
    AUTH_PERSONAL = 1 << 2, /* the handler finds project and environment */
    AUTH_SIGNED = 1 << 3,   /* no credential: the URL is signed, see signed_form */
    AUTH_WORKER = 1 << 4,   /* the handler finds the environment of the run */
    BODY_SLOW = 1 << 8,     /* the body's pieces may be minutes apart */
    RATE_FREE = 1 << 9,     /* no rate limit: it belongs to a call that has one */
    NEVER_STOPS = 1 << 10,  /* the official CLI retries after any refusal: slow it down */
    /* Never refused for a header or query: a worker sends this call once, and its run would
     * hang. */
    ENDS_ATTEMPT = 1 << 13,
    AUTH_BUILD = 1 << 11, /* the key of a build; the handler finds its deployment */
    /* A public token signed for a user, if its scopes allow the route: they must have read
     * (GET) or write for the area's tag, with the id that is the path's first parameter. */

    AUTH_FOR_USER = 1 << 12,
};

/* The meaning of the parameters of a signed URL (api/router/signed.c). */
enum signed_form {
    SIGNED_NOTHING,
    SIGNED_PACKET,
    SIGNED_TELEMETRY,
    SIGNED_CALLBACK,
    SIGNED_ARTIFACT
};

typedef enum err route_fn(struct api_call *call);

/* Where a body may have idempotency keys of its client (api/triggers/own_keys.h). */
enum own_key {
    OWN_KEY_NONE,
    OWN_KEY_IN_BODY,    /* a member of the body */
    OWN_KEY_IN_OPTIONS, /* a member of its options */
    OWN_KEY_IN_ITEMS,   /* a member of the options of each of its items */
};

struct route {
    enum http_method method;
    const char *path; /* "{name}" is one segment, "{name*}" at the end all that follow */
    unsigned auth;    /* of enum route_auth */
    enum signed_form signed_form; /* with AUTH_SIGNED */
    /* For AUTH_NONE: the handler reads a credential or changes something, and so refuses
     * while the gateway does not lead (api_check_lead). */
    bool needs_lead;
    /* A gateway that follows serves it (api_follow). All other routes are the leader's,
     * except those with AUTH_NONE that do not need the lead. Permitted only for a handler that
     * decides nothing and reads accounts, and besides nothing but the store, or the runs in
     * memory once they were confirmed (certainty_confirm). */
    bool follows;
    /* A repetition with the same request key takes effect once (api_request_claim). */
    bool claims;
    enum own_key own_key; /* the same with an idempotency key there */
    /* The same as claims, but only for clients that send a key: the run has that of its last step. */
    bool has_steps;
    /* Its response may be a stream, long, or late: a follower forwards it on a connection of
     * its own (net/mux.h). */
    bool is_alone;
    /* Only pages of this gateway call it (own_host_check_page): no other origin reads it. */
    bool is_for_own_pages;
    /* Statuses that clients get while they poll for something to appear; 0: none. The log
     * does not treat them as faults. */
    unsigned awaited[2];
    size_t body_limit; /* bytes */
    route_fn *handle;  /* called when the body is complete */
    /* For bodies taken piece by piece; handle is called after the last. */
    enum err (*on_body)(struct api_call *call, struct slice piece);

    /* For /openapi.json; content types are application/json unless named. */
    const char *id;      /* "retrieve_queue_v1" */
    const char *summary; /* a few words */
    const char *query;   /* "page?: integer, filter[tag]?: string"; NULL: none */
    const char *body;    /* a type; NULL: none */
    const char *takes;   /* content type of the body */
    unsigned status;     /* of success; 0: 200 */
    const char *reply;   /* a type; NULL: no body */
    const char *gives;   /* content type of the reply */
    bool is_head;        /* only the HEAD of the route's GET is an operation */
    const char *also;    /* statuses besides those of this kind of route: "409 422" */
};

struct schema {
    const char *name;
    const char *type;
};

/* The routes of one file, and the types that they name. */
struct area {
    const char *tag;              /* of its operations, see openapi.c */
    bool is_for_users;            /* SDKs call it: unknown members of bodies are reported */
    const struct route *routes;   /* ends with path NULL */
    const struct schema *schemas; /* ends with name NULL; NULL: none */
};
