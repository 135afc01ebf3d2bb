/* worker_routes.c - the routes that `trigger dev` and other workers call, and what their handlers
 * share (worker-protocol §1).
 *
 * Bodies are read by route, never by content type: the official client sends JSON as
 * text/plain. */
#include "workers/worker_routes.h"

#include "call/body_fields.h"
#include "call/routes.h"
#include "engine/sessions.h"

enum {
    NO_BODY = 4096,
    SMALL_BODY = 64 * 1024,
    DEBUG_BODY = 1024 * 1024,
    REGISTRATION_BODY = 8 * 1024 * 1024,
    COMPLETION_BODY = 16 * 1024 * 1024,
};

void worker_hear(const struct api_call *call)
{
    const struct tracked *run = environment_find(call->env, call->params[0]);
    if (run)
        sessions_hear(call->env, &run->run);
}

/* Read, and thrown away. */
static enum err discard(struct api_call *call)
{
    api_reply_json(call, 200, SLICE("{}"));
    return OK;
}

/* What the CLI shows at its start: we have nothing to announce. */
static enum err notification(struct api_call *call)
{
    api_reply_json(call, 200, SLICE("{\"notification\":null}"));
    return OK;
}

#define PROJECT "/api/v1/projects/:"
#define DEV "/engine/v1/dev"
#define SNAPSHOT DEV "/runs/:/snapshots/:"

const struct route workers_routes[] = {
    { HTTP_GET_, "/api/v2/whoami", AUTH_PERSONAL, NO_BODY, worker_whoami, NULL },
    { HTTP_GET_, "/api/v1/platform-notifications", AUTH_PERSONAL, NO_BODY, notification,
      NULL },
    { HTTP_GET_, PROJECT "/dev", AUTH_PERSONAL, NO_BODY, worker_environment, NULL },
    { HTTP_GET_, PROJECT "/staging", AUTH_PERSONAL, NO_BODY, worker_environment, NULL },
    { HTTP_GET_, PROJECT "/prod", AUTH_PERSONAL, NO_BODY, worker_environment, NULL },
    { HTTP_GET_, PROJECT "/preview", AUTH_PERSONAL, NO_BODY, worker_environment, NULL },
    { HTTP_GET_, PROJECT "/envvars", AUTH_KEY, NO_BODY, worker_variables, NULL },
    { HTTP_POST_, PROJECT "/background-workers", AUTH_KEY, REGISTRATION_BODY,
      worker_register, worker_register_piece },

    { HTTP_GET_, DEV "/config", AUTH_KEY, NO_BODY, worker_config, NULL },
    { HTTP_GET_, DEV "/presence", AUTH_KEY, NO_BODY, worker_presence, NULL },
    { HTTP_POST_, DEV "/dequeue", AUTH_KEY | NEVER_STOPS, SMALL_BODY, worker_dequeue,
      NULL },
    { HTTP_POST_, DEV "/disconnect", AUTH_KEY, SMALL_BODY, worker_disconnect, NULL },
    { HTTP_POST_, SNAPSHOT "/attempts/start", AUTH_KEY, SMALL_BODY, worker_start, NULL },
    { HTTP_POST_, SNAPSHOT "/attempts/complete", AUTH_KEY, COMPLETION_BODY, worker_complete,
      intake_take_long },
    { HTTP_POST_, SNAPSHOT "/heartbeat", AUTH_KEY, SMALL_BODY, worker_heartbeat, NULL },
    { HTTP_GET_, DEV "/runs/:/snapshots/latest", AUTH_KEY, NO_BODY, worker_latest, NULL },
    { HTTP_POST_, DEV "/runs/:/logs/debug", AUTH_KEY, DEBUG_BODY, discard, intake_drop },
    { 0 },
};
