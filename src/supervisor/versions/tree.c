/* tree.c - walks a folder by descriptors, and makes this process own everything in it.
 *
 * The authors of a version decide how deep its folders are nested, so one with more than
 * TREE_DEPTH_MAX levels is rejected. */
#include "supervisor/versions/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "os/files/folder.h"

enum { TREE_DEPTH_MAX = 100 };

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

struct sealing {
    uid_t uid, builder;
    gid_t gid;
    const struct tree_limits *limits;
    const struct work *work;
    uint64_t entries, bytes;
    struct failure *why;
};

static enum err not_sealed(struct sealing *sealing, const char *name)
{
    return explain(sealing->why, errno == ENOSPC ? ERR_STORE_FULL : ERR_INTERNAL,
                   "cannot finish \"%.*s\": %s", SLICE_ARG(text_clip(slice_of(name))),
                   strerror(errno));
}

/* Called for every entry before it is changed. */
static enum err count_entry(struct sealing *sealing, const struct stat *found)
{
    uint64_t size = S_ISREG(found->st_mode) ? (uint64_t)found->st_size : 0;
    const struct tree_limits *limits = sealing->limits;
    if (!work_may_continue(sealing->work))
        return explain(sealing->why, ERR_CANCELED, "canceled");
    if (++sealing->entries > limits->entries_max)
        return explain(
            sealing->why, ERR_TOO_LARGE,
            "too many files and folders in the version after its build (max %llu); make it "
            "smaller, or raise deploy-files (the limit is ten times that)",
            (unsigned long long)limits->entries_max);
    if (size > limits->bytes_max - sealing->bytes)
        return explain(sealing->why, ERR_TOO_LARGE,
                       "the version is too large after its build (max %llu bytes); make it "
                       "smaller, or raise deploy-unpacked (the limit is ten times that)",
                       (unsigned long long)limits->bytes_max);
    sealing->bytes += size;
    return OK;
}

/* Changes the owner first: after that, no other user can change the mode. */
static bool own(int opened, const struct sealing *sealing, mode_t mode)
{
    return fchown(opened, sealing->uid, sealing->gid) == 0 && fchmod(opened, mode) == 0;
}

/* Returns true if the file may belong to another user and be linked from elsewhere.
 *
 * If the kernel lets users link to files of others (see fs.protected_hardlinks), a build
 * can link to such a file, which sealing would make readable to all. */
static bool is_foreign(const struct sealing *sealing, const struct stat *found)
{
    return found->st_nlink > 1 && found->st_uid != sealing->builder;
}

static enum err seal_opened(struct sealing *sealing, int file, const char *name)
{
    struct stat found;
    if (fstat(file, &found) || !S_ISREG(found.st_mode))
        return not_sealed(sealing, name);
    if (is_foreign(sealing, &found))
        return explain(sealing->why, ERR_INVALID,
                       "\"%.*s\" is a link to a file outside of the version",
                       SLICE_ARG(text_clip(slice_of(name))));
    if (!own(file, sealing, found.st_mode & 0111 ? 0755 : 0644))
        return not_sealed(sealing, name);
    return OK;
}

static enum err seal_file(struct sealing *sealing, int folder, const char *name)
{
    int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        return not_sealed(sealing, name);
    enum err refused = seal_opened(sealing, file, name);
    close(file);
    return refused;
}

static enum err seal_folder(struct sealing *sealing, int folder, unsigned depth);

static enum err seal_below(struct sealing *sealing, int folder, const char *name,
                           unsigned depth)
{
    if (depth == TREE_DEPTH_MAX)
        return explain(sealing->why, ERR_INVALID,
                       "the folders of this version are nested too deeply (max %d levels)",
                       TREE_DEPTH_MAX);
    int inner = folder_open(folder, name);
    return inner < 0 ? not_sealed(sealing, name) : seal_folder(sealing, inner, depth + 1);
}

static enum err seal_entry(struct sealing *sealing, int folder, const char *name,
                           unsigned depth)
{
    struct stat found;
    if (fstatat(folder, name, &found, AT_SYMLINK_NOFOLLOW))
        return not_sealed(sealing, name);
    enum err refused = count_entry(sealing, &found);
    if (refused)
        return refused;
    if (S_ISDIR(found.st_mode))
        return seal_below(sealing, folder, name, depth);
    if (S_ISREG(found.st_mode))
        return seal_file(sealing, folder, name);
    int failed = S_ISLNK(found.st_mode) ? fchownat(folder, name, sealing->uid, sealing->gid,
                                                   AT_SYMLINK_NOFOLLOW)
                                        : unlinkat(folder, name, 0);
    return failed ? not_sealed(sealing, name) : OK;
}

/* Takes ownership of the descriptor. Seals the folder before its entries, so that no user
 * adds to it meanwhile. */
static enum err seal_folder(struct sealing *sealing, int folder, unsigned depth)
{
    enum err refused = OK;
    if (!own(folder, sealing, 0755)) {
        refused = not_sealed(sealing, "a folder");
        close(folder);
        return refused;
    }
    DIR *all = fdopendir(folder);
    if (!all) {
        close(folder);
        return explain(sealing->why, ERR_INTERNAL, "cannot read a folder: %s",
                       strerror(errno));
    }
    for (struct dirent *entry; !refused && (entry = readdir(all));)
        if (!is_dots(entry->d_name))
            refused = seal_entry(sealing, dirfd(all), entry->d_name, depth);
    closedir(all);
    return refused;
}

enum err tree_seal(int folder, uid_t builder, const struct tree_limits *limits,
                   const struct work *work, uint64_t *bytes, struct failure *why)
{
    struct sealing sealing = { .uid = geteuid(),
                               .builder = builder,
                               .gid = getegid(),
                               .limits = limits,
                               .work = work,
                               .why = why };
    int again = folder_open(folder, ".");
    if (again < 0)
        return not_sealed(&sealing, ".");
    enum err refused = seal_folder(&sealing, again, 0);
    if (!refused && syncfs(folder))
        refused = not_sealed(&sealing, "the version");
    *bytes = sealing.bytes;
    return refused;
}
