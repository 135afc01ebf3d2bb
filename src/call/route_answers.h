/* route_answers.h - how often each route was answered with which class of status.
 *
 *   areas:   0: admin        1: tasks         2 …
 *   counts:  [/healthz, …]   [trigger, …]     one for each route, in the order of the tables
 *
 * An exchange gets the count of its route with the route (exchange::answers), and http counts.
 * What was answered without one is what is left of all answers. */
#pragma once

#include "call/route.h"

struct route_answers;

struct route_answers *route_answers_create(const struct area *const *areas, size_t count);
/* NULL is fine. */
void route_answers_destroy(struct route_answers *all);

/* The count of a route, which is one of the area in this place. */
struct http_answers *route_answers_of(const struct route_answers *all, size_t area,
                                      const struct route *route);

/* Prometheus text: a sample for each route and class that was answered; route "none" has what
 * had no route. */
void route_answers_print(const struct route_answers *all, struct buf *out);
