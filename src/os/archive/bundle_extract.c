/* bundle_extract.c - writes the entries of an archive below a folder, and nowhere else.
 *
 * A program may have written to the folder before, and may still do so. Therefore every
 * name is walked from the folder, part by part. Each part is opened relative to the
 * previous one and never through a link. A file is always newly created. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/list.h"
#include "base/text.h"
#include "os/archive/bundle_pass.h"

enum {
    PART_SIZE = BUNDLE_PART_MAX + 1,
    FILE_MODE = 0644,
    PROGRAM_MODE = 0755,
    FOLDER_MODE = 0755
};

struct extraction {
    struct bundle_visitor visitor;
    const struct bundle_target *target;
    int file; /* being written; -1: not wanted */
    mode_t mode;
    char name[BUNDLE_NAME_MAX + 1]; /* of that file */
};

static enum err not_written(const char *name, struct failure *why)
{
    enum err err = errno == ENOSPC || errno == EDQUOT ? ERR_STORE_FULL : ERR_INTERNAL;
    return explain(why, err, "cannot write \"%.*s\": %s",
                   SLICE_ARG(text_clip(slice_of(name))), strerror(errno));
}

static bool own(int made, const struct bundle_target *target)
{
    return !target->uid || fchown(made, target->uid, target->gid) == 0;
}

/* Sets mode and owner of a folder that a pass has created; never of another user's
 * folder. */
static bool own_folder(int folder, const struct bundle_target *target)
{
    struct stat found;
    if (fstat(folder, &found))
        return false;
    if (found.st_uid != geteuid())
        return true;
    return fchmod(folder, FOLDER_MODE) == 0 && own(folder, target);
}

static int open_folder(int above, const char *part)
{
    return openat(above, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Opens or creates a folder, replacing anything else. Returns -1 with errno. */
static int enter(int above, const char *part, const struct bundle_target *target)
{
    int folder = open_folder(above, part);
    if (folder < 0 && (errno == ELOOP || errno == ENOTDIR)) {
        if (unlinkat(above, part, 0))
            return -1;
        errno = ENOENT;
    }
    if (folder < 0 && errno == ENOENT) {
        if (mkdirat(above, part, FOLDER_MODE) && errno != EEXIST)
            return -1;
        folder = open_folder(above, part);
    }
    if (folder >= 0 && !own_folder(folder, target)) {
        int reason = errno;
        close(folder);
        errno = reason;
        return -1;
    }
    return folder;
}

static void cut_part(struct slice *rest, char part[PART_SIZE])
{
    struct slice cut = { 0 };
    slice_split(rest, '/', &cut);
    assert(cut.len < PART_SIZE);
    memcpy(part, cut.ptr, cut.len);
    part[cut.len] = '\0';
}

/* Opens the folder of a name's last part, copying that to part. Returns -1 with errno. */
static int walk(const struct bundle_target *target, struct slice name, char part[PART_SIZE])
{
    int folder = fcntl(target->folder, F_DUPFD_CLOEXEC, 0);
    while (folder >= 0) {
        cut_part(&name, part);
        if (!name.ptr)
            break;
        int next = enter(folder, part, target);
        int reason = errno;
        close(folder);
        errno = reason;
        folder = next;
    }
    return folder;
}

static enum err on_folder(struct bundle_visitor *visitor, struct slice name,
                          struct failure *why)
{
    struct extraction *extraction = container_of(visitor, struct extraction, visitor);
    char part[PART_SIZE];
    if (extraction->target->names)
        return OK;
    snprintf(extraction->name, sizeof(extraction->name), "%.*s", SLICE_ARG(name));
    int above = walk(extraction->target, name, part);
    int made = above >= 0 ? enter(above, part, extraction->target) : -1;
    enum err err = made >= 0 ? OK : not_written(extraction->name, why);
    if (made >= 0)
        close(made);
    if (above >= 0)
        close(above);
    return err;
}

static bool is_wanted(const struct bundle_target *target, struct slice name)
{
    if (!target->names)
        return true;
    for (const char *const *wanted = target->names; *wanted; wanted++)
        if (slice_is(name, *wanted))
            return true;
    return false;
}

static int make_file(const struct bundle_target *target, struct slice name)
{
    char part[PART_SIZE];
    int above = walk(target, name, part), file = -1;
    if (above < 0)
        return -1;
    if (unlinkat(above, part, 0) == 0 || errno == ENOENT)
        file =
            openat(above, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int reason = errno;
    close(above);
    errno = reason;
    return file;
}

static enum err on_file(struct bundle_visitor *visitor, struct slice name, bool executable,
                        struct failure *why)
{
    struct extraction *extraction = container_of(visitor, struct extraction, visitor);
    extraction->file = -1;
    if (!is_wanted(extraction->target, name))
        return OK;
    snprintf(extraction->name, sizeof(extraction->name), "%.*s", SLICE_ARG(name));
    extraction->mode = executable ? PROGRAM_MODE : FILE_MODE;
    extraction->file = make_file(extraction->target, name);
    return extraction->file >= 0 ? OK : not_written(extraction->name, why);
}

static enum err on_data(struct bundle_visitor *visitor, struct slice data,
                        struct failure *why)
{
    struct extraction *extraction = container_of(visitor, struct extraction, visitor);
    while (extraction->file >= 0 && data.len) {
        ssize_t written = write(extraction->file, data.ptr, data.len);
        if (written < 0 && errno != EINTR)
            return not_written(extraction->name, why);
        data = slice_from(data, written > 0 ? (size_t)written : 0);
    }
    return OK;
}

/* Finishes a file. Its mode and owner are set only now, so no user sees it incomplete. */
static enum err on_end(struct bundle_visitor *visitor, struct failure *why)
{
    struct extraction *extraction = container_of(visitor, struct extraction, visitor);
    int file = extraction->file;
    if (file < 0)
        return OK;
    extraction->file = -1;
    bool given = fchmod(file, extraction->mode) == 0 && own(file, extraction->target);
    int reason = errno;
    if (close(file) == 0 && given)
        return OK;
    errno = given ? errno : reason;
    return not_written(extraction->name, why);
}

enum err bundle_extract(struct bundle *bundle, const struct bundle_target *target,
                        struct failure *why)
{
    struct extraction extraction = {
        .visitor = { on_folder, on_file, on_data, on_end, false },
        .target = target,
        .file = -1,
    };
    enum err err = bundle_pass(bundle, &extraction.visitor, NULL, why);
    if (extraction.file >= 0)
        close(extraction.file);
    return err;
}
