/* hidden.h - hides the columns in a public token's skipColumns, wherever its runs are
 * shown. */
#pragma once

#include "accounts/auth/auth.h"
#include "runcast/run.h"

/* Returns the fields hidden from this identity, as bits of enum field. A column is known by
 * its own name and by that of the runs.v1 field that it shows. */
uint32_t hidden_fields(const struct identity *identity);

/* Returns true if payload, output or error is hidden. Telemetry is then hidden, too,
 * because it repeats them. */
bool hidden_contents(uint32_t hidden);

/* Empties those fields of a run about to be shown; run is the caller's copy. The time of
 * the last change stays, and is shown as the time at which an ended run finished. */
void hidden_clear(uint32_t hidden, struct run *run);
