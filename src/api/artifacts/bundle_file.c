/* bundle_file.c - takes, reads, writes and removes files on another thread.
 *
 *   taking: enough space? ─► gzip? ─► SHA-256 ─► fsync ─► second name ─► folder synced
 *
 * Functions that end in `_work` run there and touch only their job. */
#include "api/artifacts/bundle_file.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/list.h"
#include "base/mem.h"
#include "base/text.h"

enum {
    READ_BYTES = 256 * 1024,
    HASH_BYTES = 32,
};

/* ---- free space ---- */

/* Finds the free bytes of a disk. Returns false if they are unknown. */
static bool find_free(int fd, uint64_t *bytes)
{
    struct statvfs disk;
    bool known = !fstatvfs(fd, &disk);
    *bytes = known ? (uint64_t)disk.f_bavail * disk.f_frsize : 0;
    return known;
}

static void asking_work(struct file_job *job)
{
    struct disk_asking *asking = container_of(job, struct disk_asking, job);
    int fd = open(asking->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || !find_free(fd, &asking->free))
        job->error = errno;
    if (fd >= 0)
        close(fd);
}

void disk_asking_begin(struct loop *loop, struct disk_asking *asking,
                       void (*done)(struct file_job *job))
{
    asking->job.work = asking_work;
    asking->job.done = done;
    file_job_begin(loop, &asking->job);
}

/* ---- taking ---- */

/* Returns 0, or errno. */
static int sync_folder_of(const char *path)
{
    char folder[4096];
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) : 0;
    if (!len || len >= sizeof(folder))
        return ENAMETOOLONG;
    memcpy(folder, path, len);
    folder[len] = '\0';
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    int error = fsync(fd) ? errno : 0;
    close(fd);
    return error;
}

static bool disk_lacks_room(int fd)
{
    uint64_t bytes;
    return find_free(fd, &bytes) && bytes < DISK_LEAST_FREE;
}

/* Returns 0, or errno. Reads no further if the file is not gzip, or the job is canceled. */
static int hash_file(int fd, struct bundle_taking *taking)
{
    unsigned char *piece = malloc(READ_BYTES), hash[HASH_BYTES];
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool first = true,
         fine = piece && context && EVP_DigestInit_ex(context, EVP_sha256(), NULL);
    int error = fine ? 0 : ENOMEM;
    taking->is_gzip = true;
    while (!error) {
        if (!file_job_may_continue(&taking->job)) {
            error = ECANCELED;
            break;
        }
        ssize_t count = read(fd, piece, READ_BYTES);
        if (first)
            taking->is_gzip = count >= 2 && piece[0] == 0x1f && piece[1] == 0x8b;
        first = false;
        if (count < 0)
            error = errno;
        if (count <= 0 || !taking->is_gzip)
            break;
        if (!EVP_DigestUpdate(context, piece, (size_t)count))
            error = ENOMEM;
    }
    if (!error && !EVP_DigestFinal_ex(context, hash, NULL))
        error = ENOMEM;
    if (!error)
        text_to_hex(hash, sizeof(hash), taking->hash);
    EVP_MD_CTX_free(context);
    free(piece);
    return error;
}

static int take_work(int fd, struct bundle_taking *taking)
{
    taking->lacks_room = taking->to && disk_lacks_room(fd);
    if (taking->lacks_room)
        return 0;
    int error = hash_file(fd, taking);
    if (error || !taking->is_gzip || !taking->to)
        return error;
    if (fsync(fd) || link(taking->from, taking->to))
        return errno;
    return sync_folder_of(taking->to);
}

static void taking_work(struct file_job *job)
{
    struct bundle_taking *taking = container_of(job, struct bundle_taking, job);
    int fd = open(taking->from, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        job->error = errno;
        return;
    }
    job->error = take_work(fd, taking);
    close(fd);
}

void bundle_taking_begin(struct loop *loop, struct bundle_taking *taking,
                         void (*done)(struct file_job *job))
{
    taking->job.work = taking_work;
    taking->job.done = done;
    file_job_begin(loop, &taking->job);
}

/* ---- reading ---- */

static int read_work(int fd, struct piece_reading *reading)
{
    struct stat file;
    if (fstat(fd, &file))
        return errno;
    reading->size = file.st_size;
    int64_t left = file.st_size > reading->offset ? file.st_size - reading->offset : 0;
    size_t len = (uint64_t)left < reading->limit ? (size_t)left : reading->limit;
    struct bytes *piece = bytes_create_empty(len);
    for (size_t at = 0; at < len;) {
        ssize_t count =
            pread(fd, piece->data + at, len - at, (off_t)(reading->offset + (int64_t)at));
        if (count <= 0) {
            int error = count ? errno : EIO;
            bytes_unref(piece);
            return error;
        }
        at += (size_t)count;
    }
    reading->piece = piece;
    return 0;
}

static void reading_work(struct file_job *job)
{
    struct piece_reading *reading = container_of(job, struct piece_reading, job);
    int fd = open(reading->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        job->error = errno;
        return;
    }
    job->error = read_work(fd, reading);
    close(fd);
}

void piece_reading_begin(struct loop *loop, struct piece_reading *reading,
                         void (*done)(struct file_job *job))
{
    reading->piece = NULL;
    reading->job.work = reading_work;
    reading->job.done = done;
    file_job_begin(loop, &reading->job);
}

/* ---- writing ---- */

static int write_all(int fd, const struct bytes *content)
{
    for (size_t at = 0; at < content->len;) {
        ssize_t count = write(fd, content->data + at, content->len - at);
        if (count < 0)
            return errno;
        at += (size_t)count;
    }
    return fsync(fd) ? errno : 0;
}

static int write_work(const char *path, const struct bytes *content)
{
    char temporary[4096];
    size_t len = strlen(path);
    static const char ending[] = ".new";
    if (len + sizeof(ending) > sizeof(temporary))
        return ENAMETOOLONG;
    memcpy(temporary, path, len);
    memcpy(temporary + len, ending, sizeof(ending));
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno;
    int error = write_all(fd, content);
    close(fd);
    if (!error && rename(temporary, path))
        error = errno;
    if (error)
        unlink(temporary);
    return error ? error : sync_folder_of(path);
}

static void writing_work(struct file_job *job)
{
    const struct file_writing *writing = container_of(job, struct file_writing, job);
    job->error = write_work(writing->path, writing->content);
}

void file_writing_begin(struct loop *loop, struct file_writing *writing,
                        void (*done)(struct file_job *job))
{
    writing->job.work = writing_work;
    writing->job.done = done;
    file_job_begin(loop, &writing->job);
}

/* ---- removing ---- */

struct file_removal {
    struct file_job job;
    char *path;
};

static void removal_work(struct file_job *job)
{
    if (unlink(container_of(job, struct file_removal, job)->path))
        job->error = errno;
}

static void on_removed(struct file_job *job)
{
    struct file_removal *removal = container_of(job, struct file_removal, job);
    free(removal->path);
    free(removal);
}

void file_remove(struct loop *loop, const char *path)
{
    struct file_removal *removal = mem_new(struct file_removal);
    removal->path = mem_text(slice_of(path));
    removal->job.work = removal_work;
    removal->job.done = on_removed;
    file_job_begin(loop, &removal->job);
}
