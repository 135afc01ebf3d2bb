/* bundle_pack.c - walks a folder in order of names and writes it with libarchive. */
#include "os/archive/bundle_pack.h"

#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"
#include "os/archive/bundle_names.h"

enum { COPY_SIZE = 65536 };

struct packing {
    struct archive *writer;
    struct archive_entry *entry;
    const struct bundle_limits *limits;
    struct failure *why;
    struct bundle_names names;
    uint64_t unpacked;
    char name[BUNDLE_NAME_MAX + 2]; /* of the current entry, terminated */
};

static enum err not_packed(struct packing *packing)
{
    return explain(packing->why, ERR_INTERNAL, "cannot pack \"%.*s\": %s",
                   SLICE_ARG(text_clip(slice_of(packing->name))), strerror(errno));
}

static enum err not_possible(struct packing *packing)
{
    const char *reason = archive_error_string(packing->writer);
    return explain(packing->why, ERR_INTERNAL, "cannot write the archive: %s",
                   reason ? reason : "out of memory");
}

static enum err add_header(struct packing *packing, const struct stat *found)
{
    struct archive_entry *entry = archive_entry_clear(packing->entry);
    bool is_folder = S_ISDIR(found->st_mode);
    bool executable = is_folder || found->st_mode & 0111;
    archive_entry_set_pathname(entry, packing->name);
    archive_entry_set_filetype(entry, is_folder ? AE_IFDIR : AE_IFREG);
    archive_entry_set_perm(entry, executable ? 0755 : 0644);
    archive_entry_set_size(entry, is_folder ? 0 : found->st_size);
    archive_entry_set_mtime(entry, 0, 0);
    return archive_write_header(packing->writer, entry) == ARCHIVE_OK
               ? OK
               : not_possible(packing);
}

static enum err copy(struct packing *packing, int file, uint64_t size)
{
    char bytes[COPY_SIZE];
    while (size) {
        size_t most = size < COPY_SIZE ? (size_t)size : COPY_SIZE;
        ssize_t got = read(file, bytes, most);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            errno = got ? errno : ESTALE; /* it became shorter */
            return not_packed(packing);
        }
        if (archive_write_data(packing->writer, bytes, (size_t)got) != got)
            return not_possible(packing);
        size -= (uint64_t)got;
    }
    return OK;
}

static enum err add_file(struct packing *packing, int file, const struct stat *found)
{
    uint64_t size = (uint64_t)found->st_size;
    if (size > packing->limits->unpacked_max - packing->unpacked)
        return explain(
            packing->why, ERR_TOO_LARGE,
            "the files together are too large (max %llu bytes, setting deploy-unpacked)",
            (unsigned long long)packing->limits->unpacked_max);
    packing->unpacked += size;
    enum err err = add_header(packing, found);
    return err ? err : copy(packing, file, size);
}

static enum err add_folder(struct packing *packing, int folder, size_t len);

static enum err add_opened(struct packing *packing, int opened, size_t len)
{
    struct stat found;
    if (fstat(opened, &found))
        return not_packed(packing);
    if (!S_ISREG(found.st_mode) && !S_ISDIR(found.st_mode))
        return explain(packing->why, ERR_INVALID, "\"%.*s\" is neither a file nor a folder",
                       SLICE_ARG(text_clip(slice_of(packing->name))));
    struct slice name;
    bool is_folder = S_ISDIR(found.st_mode);
    enum err err = bundle_name_read(packing->name, &name, packing->why);
    err = err ? err : bundle_names_add(&packing->names, name, is_folder, packing->why);
    if (err || !is_folder)
        return err ? err : add_file(packing, opened, &found);
    err = add_header(packing, &found);
    return err ? err : add_folder(packing, opened, len);
}

/* len: the length of the folder's name, with its slash. */
static enum err add_child(struct packing *packing, int folder, size_t len, const char *part)
{
    size_t part_len = strlen(part);
    if (len + part_len > BUNDLE_NAME_MAX)
        return explain(packing->why, ERR_INVALID, "name too long (max %d bytes)",
                       BUNDLE_NAME_MAX);
    memcpy(packing->name + len, part, part_len + 1);
    int opened = openat(folder, part, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (opened < 0 && errno == ELOOP)
        return explain(packing->why, ERR_INVALID, "\"%.*s\" is a link",
                       SLICE_ARG(text_clip(slice_of(packing->name))));
    if (opened < 0)
        return not_packed(packing);
    enum err err = add_opened(packing, opened, len + part_len);
    close(opened);
    return err;
}

static int is_child(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* The depth is limited like that of names. */
static enum err add_folder(struct packing *packing, int folder, size_t len)
{
    struct dirent **children;
    int count = scandirat(folder, ".", &children, is_child, by_bytes);
    if (count < 0)
        return not_packed(packing);
    if (len && len <= BUNDLE_NAME_MAX)
        packing->name[len++] = '/';
    enum err err = OK;
    for (int i = 0; i < count; i++) {
        err = err ? err : add_child(packing, folder, len, children[i]->d_name);
        free(children[i]);
    }
    free(children);
    return err;
}

/* Sets the compression level, so that other builds of the library give the same bytes. */
static enum err write_all(struct packing *packing, int folder, int file)
{
    struct archive *writer = packing->writer;
    if (archive_write_add_filter_gzip(writer) != ARCHIVE_OK ||
        archive_write_set_format_pax_restricted(writer) != ARCHIVE_OK ||
        archive_write_set_options(writer, "gzip:!timestamp,gzip:compression-level=6") !=
            ARCHIVE_OK ||
        archive_write_open_fd(writer, file) != ARCHIVE_OK)
        return not_possible(packing);
    enum err err = add_folder(packing, folder, 0);
    if (!err && archive_write_close(writer) != ARCHIVE_OK)
        err = not_possible(packing);
    return err;
}

enum err bundle_pack(const char *folder, int file, const struct bundle_limits *limits,
                     struct failure *why)
{
    int opened = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (opened < 0)
        return explain(why, ERR_NOT_FOUND, "%s: %s", folder, strerror(errno));
    locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    if (!utf8) {
        close(opened);
        return explain(why, ERR_INTERNAL, "locale C.UTF-8 not found");
    }
    locale_t before = uselocale(utf8);
    struct packing packing = { .limits = limits, .why = why };
    bundle_names_init(&packing.names, limits->files_max);
    packing.writer = archive_write_new();
    packing.entry = archive_entry_new();
    if (!packing.writer || !packing.entry)
        mem_exhausted();
    enum err err = write_all(&packing, opened, file);
    archive_entry_free(packing.entry);
    archive_write_free(packing.writer);
    bundle_names_finish(&packing.names);
    uselocale(before);
    freelocale(utf8);
    close(opened);
    return err;
}
