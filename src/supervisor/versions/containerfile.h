/* containerfile.h - reads the commands of build extensions from a bundle's Containerfile.
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
 * The commands are stored nowhere else. The CLI writes the file, so a file of another shape
 * is rejected rather than guessed at. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

enum {
    CONTAINERFILE_BYTES_MAX = 4 << 20,
    CONTAINERFILE_COMMANDS_MAX = 200,
};

struct containerfile {
    char **commands; /* each for sh -c, with continued lines joined */
    size_t count;
};

/* Returns ERR_INVALID with "unknown CLI version …". Call containerfile_finish in any
 * case. */
enum err containerfile_read(struct slice text, struct containerfile *file,
                            struct failure *why);
void containerfile_finish(struct containerfile *file);
