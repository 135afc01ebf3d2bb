/* containerfile.h - the commands of build extensions, which are nowhere but in the Containerfile.
 *
 *   FROM … AS build
 *   …
 *   COPY --chown=node:node package.json ./
 *   RUN npm i …
 *   COPY --chown=node:node . .
 *   RUN command                   ◄─ these
 *   COPY --chown=node:node . .        (bun has no second one)
 *   RUN mkdir -p node_modules
 *   FROM …
 *
 * It is written by the CLI and by nobody else: what has another shape is refused, never guessed. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

enum {
    CONTAINERFILE_BYTES_MAX = 4 << 20,
    CONTAINERFILE_COMMANDS_MAX = 200,
};

struct containerfile {
    char **commands; /* each for sh -c, continued lines joined */
    size_t count;
};

/* ERR_INVALID: "unknown CLI version …". To be finished in any case. */
enum err containerfile_read(struct slice text, struct containerfile *file,
                            struct failure *why);
void containerfile_finish(struct containerfile *file);
