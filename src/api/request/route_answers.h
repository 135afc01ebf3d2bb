/* route_answers.h - how often each route was answered with which class of status, as text.
 *
 * An exchange gets the count of its route with the route (exchange::answers), and http counts.
 * What was answered without one is what is left of all answers. */
#pragma once

#include "api/request/routes.h"

/* Prometheus text: a sample for each route and class that was answered; route "none" has what
 * had no route. */
void route_answers_print(const struct routes *routes, struct buf *out);
