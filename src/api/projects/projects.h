/* projects.h - project handlers, and the JSON of organizations and projects. */
#pragma once

#include "api/request/route.h"

struct organization;
struct project;

/* branches.c */
route_fn branch_create, branch_list, branch_archive;

/* project_making.c */
route_fn project_create, project_rename, organization_create;

/* runtimes.c */
route_fn project_runtimes;

/* project_show.c; the caller owns what they return */
json_t *organization_show(const struct organization *organization);
json_t *project_show(const struct project *project);
/* Shows the user's projects in an organization; NULL: in all of them. */
json_t *projects_show(struct accounts *accounts, const struct user *user,
                      const struct organization *organization);
