/* build_texts.h - the files of an archive that say how its version is built: build.json,
 * Containerfile and package.json. */
#pragma once

#include "supervisor/versions/containerfile.h"
#include "supervisor/versions/manifest.h"
#include "supervisor/versions/unpack_answer.h"

/* A zeroed one is empty. */
struct build_texts {
    struct buf manifest_text; /* build.json */
    struct buf package_text;  /* package.json; empty: the archive has none */
    struct manifest manifest;
    struct containerfile containerfile;
    bool has_dependencies;
};

/* files: by enum unpack_file, as in struct unpack_answer; they are copied. ERR_INVALID: the version
 * cannot be built, and why. The texts have to be finished in any case. */
enum err build_texts_read(struct build_texts *texts, const struct slice *files,
                          struct failure *why);
void build_texts_finish(struct build_texts *texts);

/* Returns true if bun executes the version and installs its packages; otherwise node and npm do. */
bool build_texts_name_bun(const struct build_texts *texts);
