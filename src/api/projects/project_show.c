/* project_show.c - organizations and projects as JSON. */
#include "accounts/accounts.h"
#include "api/projects/projects.h"
#include "base/text.h"

static json_t *time_of(int64_t unix_ms)
{
    char text[TIME_TEXT_LEN + 1];
    text_from_time(unix_ms, text);
    return json_string(text);
}

json_t *organization_show(const struct organization *organization)
{
    return json_pack("{s:s, s:s, s:s, s:o}", "id", organization->id, "title",
                     organization->name, "slug", organization->slug, "createdAt",
                     time_of(organization->created_at));
}

json_t *project_show(const struct project *project)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o}", "id", project->id, "externalRef",
                     project->ref, "name", project->name, "slug", project->slug,
                     "createdAt", time_of(project->created_at), "organization",
                     organization_show(project->organization));
}

json_t *projects_show(struct accounts *accounts, const struct user *user,
                      const struct organization *organization)
{
    const struct list *all = accounts_projects(accounts);
    json_t *array = json_array();
    list_each (link, all) {
        const struct project *project = container_of(link, struct project, link);
        if (user_sees(user, project) &&
            (!organization || project->organization == organization))
            json_array_append_new(array, project_show(project));
    }
    return array;
}
