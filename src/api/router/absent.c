/* absent.c - paths of Trigger.dev's published API, of its SDKs and of its CLI, without a
 * route here. src/api/router/README.md lists them; tests/contract/absent.test.mjs calls
 * each. */
#include "api/router/absent.h"

/* A path matches when it begins with the segments; ":" is any one. */
static const struct absent {
    const char *path;
    const char *what;
} all[] = {
    { "/api/v1/sessions", "sessions and agents that chat" },
    { "/realtime/v1/sessions", "sessions and agents that chat" },
    { "/api/v1/runs/:/session-streams", "sessions and agents that chat" },
    { "/api/v1/prompts", "prompts" },
    { "/api/v1/concurrency-limits", "concurrency limits beside those of queues" },
    { "/api/v1/deployments/:/build-env-vars", "builds by others" },
    { "/api/v1/deployments/:/start-indexing", "builds by others" },
    { "/api/v1/projects/:/:/workers", "a list of the tasks of a version" },
    { "/api/v1/query", "queries and dashboards" },
    { "/api/v1/reports", "reports" },
    { "/api/v1/errors", "groups of errors" },
    { "/api/v1/webhooks", "endpoints for webhooks" },
    { "/api/v1/workers", "groups of workers" },
    { "/api/v1/projects/:/monitoring-alerts", "alerts" },
    { "/api/v1/projects/:/monitoring-alert-capabilities", "alerts" },
    { "/api/v1/projects/:/init", "an initialization of projects" },
    { "/api/v1/auth/user-actor-token", "tokens that are made of personal tokens" },
    { "/api/v1/profile", "profiles of users" },
    { "/api/v1/orgs/:/activate-free-plan", "plans" },
    { "/api/v1/tasks/:/batch", "the batch call of SDKs before 3.3" },
};

static bool matches(struct slice path, const struct absent *absent)
{
    struct slice rest = slice_of(absent->path), wanted, segment;
    while (slice_split(&rest, '/', &wanted))
        if (!slice_split(&path, '/', &segment) ||
            !(slice_is(wanted, ":") ? segment.len : slice_equal(wanted, segment)))
            return false;
    return true;
}

const char *absent_at(struct slice path)
{
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (matches(path, &all[i]))
            return all[i].what;
    return NULL;
}
