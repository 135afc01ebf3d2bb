/* calls.h - an input as a call of the API.
 *
 *   byte 0   which of the calls
 *   byte 1   how the body is cut in a second round; 0: there is none
 *   the rest is the body; in a target, where {*} stands; what is signed
 *
 * Every call gets an answer that is no 500, and the same status whole and cut; what says
 * that it is JSON is. Each round has a gateway of its own, and so has each input; where
 * time is judged it is one with a population. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tests/support/world/api_world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz_call {
    enum api_key key;
    const char *method;
    /* Headers are filled before the target. Names in braces are of what is made first:
     * {run}, {executing} and its {snapshot}, {deployed} and its {snapshot}, {batch},
     * {token}, {callback}, {schedule}, {bulk}, {upload}, {download}, {telemetry}; {ref} is
     * the project, {env} the environment's id. {public token}, {signed download},
     * {signed upload} and {signed callback} take the first lines of the input: signing.h. */
    const char *target;
    const char *headers; /* complete lines, as the target; NULL: none */
    const char *then;    /* asked for next, with the same key; {id}: of the answer */
};

/* A fuzzer of calls is this table, which ends with zeros; its function is in calls.c. */
extern const struct fuzz_call fuzz_calls[];
