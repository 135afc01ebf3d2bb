/* project.h - finds the project and environment that a path names.
 *
 * A personal token sees the projects of its user's organizations; any other is 404, with
 * the same text as an unknown one. A secret key has one project and one environment; a path
 * that names another is 400. */
#pragma once

#include "api/request/call.h"

enum err project_find(struct api_call *call, struct slice ref,
                      const struct project **project);

/* slug: dev, staging, prod or preview. For preview, a personal token gets the branch that
 * x-trigger-branch names, otherwise preview itself; a key already has its branch. Elsewhere
 * the header has no effect. */
enum err project_find_environment(struct api_call *call, struct slice ref,
                                  struct slice slug, struct account **account);

/* The same in a known project; for personal tokens. */
enum err project_environment(struct api_call *call, const struct project *project,
                             enum environment_type type, struct account **account);
