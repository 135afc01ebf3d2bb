/* runner_figures.h - what a supervise role counts of its runners, as metrics in the text of Prometheus.
 *
 * The role is a process of its own, which may live on another machine and longer than a gateway:
 * so it answers for itself, at a listener for those who run it. */
#pragma once

#include <stdint.h>

#include "net/http/http.h"
#include "supervisor/runners/runner_end.h"

struct runner_figures {
    int64_t runners; /* processes that are there */
    int64_t cold_starts, warm_starts;
    int64_t exits[RUNNER_CAUSES];
};

/* Whether the listener answers such a request; if not it was answered with why. */
bool runner_figures_are_asked_for(struct exchange *x);

void runner_figures_answer(const struct runner_figures *figures, struct exchange *x);
