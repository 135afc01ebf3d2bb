/* run_result.h - answers with what a run ended with. */
#pragma once

#include "call/route.h"

route_fn run_result;
