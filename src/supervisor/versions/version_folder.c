/* version_folder.c - creates, fills and seals the folder of one version.
 *
 * Each of our files is a new one: whatever the build's programs have put under its name is
 * removed first. */
#include "supervisor/versions/version_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json/members.h"
#include "base/json/scan.h"
#include "base/mem.h"
#include "base/text.h"
#include "os/files/folder.h"
#include "supervisor/versions/manifest.h"

enum { READ_BYTES = 65536, GIVEN_MODE = 0750, ASIDE_LEN = 24 };

static const char unfinished[] = ".new", old[] = ".old.new";

static char *joined(const char *first, const char *between, const char *second)
{
    struct buf text = { 0 };
    buf_print(&text, "%s%s%s", first, between, second);
    char *both = mem_text(buf_slice(&text));
    buf_finish(&text);
    return both;
}

static enum err failed(struct failure *why, const char *what)
{
    enum err err = errno == ENOSPC || errno == EDQUOT ? ERR_STORE_FULL : ERR_STORE;
    return explain(why, err, "cannot write %s: %s", what, strerror(errno));
}

static bool ends_with(const char *name, const char *end)
{
    size_t len = strlen(name), end_len = strlen(end);
    return len > end_len && strcmp(name + len - end_len, end) == 0;
}

/* Removes a file; moves a folder to a name that version_folder_remove_old removes. */
static void set_aside(int versions, int above, const char *name)
{
    char random[ASIDE_LEN + 1] = "";
    if (unlinkat(above, name, 0) == 0)
        return;
    int folder = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0)
        return;
    fchmod(folder, 0700); /* without write permission its rename would fail too */
    close(folder);
    text_random(random, ASIDE_LEN, "abcdefghijklmnopqrstuvwxyz");
    char *moved = joined(random, "", old);
    renameat(above, name, versions, moved);
    free(moved);
}

