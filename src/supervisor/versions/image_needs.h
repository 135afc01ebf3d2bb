/* image_needs.h - what a version expects of its image, and whether this machine has it.
 *
 * There is no image here. System packages may be on the machine, which its operator says; steps
 * and base images are left out only if the operator says that, too. */
#pragma once

#include "supervisor/versions/manifest.h"

struct image_settings {
    const char *packages; /* names that are installed, with commas or spaces between */
    bool ignore_image;    /* build without base images and their steps */
};

/* ERR_RULE with what to do. */
enum err image_needs_check(const struct manifest *manifest,
                           const struct image_settings *settings, struct failure *why);

/* Appends what was left out, as a line of the log; nothing when nothing was. */
void image_needs_warn(const struct manifest *manifest, struct buf *out);
