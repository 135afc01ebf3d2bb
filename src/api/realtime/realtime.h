/* realtime.h - the calls that open a subscription, one file each. */
#pragma once

#include "api/request/route.h"

/* socket.c */
route_fn socket_open;

/* events.c */
route_fn events_open;

/* long_polls.c */
route_fn long_poll_run, long_poll_tags, long_poll_batch;
