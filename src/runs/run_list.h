/* run_list.h - pages of runs: of the key's environment, and of a user's project. */
#pragma once

#include "call/route.h"

route_fn run_list, run_list_project;
