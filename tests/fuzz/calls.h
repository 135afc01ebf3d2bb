/* calls.h - an input as a call of the API.
 *
 *   byte 0   which of the calls
 *   byte 1   how the body is cut in a second round; 0: there is none
 *   the rest is the body; in a target, where {*} stands
 *
 * Every call gets an answer that is no 500, and the same status whole and cut; what says
 * that it is JSON is. Each round has a gateway of its own, and so has each input. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tests/support/api_world.h"

struct fuzz_call {
    enum api_key key;
    const char *method;
    /* Names in braces are of what is made first: {run}, {executing} and its {snapshot},
     * {batch}, {token}, {callback}, {schedule}, {bulk}, {upload}, {download}, {telemetry}; {ref} is the
     * project. */
    const char *target;
    const char *headers; /* complete lines, as the target; NULL: none */
    const char *then;    /* asked for next, with the same key; {id}: of the answer */
};

void fuzz_calls(const struct fuzz_call *calls, size_t count, const uint8_t *data,
                size_t size);
