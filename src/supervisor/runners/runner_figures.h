/* runner_figures.h - metrics about runners, in the Prometheus text format.
 *
 * The role is a separate process. It may be on another machine than the gateway and may
 * outlive it, so it serves its own metrics, on a listener for operators. */
#pragma once

#include <stdint.h>

#include "net/http/http.h"
#include "supervisor/runners/runner_end.h"

struct runner_figures {
    int64_t runners; /* processes that exist now */
    int64_t cold_starts, warm_starts;
    int64_t exits[RUNNER_CAUSES];
};

/* Returns true for a valid request for metrics; otherwise replies with an error. */
bool runner_figures_are_asked_for(struct exchange *x);

void runner_figures_answer(const struct runner_figures *figures, struct exchange *x);
