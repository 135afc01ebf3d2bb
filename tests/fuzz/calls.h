/* calls.h - a fuzz input as a call of the API.
 *
 *   byte 0   which of the calls
 *   byte 1   how the body is cut in a second round; 0: no second round
 *   the rest is the body; in a target, the text for {*}; or the text to be signed
 *
 * The response to a call is never a 500, and its status is the same for a whole and for a
 * cut body; a response that claims to be JSON is JSON. Each round of each input has its own
 * gateway. When time is judged (judge.h), that is a copy of one whose store was filled
 * (api_population.h). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tests/support/world/api_world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz_call {
    enum api_key key;
    const char *method;
    /* Headers are filled in before the target. Names in braces stand for objects that are
     * created first: {run}, {executing} and its {snapshot}, {deployed} and its {snapshot},
     * {batch}, {token}, {callback}, {schedule}, {bulk}, {upload}, {download}, {telemetry}.
     * {ref} is the project, {env} the environment's id. {public token}, {signed download},
     * {signed upload} and {signed callback} take the first lines of the input:
     * signing.h. */
    const char *target;
    const char *headers; /* complete lines, filled in like the target; NULL: none */
    const char *then;    /* a second GET with the same key; {id}: from the response */
};

/* Makes the call of a table that the input names. A row of zeros ends the table. */
int fuzz_call(const struct fuzz_call *calls, const uint8_t *data, size_t size);
