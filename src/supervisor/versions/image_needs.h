/* image_needs.h - checks what a version expects of its container image.
 *
 * There are no images here. System packages may be installed on the machine, and the
 * operator names them. Base images and image steps are ignored only if the operator allows
 * that. */
#pragma once

#include "supervisor/versions/manifest.h"

struct image_settings {
    const char *packages; /* names of installed packages, separated by commas or spaces */
    bool ignore_image;    /* build without base images and image steps */
};

/* Returns ERR_RULE with what to do. */
enum err image_needs_check(const struct manifest *manifest,
                           const struct image_settings *settings, struct failure *why);

/* Appends a log line for each ignored part. */
void image_needs_warn(const struct manifest *manifest, struct buf *out);
