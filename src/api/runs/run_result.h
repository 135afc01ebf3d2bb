/* run_result.h - answers with what a run ended with. */
#pragma once

#include "api/request/route.h"

route_fn run_result;
