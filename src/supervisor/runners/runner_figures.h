/* runner_figures.h - metrics about runners, in the text format of Prometheus.
 *
 * The role is a process of its own. It may be on another machine than the gateway and
 * outlive it, so it serves its metrics itself, on a listener for operators. */
#pragma once

#include <stdint.h>

#include "net/http/http.h"
#include "supervisor/runners/runner_end.h"

struct runner_figures {
    int64_t runners; /* processes that exist now */
    int64_t cold_starts, warm_starts;
    int64_t exits[RUNNER_CAUSES];
};

/* Returns true for a valid request for metrics; otherwise answers it with an error. */
bool runner_figures_are_asked_for(struct exchange *x);

void runner_figures_answer(const struct runner_figures *figures, struct exchange *x);
