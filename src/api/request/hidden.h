/* hidden.h - what the skipColumns of a public token leave out, wherever its runs are shown. */
#pragma once

#include "accounts/auth/auth.h"
#include "runcast/run.h"

/* The fields that this identity does not see: bits of enum field. A column is known by its
 * own name and by that of the field of runs.v1 that it shows. */
uint32_t hidden_fields(const struct identity *identity);

/* Payload, output or error is among them: so is telemetry, which repeats what they say. */
bool hidden_contents(uint32_t hidden);

/* Empties those fields of a run that is about to be shown: the copy is the caller's. The
 * time of the last change stays, and is the time at which an ended run is said to have
 * finished. */
void hidden_clear(uint32_t hidden, struct run *run);
