/* build_texts.c - reads the three files, in the order in which faults of them are reported. */
#include "supervisor/versions/build_texts.h"

#include "supervisor/versions/package.h"

static enum err read_manifest(struct build_texts *texts, struct slice file,
                              struct failure *why)
{
    if (!file.ptr)
        return explain(why, ERR_INVALID, "the archive has no build.json");
    buf_add(&texts->manifest_text, file);
    return manifest_read(buf_slice(&texts->manifest_text), &texts->manifest, why);
}

static enum err read_containerfile(struct build_texts *texts, struct slice file,
                                   struct failure *why)
{
    if (!file.ptr)
        return explain(why, ERR_INVALID, "the archive has no Containerfile");
    return containerfile_read(file, &texts->containerfile, why);
}

static enum err read_package(struct build_texts *texts, struct slice file,
                             struct failure *why)
{
    if (!file.ptr)
        return OK;
    buf_add(&texts->package_text, file);
    return package_has_dependencies(buf_slice(&texts->package_text),
                                    &texts->has_dependencies, why);
}

enum err build_texts_read(struct build_texts *texts, const struct slice *files,
                          struct failure *why)
{
    enum err refused = read_manifest(texts, files[UNPACK_MANIFEST], why);
    if (!refused)
        refused = read_containerfile(texts, files[UNPACK_CONTAINERFILE], why);
    return refused ? refused : read_package(texts, files[UNPACK_PACKAGE], why);
}

void build_texts_finish(struct build_texts *texts)
{
    buf_finish(&texts->manifest_text);
    buf_finish(&texts->package_text);
    manifest_finish(&texts->manifest);
    containerfile_finish(&texts->containerfile);
}

bool build_texts_name_bun(const struct build_texts *texts)
{
    return slice_starts(slice_of(texts->manifest.runtime), "bun");
}
