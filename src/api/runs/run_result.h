/* run_result.h - the route that returns the result of a finished run. */
#pragma once

#include "api/request/route.h"

route_fn run_result;
