/* absent.c - paths of Trigger.dev's published API, of its SDKs and of its CLI, without a
 * route here. README.md lists them; tests/contract/absent.test.mjs calls each. */
#include "api/absent.h"

enum { ANY = -1 };

static const char runtimes[] = "/api/v1/projects/runtimes";

/* A path matches when it begins with the segments; ":" is any one. With a method it matches
 * as a whole: what is behind it may be there. */
static const struct absent {
    int method;
    const char *path;
    const char *what;
} all[] = {
    { ANY, "/api/v1/sessions", "sessions and agents that chat" },
    { ANY, "/realtime/v1/sessions", "sessions and agents that chat" },
    { ANY, "/api/v1/runs/:/session-streams", "sessions and agents that chat" },
    { ANY, "/api/v1/prompts", "prompts" },
    { ANY, "/api/v1/concurrency-limits", "concurrency limits beside those of queues" },
    { ANY, "/api/v1/deployments/:/build-env-vars", "builds by others" },
    { ANY, "/api/v1/deployments/:/start-indexing", "builds by others" },
    { ANY, "/api/v1/projects/:/:/workers", "a list of the tasks of a version" },
    { ANY, "/api/v1/query", "queries and dashboards" },
    { ANY, "/api/v1/reports", "reports" },
    { ANY, "/api/v1/errors", "groups of errors" },
    { ANY, "/api/v1/webhooks", "endpoints for webhooks" },
    { ANY, "/api/v1/workers", "groups of workers" },
    { ANY, "/api/v1/projects/:/monitoring-alerts", "alerts" },
    { ANY, "/api/v1/projects/:/dev-status", "a status of dev" },
    { ANY, runtimes, "a list of runtimes" },
    { ANY, "/api/v1/projects/:/init", "an initialization of projects" },
    { ANY, "/api/v1/authorization-code", "login; TRIGGER_ACCESS_TOKEN takes its place" },
    { ANY, "/api/v1/token", "login; TRIGGER_ACCESS_TOKEN takes its place" },
    { ANY, "/api/v1/auth/user-actor-token", "tokens that are made of personal tokens" },
    { ANY, "/api/v1/profile", "profiles of users" },
    { ANY, "/api/v1/orgs/:/activate-free-plan", "plans" },
    { HTTP_POST_, "/api/v1/orgs", "a way to make organizations but `runcast org create`" },
    { HTTP_POST_, "/api/v1/orgs/:/projects",
      "a way to make projects but `runcast project create`" },
    { HTTP_PATCH_, "/api/v1/projects/:", "a way to rename projects" },
    { ANY, "/api/v1/tasks/:/batch", "the batch call of SDKs before 3.3" },
};

static bool matches(struct slice path, const struct absent *absent)
{
    struct slice rest = slice_of(absent->path), wanted, segment;
    while (slice_split(&rest, '/', &wanted))
        if (!slice_split(&path, '/', &segment) ||
            !(slice_is(wanted, ":") ? segment.len : slice_equal(wanted, segment)))
            return false;
    return absent->method == ANY || !path.ptr;
}

bool absent_hides_route(struct slice path)
{
    return slice_is(path, runtimes);
}

const char *absent_at(enum http_method method, struct slice path)
{
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if ((all[i].method == ANY || all[i].method == (int)method) &&
            matches(path, &all[i]))
            return all[i].what;
    return NULL;
}
