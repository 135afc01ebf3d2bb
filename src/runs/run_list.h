/* run_list.h - pages of runs: of the key's environment, of a user's project, and those that a
 * run has triggered. */
#pragma once

#include "call/route.h"

route_fn run_list, run_list_project, run_list_children;
