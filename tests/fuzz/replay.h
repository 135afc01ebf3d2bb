/* replay.h - the table of fuzz targets that the program `replay` holds; the build writes it.
 *
 * An entry without a name ends it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef int fuzz_input_fn(const uint8_t *data, size_t size);

struct fuzz_target {
    const char *noun; /* of the file fuzz_NOUN.c */
    fuzz_input_fn *run;
};

extern const struct fuzz_target fuzz_targets[];
