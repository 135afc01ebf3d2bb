/* projects.h - the handlers that projects_routes has from other files, and how they show what
 * there is. */
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
