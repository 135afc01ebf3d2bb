/* projects.h - the handlers that projects_routes has from other files. */
#pragma once

#include "call/route.h"

route_fn branch_create, branch_list, branch_archive;