static enum err open_new(struct version_folder *folder, struct failure *why)
{
    set_aside(folder->versions, folder->versions, folder->new_name);
    if (mkdirat(folder->versions, folder->new_name, 0700))
        return failed(why, folder->new_name);
    folder->folder = openat(folder->versions, folder->new_name,
                            O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    const struct process_user *user = &folder->user;
    if (folder->folder < 0 || fchmod(folder->folder, 0700) ||
        (user->uid && fchown(folder->folder, user->uid, user->gid)))
        return failed(why, folder->new_name);
    return OK;
}

enum err version_folder_make(struct version_folder *folder, const char *versions,
                             const char *id, struct process_user user, struct failure *why)
{
    *folder = (struct version_folder){ .folder = -1, .user = user };
    folder->name = joined(id, "", "");
    folder->new_name = joined(id, "", unfinished);
    folder->path = joined(versions, "/", folder->name);
    folder->new_path = joined(versions, "/", folder->new_name);
    folder->versions = open(versions, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return folder->versions < 0 ? failed(why, versions) : open_new(folder, why);
}

void version_folder_finish(struct version_folder *folder)
{
    if (!folder->name)
        return;
    if (folder->versions >= 0) {
        set_aside(folder->versions, folder->versions, folder->new_name);
        close(folder->versions);
    }
    if (folder->folder >= 0)
        close(folder->folder);
    free(folder->name);
    free(folder->new_name);
    free(folder->path);
    free(folder->new_path);
    *folder = (struct version_folder){ 0 };
}

static bool write_all(int file, struct slice text)
{
    while (text.len) {
        ssize_t written = write(file, text.ptr, text.len);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        text = slice_from(text, (size_t)written);
    }
    return true;
}

/* The file is readable by the build's user, because the index reads its manifest. */
static enum err write_file(struct version_folder *folder, const char *name,
                           struct slice text, struct failure *why)
{
    set_aside(folder->versions, folder->folder, name);
    int file = openat(folder->folder, name,
                      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (file < 0)
        return failed(why, name);
    bool written = fchmod(file, 0644) == 0 && write_all(file, text) && fsync(file) == 0;
    enum err refused = written ? OK : failed(why, name);
    close(file);
    return refused;
}

enum err version_folder_write_manifest(struct version_folder *folder, struct slice manifest,
                                       struct failure *why)
{
    struct buf text = { 0 };
    manifest_move(manifest, folder->new_path, &text);
    enum err refused = write_file(folder, "build.json", buf_slice(&text), why);
    buf_finish(&text);
    return refused;
}

enum err version_folder_write_package(struct version_folder *folder, struct slice text,
                                      struct failure *why)
{
    return write_file(folder, "package.json", text, why);
}

/* Reads a regular file of at most max bytes. */
static enum err read_file(int folder, const char *name, size_t max, struct buf *out)
{
    struct stat found;
    ssize_t got = 0;
    int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        return ERR_NOT_FOUND;
    bool regular = fstat(file, &found) == 0 && S_ISREG(found.st_mode);
    do {
        out->len += (size_t)got;
        got = regular ? read(file, buf_reserve(out, READ_BYTES), READ_BYTES) : -1;
    } while (got > 0 && out->len <= max);
    close(file);
    return got ? ERR_INVALID : OK;
}

enum err version_folder_read_index(struct version_folder *folder, struct buf *index,
                                   struct failure *why)
{
    struct buf text = { 0 };
    enum err refused = read_file(folder->folder, "index.json", INDEX_BYTES_MAX, &text);
    if (refused == ERR_NOT_FOUND)
        explain(why, ERR_INVALID, "indexing the bundle produced no index.json");
    else if (refused || !scan_is_json(buf_slice(&text)) ||
             scan_type(buf_slice(&text)) != SCAN_OBJECT)
        refused = explain(why, ERR_INVALID,
                          "indexing the bundle produced an index.json that is not an "
                          "object or is too large (max %d bytes)",
                          INDEX_BYTES_MAX);
    else
        index_move(buf_slice(&text), folder->new_path, MANIFEST_ROOT, index);
    buf_finish(&text);
    return refused;
}

static void write_facts(const struct version_facts *facts, struct buf *out)
{
    buf_add_char(out, '{');
    members_add_text(out, "id", slice_of(facts->id));
    members_add_text(out, "version", slice_of(facts->version));
    members_add_text(out, "contentHash", slice_of(facts->content_hash));
    members_add_text(out, "sha256", slice_of(facts->archive_hash));
    members_add_text(out, "architecture", slice_of(facts->architecture));
    members_add_text(out, "libc", slice_of(facts->libc));
    members_add_text(out, "node", slice_of(facts->program));
    buf_add_text(out, "}\n");
}

static enum err give(int folder, const char *name, struct process_user user,
                     struct failure *why)
{
    struct stat found;
    if (fstat(folder, &found))
        return failed(why, name);
    if (found.st_uid == geteuid() && found.st_gid == user.gid &&
        (found.st_mode & 07777) == GIVEN_MODE)
        return OK;
    return fchown(folder, geteuid(), user.gid) || fchmod(folder, GIVEN_MODE)
               ? failed(why, name)
               : OK;
}

enum err version_folder_give(const char *path, struct process_user user,
                             struct failure *why)
{
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0)
        return failed(why, path);
    enum err refused = give(folder, path, user, why);
    close(folder);
    return refused;
}

/* Puts the folder in its place, and sets a damaged version there aside. */
static enum err put_in_place(struct version_folder *folder, struct failure *why)
{
    set_aside(folder->versions, folder->versions, folder->name);
    int failing =
        renameat(folder->versions, folder->new_name, folder->versions, folder->name);
    return failing || fsync(folder->versions) ? failed(why, folder->name) : OK;
}

static enum err write_ours(struct version_folder *folder, struct slice manifest,
                           struct slice index, const struct version_facts *facts,
                           uint64_t *bytes, struct failure *why)
{
    struct buf text = { 0 };
    manifest_move(manifest, folder->path, &text);
    enum err refused = write_file(folder, "build.json", buf_slice(&text), why);
    *bytes += text.len;
    buf_clear(&text);
    index_move(index, MANIFEST_ROOT, folder->path, &text);
    if (!refused)
        refused = write_file(folder, "index.json", buf_slice(&text), why);
    *bytes += text.len;
    buf_clear(&text);
    write_facts(facts, &text);
    if (!refused)
        refused = write_file(folder, "runcast.json", buf_slice(&text), why);
    *bytes += text.len;
    buf_finish(&text);
    if (!refused && fsync(folder->folder))
        refused = failed(why, folder->name);
    return refused;
}

/* Our files are written after sealing.
 *
 * Earlier, a process with the builder's user could replace them. */
enum err version_folder_seal(struct version_folder *folder, struct slice manifest,
                             struct slice index, const struct version_facts *facts,
                             const struct tree_limits *limits, const struct work *work,
                             uint64_t *bytes, struct failure *why)
{
    uid_t builder = folder->user.uid ? folder->user.uid : geteuid();
    enum err refused = tree_seal(folder->folder, builder, limits, work, bytes, why);
    if (!refused)
        refused = write_ours(folder, manifest, index, facts, bytes, why);
    if (!refused && folder->user.uid)
        refused = give(folder->folder, folder->name, folder->user, why);
    return refused ? refused : put_in_place(folder, why);
}

void version_folder_set_aside(const char *versions, const char *id)
{
    int all = open(versions, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (all < 0)
        return;
    set_aside(all, all, id);
    close(all);
}

void version_folder_set_unfinished_aside(const char *versions)
{
    DIR *all = opendir(versions);
    for (struct dirent *entry; all && (entry = readdir(all));)
        if (ends_with(entry->d_name, unfinished) && !ends_with(entry->d_name, old))
            set_aside(dirfd(all), dirfd(all), entry->d_name);
    if (all)
        closedir(all);
}

bool version_folder_remove_old(const char *versions, const struct work *work)
{
    DIR *all = opendir(versions);
    bool done = true;
    for (struct dirent *entry; done && all && (entry = readdir(all));)
        if (ends_with(entry->d_name, old))
            done = folder_remove(dirfd(all), entry->d_name, work);
    if (all)
        closedir(all);
    return done;
}
