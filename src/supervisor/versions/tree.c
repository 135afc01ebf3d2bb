/* tree.c - walks folders by descriptors, from one to what is in it.
 *
 * How deep folders are nested was decided by whoever wrote them. So a walk goes TREE_DEPTH_MAX
 * down and no further: what is to be sealed is refused there, and what is to be removed is moved up,
 * to be met there in the next round. */
#include "supervisor/versions/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

enum { TREE_DEPTH_MAX = 100, MOVED_NAME = 32, ROUNDS_MAX = 10000 };

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int open_folder(int above, const char *name)
{
    return openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* ---- sealing ---- */

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
                   "cannot finish '%.*s': %s", SLICE_ARG(text_clip(slice_of(name))),
                   strerror(errno));
}

/* Every entry passes here, before it is touched. */
static enum err count_entry(struct sealing *sealing, const struct stat *found)
{
    uint64_t size = S_ISREG(found->st_mode) ? (uint64_t)found->st_size : 0;
    const struct tree_limits *limits = sealing->limits;
    if (!work_goes_on(sealing->work))
        return explain(sealing->why, ERR_CANCELED, "canceled");
    if (++sealing->entries > limits->entries_max)
        return explain(
            sealing->why, ERR_TOO_LARGE,
            "the version has more than %llu files and folders after its build; make "
            "it smaller, or raise deploy-files (the limit is ten times that)",
            (unsigned long long)limits->entries_max);
    if (size > limits->bytes_max - sealing->bytes)
        return explain(sealing->why, ERR_TOO_LARGE,
                       "the version is larger than %llu bytes after its build; make it "
                       "smaller, or raise deploy-unpacked (the limit is ten times that)",
                       (unsigned long long)limits->bytes_max);
    sealing->bytes += size;
    return OK;
}

/* The owner first: from then on nobody else changes the mode. */
static bool own(int opened, const struct sealing *sealing, mode_t mode)
{
    return fchown(opened, sealing->uid, sealing->gid) == 0 && fchmod(opened, mode) == 0;
}

/* Where the kernel lets everybody link to everything (fs.protected_hardlinks), a build can have
 * a file of somebody else's, which would become readable to all. */
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
        return explain(sealing->why, ERR_INVALID, "'%.*s' is a link to a file outside",
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
                       "the folders of this version are nested deeper than %d",
                       TREE_DEPTH_MAX);
    int inner = open_folder(folder, name);
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

/* Takes over the descriptor. The folder itself comes first: then nobody adds to it. */
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
    int again = open_folder(folder, ".");
    if (again < 0)
        return not_sealed(&sealing, ".");
    enum err refused = seal_folder(&sealing, again, 0);
    if (!refused && syncfs(folder))
        refused = not_sealed(&sealing, "the version");
    *bytes = sealing.bytes;
    return refused;
}

/* ---- removal ---- */

struct removing {
    const struct work *work;
    int top;
    unsigned moved; /* to the top, in this round */
};

static void remove_entries(struct removing *removing, int folder, unsigned depth);

static void remove_folder(struct removing *removing, int folder, const char *name,
                          unsigned depth)
{
    char moved[MOVED_NAME + 1] = "";
    if (depth == TREE_DEPTH_MAX) {
        text_random(moved, MOVED_NAME, "abcdefghijklmnopqrstuvwxyz");
        if (renameat(folder, name, removing->top, moved) == 0)
            removing->moved++;
        return;
    }
    int inner = open_folder(folder, name);
    if (inner < 0)
        return;
    fchmod(inner, 0700); /* its owner may have taken the right to write from itself */
    remove_entries(removing, inner, depth + 1);
    unlinkat(folder, name, AT_REMOVEDIR);
}

/* Takes over the descriptor. */
static void remove_entries(struct removing *removing, int folder, unsigned depth)
{
    DIR *all = fdopendir(folder);
    if (!all) {
        close(folder);
        return;
    }
    for (struct dirent *entry; work_goes_on(removing->work) && (entry = readdir(all));)
        if (!is_dots(entry->d_name) && unlinkat(dirfd(all), entry->d_name, 0))
            remove_folder(removing, dirfd(all), entry->d_name, depth);
    closedir(all);
}

bool tree_remove(int above, const char *name, const struct work *work)
{
    struct removing removing = { .work = work };
    if (unlinkat(above, name, 0) == 0)
        return true;
    removing.top = open_folder(above, name);
    if (removing.top < 0)
        return true;
    fchmod(removing.top, 0700);
    for (unsigned i = 0;
         work_goes_on(work) && (i == 0 || (removing.moved && i < ROUNDS_MAX)); i++) {
        int again = open_folder(removing.top, ".");
        removing.moved = 0;
        if (again >= 0)
            remove_entries(&removing, again, 1);
    }
    close(removing.top);
    return unlinkat(above, name, AT_REMOVEDIR) == 0 || work_goes_on(work);
}
