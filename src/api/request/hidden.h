/* hidden.h - hides what a public token's skipColumns name, wherever its runs are shown. */
#pragma once

#include "accounts/auth/auth.h"
#include "runcast/run.h"

/* Returns the fields that this identity does not see, as bits of enum field. A column is
 * known by its own name and by that of the field of runs.v1 that it shows. */
uint32_t hidden_fields(const struct identity *identity);

/* Returns true if payload, output or error is hidden. Then telemetry is, too, since it
 * repeats them. */
bool hidden_contents(uint32_t hidden);

/* Empties those fields of a run that is about to be shown; run is the caller's copy. The
 * time of the last change stays, and is shown as the time at which an ended run has
 * finished. */
void hidden_clear(uint32_t hidden, struct run *run);
