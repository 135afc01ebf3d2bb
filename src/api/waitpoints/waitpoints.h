/* waitpoints.h - handlers of waitpoints that have a file of their own. */
#pragma once

#include "api/request/route.h"

/* waitpoint_list.c */
route_fn waitpoint_list;

/* input_waits.c */
route_fn input_wait_create;
