/* image_needs.c - compares a version's packages with those that the operator names. */
#include "supervisor/versions/image_needs.h"

#include "base/text.h"

enum { NAMED_MAX = 160 };

static bool is_named(const char *names, struct slice wanted)
{
    static const char between[] = " ,";
    for (size_t len; *names; names += len) {
        names += strspn(names, between);
        len = strcspn(names, between);
        if (len && slice_equal((struct slice){ names, len }, wanted))
            return true;
    }
    return false;
}

static enum err check_packages(const struct manifest *manifest,
                               const struct image_settings *settings, struct failure *why)
{
    struct buf missing = { 0 };
    enum err refused = OK;
    for (size_t i = 0; i < manifest->package_count; i++)
        if (!is_named(settings->packages, bytes_slice(manifest->packages[i])) &&
            missing.len < NAMED_MAX)
            buf_print(&missing, "%s%s", missing.len ? "," : "",
                      manifest->packages[i]->data);
    if (missing.len)
        refused = explain(why, ERR_RULE,
                          "this version needs the system packages %.*s; install them on "
                          "the machine and list them in --deploy-packages",
                          SLICE_ARG(text_clip(buf_slice(&missing))));
    buf_finish(&missing);
    return refused;
}

enum err image_needs_check(const struct manifest *manifest,
                           const struct image_settings *settings, struct failure *why)
{
    enum err refused = check_packages(manifest, settings, why);
    if (refused || settings->ignore_image ||
        (!manifest->has_base && !manifest->has_instructions))
        return refused;
    return explain(why, ERR_RULE,
                   "this version needs %s, but versions execute without images here; "
                   "--deploy-ignore-image builds it without",
                   manifest->has_base ? "a base image of its own" : "steps of an image");
}

void image_needs_warn(const struct manifest *manifest, struct buf *out)
{
    if (manifest->has_base)
        buf_add_text(out, "warning: the base image is ignored\n");
    if (manifest->has_instructions)
        buf_add_text(out, "warning: the image's build steps are ignored\n");
}
