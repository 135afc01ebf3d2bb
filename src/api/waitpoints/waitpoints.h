/* waitpoints.h - waitpoint handlers that have their own file. */
#pragma once

#include "api/request/route.h"

/* waitpoint_list.c */
route_fn waitpoint_list;

/* input_waits.c */
route_fn input_wait_create;
