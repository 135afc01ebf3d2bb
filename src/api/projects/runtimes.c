/* runtimes.c - the route that lists the runtimes of the current prod deployments.
 *
 * There is one per project. The CLI uses it to report old versions of Node. */
#include <ctype.h>

#include "api/deployments/deployment_commands.h"
#include "api/projects/projects.h"
#include "api/request/call.h"
#include "core/fleet/fleet.h"

/* Returns the current deployment of an environment; NULL if there is none, or if the
 * current version was registered without one. */
static const struct deployment *current_of(const struct api_call *call,
                                           const struct account *account)
{
    const struct environment *env =
        engine_environment(api_engine(call->api), account->number);
    const struct worker *worker = env ? workers_current(env->fleet->workers) : NULL;
    return worker ? deployments_find(api_deployments(call->api), account->number,
                                     slice_of(worker->deployment))
                  : NULL;
}

static json_t *text_or_null(const struct bytes *text)
{
    return text ? json_stringn_nocheck(text->data, text->len) : json_null();
}

/* Returns 22 for "22.11.0" of Node; null without a version or for another runtime. */
static json_t *node_major(const struct deployment_row *row)
{
    json_int_t major = 0;
    if (!row->runtime_version || !slice_starts(bytes_slice(row->runtime), "node"))
        return json_null();
    for (const char *c = row->runtime_version->data; isdigit((unsigned char)*c); c++)
        if ((major = 10 * major + (*c - '0')) > 1000)
            return json_null();
    return major ? json_integer(major) : json_null();
}

static json_t *time_or_null(int64_t unix_ms)
{
    char text[TIME_TEXT_LEN + 1];
    if (!unix_ms)
        return json_null();
    text_from_time(unix_ms, text);
    return json_string(text);
}

static json_t *show_deployment(const struct deployment *deployment)
{
    if (!deployment)
        return json_null();
    const struct deployment_row *row = &deployment->row;
    return json_pack("{s:o, s:o, s:o, s:o, s:s}", "runtime", text_or_null(row->runtime),
                     "runtimeVersion", text_or_null(row->runtime_version), "nodeMajor",
                     node_major(row), "deployedAt", time_or_null(row->deployed_at),
                     "shortCode", row->short_code);
}

static json_t *show(const struct api_call *call, const struct account *prod)
{
    const struct project *project = prod->project;
    const struct organization *organization = project->organization;
    return json_pack("{s:{s:s, s:s}, s:{s:s, s:s, s:s}, s:{s:s}, s:o}", "organization",
                     "title", organization->name, "slug", organization->slug, "project",
                     "name", project->name, "slug", project->slug, "externalRef",
                     project->ref, "environment", "slug", environment_slug(prod->type),
                     "deployment", show_deployment(current_of(call, prod)));
}

enum err project_runtimes(struct api_call *call)
{
    struct accounts *accounts = api_accounts(call->api);
    const struct list *all = accounts_projects(accounts);
    json_t *array = json_array();
    list_each (link, all) {
        const struct project *project = container_of(link, struct project, link);
        const struct account *prod =
            accounts_environment(accounts, project, ENVIRONMENT_PROD);
        if (prod && user_sees(call->identity->user, project))
            json_array_append_new(array, show(call, prod));
    }
    api_reply_value(call, 200, array);
    return OK;
}
