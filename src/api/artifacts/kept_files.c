/* kept_files.c - files of deployments: each request by jobs on files or by the store.
 *
 *   taking:   hashed by a job ─┬─► folder: the job has given the file a second name too
 *                              └─► store: each piece is read by a job ─► put into the store
 *   reading:  folder: a job; store: as many pieces as the limit holds */
#include "api/artifacts/kept_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/artifacts/kept_sweep.h"
#include "base/list.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/mem.h"

struct kept_files {
    struct loop *loop;
    struct store *store; /* stores the files; NULL: the folder does */
    char *folder;
    unsigned busy; /* requests of the store in flight */
    bool stopped;
    struct list unasked; // unasked_writing::link
    struct kept_sweep sweep;
};

struct kept_files *kept_files_create(struct loop *loop, struct store *store,
                                     const char *data)
{
    struct kept_files *files = mem_new(struct kept_files);
    struct buf folder = { 0 };
    buf_print(&folder, "%s/deployments", data);
    files->loop = loop;
    files->store = store->ops->file ? store : NULL;
    files->folder = mem_text(buf_slice(&folder));
    list_init(&files->unasked);
    buf_finish(&folder);
    return files;
}

void kept_files_destroy(struct kept_files *files)
{
    if (!files)
        return;
    free(files->folder);
    free(files);
}

bool kept_files_stop(struct kept_files *files)
{
    files->stopped = files->sweep.stopping = true;
    return !files->busy;
}

struct store_file_name kept_file_name(uint32_t env, const char *id, const char *ending)
{
    struct store_file_name name = { .env = env };
    snprintf(name.text, sizeof(name.text), "%s%s", id, ending);
    return name;
}

/* Returns the path of a file; the caller frees it. */
static char *path_of(const struct kept_files *files, const struct store_file_name *name)
{
    struct buf path = { 0 };
    buf_print(&path, "%s/%s", files->folder, name->text);
    char *text = mem_text(buf_slice(&path));
    buf_finish(&path);
    return text;
}

static enum err err_of_errno(int error)
{
    switch (error) {
    case 0: return OK;
    case ENOENT: return ERR_NOT_FOUND;
    case ENOSPC: return ERR_STORE_FULL;
    case ECANCELED: return ERR_CANCELED;
    default: return ERR_STORE;
    }
}

/* ---- taking ---- */

static void end_taking(struct kept_taking *taking)
{
    free(taking->bundle.to);
    taking->done(taking);
}

static void on_taken_piece(struct file_job *job)
{
    struct kept_taking *taking = container_of(job, struct kept_taking, piece.job);
    if (job->error)
        kept_putting_fail(&taking->putting, err_of_errno(job->error));
    else
        kept_putting_give(&taking->putting, bytes_slice(taking->piece.piece));
}

static void need_taken_piece(struct kept_putting *putting, int64_t offset, size_t len)
{
    struct kept_taking *taking = container_of(putting, struct kept_taking, putting);
    bytes_clear(&taking->piece.piece);
    if (taking->canceled) {
        kept_putting_fail(putting, ERR_CANCELED);
        return;
    }
    taking->piece.path = taking->from;
    taking->piece.offset = offset;
    taking->piece.limit = len;
    piece_reading_begin(taking->files->loop, &taking->piece, on_taken_piece);
}

static void on_taken_into_store(struct kept_putting *putting, enum err status)
{
    struct kept_taking *taking = container_of(putting, struct kept_taking, putting);
    bytes_clear(&taking->piece.piece);
    taking->files->busy--;
    if (status) {
        explain(&taking->why, status, "Cannot store the bundle: %s", errors[status].text);
        kept_files_remove(taking->files, taking->name); /* the pieces written so far */
    }
    end_taking(taking);
}

/* Returns OK if the bundle can be taken, by the results of the job. */
static enum err check_bundle(struct kept_taking *taking)
{
    const struct bundle_taking *bundle = &taking->bundle;
    if (bundle->lacks_room)
        return explain(&taking->why, ERR_STORE_FULL,
                       "storage_full: the gateway's disk has less than 1 GiB free, and no "
                       "version is deleted to make room");
    if (bundle->job.error == ECANCELED)
        return explain(&taking->why, ERR_CANCELED, "canceled");
    if (bundle->job.error)
        return explain(&taking->why, ERR_STORE, "Cannot store the bundle: %s",
                       strerror(bundle->job.error));
    if (!bundle->is_gzip)
        return explain(&taking->why, ERR_RULE,
                       "The bundle is not a gzip archive; deploy again");
    memcpy(taking->hash, bundle->hash, sizeof(taking->hash));
    return OK;
}

static void on_checked(struct file_job *job)
{
    struct kept_taking *taking = container_of(job, struct kept_taking, bundle.job);
    struct kept_files *files = taking->files;
    if (check_bundle(taking) || !files->store) {
        end_taking(taking);
        return;
    }
    taking->putting =
        (struct kept_putting){ .store = files->store,
                               .request = { .name = taking->name, .size = taking->size },
                               .need = need_taken_piece,
                               .done = on_taken_into_store };
    files->busy++;
    kept_putting_begin(&taking->putting);
}

void kept_taking_begin(struct kept_files *files, struct kept_taking *taking)
{
    taking->files = files;
    taking->canceled = false;
    taking->why.code = OK;
    taking->bundle = (struct bundle_taking){ .from = taking->from };
    if (!files->store)
        taking->bundle.to = path_of(files, &taking->name);
    bundle_taking_begin(files->loop, &taking->bundle, on_checked);
}

void kept_taking_cancel(struct kept_taking *taking)
{
    taking->canceled = true;
    file_job_cancel(&taking->bundle.job);
    file_job_cancel(&taking->piece.job);
}

/* ---- writing ---- */

static void on_written(struct file_job *job)
{
    struct kept_writing *writing = container_of(job, struct kept_writing, file.job);
    free(writing->file.path);
    writing->done(writing, err_of_errno(job->error));
}

static void need_written_piece(struct kept_putting *putting, int64_t offset, size_t len)
{
    const struct kept_writing *writing =
        container_of(putting, struct kept_writing, putting);
    kept_putting_give(putting, (struct slice){ writing->content->data + offset, len });
}

static void on_written_into_store(struct kept_putting *putting, enum err status)
{
    struct kept_writing *writing = container_of(putting, struct kept_writing, putting);
    writing->files->busy--;
    writing->done(writing, status);
}

void kept_writing_begin(struct kept_files *files, struct kept_writing *writing)
{
    writing->files = files;
    if (!files->store) {
        writing->file = (struct file_writing){ .path = path_of(files, &writing->name),
                                               .content = writing->content };
        file_writing_begin(files->loop, &writing->file, on_written);
        return;
    }
    writing->putting = (struct kept_putting){ .store = files->store,
                                              .request = { .name = writing->name,
                                                           .size = writing->content->len },
                                              .need = need_written_piece,
                                              .done = on_written_into_store };
    files->busy++;
    kept_putting_begin(&writing->putting);
}

/* A file whose owner does not wait for the end of the writing. */
struct unasked_writing {
    struct kept_writing writing;
    struct list link;    // kept_files::unasked
    struct list readers; // kept_reading::link; they begin when the file is written
};

static void begin_reading(struct kept_reading *reading);

static void on_written_unasked(struct kept_writing *writing, enum err status)
{
    struct unasked_writing *unasked =
        container_of(writing, struct unasked_writing, writing);
    if (status)
        log_warn("cannot write a file of a deployment", "name", writing->name.text,
                 "reason", errors[status].text, NULL);
    list_remove(&unasked->link);
    list_each (link, &unasked->readers) {
        list_remove(link);
        begin_reading(container_of(link, struct kept_reading, link));
    }
    bytes_unref(writing->content);
    free(unasked);
}

void kept_files_write(struct kept_files *files, struct store_file_name name,
                      struct bytes *content)
{
    struct unasked_writing *unasked = mem_new(struct unasked_writing);
    unasked->writing = (struct kept_writing){ .name = name,
                                              .content = bytes_ref(content),
                                              .done = on_written_unasked };
    list_init(&unasked->readers);
    list_append(&files->unasked, &unasked->link);
    kept_writing_begin(files, &unasked->writing);
}

static struct unasked_writing *find_unasked(const struct kept_files *files,
                                            const struct store_file_name *name)
{
    list_each (link, &files->unasked) {
        struct unasked_writing *unasked = container_of(link, struct unasked_writing, link);
        const struct store_file_name *written = &unasked->writing.name;
        if (written->env == name->env && strcmp(written->text, name->text) == 0)
            return unasked;
    }
    return NULL;
}

/* ---- reading ---- */

static void on_read(struct file_job *job)
{
    struct kept_reading *reading = container_of(job, struct kept_reading, file.job);
    free(reading->file.path);
    reading->piece = reading->file.piece;
    if (!job->error)
        reading->size = reading->file.size;
    reading->done(reading, err_of_errno(job->error));
}

static void end_reading(struct kept_reading *reading, enum err status)
{
    reading->files->busy--;
    if (!status)
        reading->piece = bytes_create((struct slice){
            reading->found.ptr ? reading->found.ptr : "", reading->found.len });
    buf_finish(&reading->found);
    reading->done(reading, status);
}

static void read_piece(struct kept_reading *reading)
{
    struct kept_files *files = reading->files;
    files->store->ops->file(files->store, &reading->request);
}

static void on_piece(struct store_file *req, enum store_status status)
{
    struct kept_reading *reading = container_of(req, struct kept_reading, request);
    if (status) {
        end_reading(reading, err_of_store(status));
        return;
    }
    size_t room = reading->limit - reading->found.len;
    struct slice body = bytes_slice(req->body);
    buf_add(&reading->found, (struct slice){ body.ptr, body.len < room ? body.len : room });
    bytes_clear(&req->body);
    reading->size = req->size;
    if (body.len < FILE_PIECE_BYTES || body.len >= room) {
        end_reading(reading, OK);
        return;
    }
    req->piece++;
    read_piece(reading);
}

static void begin_reading(struct kept_reading *reading)
{
    struct kept_files *files = reading->files;
    if (!files->store) {
        reading->file = (struct piece_reading){ .path = path_of(files, &reading->name),
                                                .offset = reading->offset,
                                                .limit = reading->limit };
        piece_reading_begin(files->loop, &reading->file, on_read);
        return;
    }
    reading->request =
        (struct store_file){ .step = FILE_GET,
                             .name = reading->name,
                             .piece = (uint32_t)(reading->offset / FILE_PIECE_BYTES),
                             .done = on_piece };
    files->busy++;
    read_piece(reading);
}

void kept_reading_begin(struct kept_files *files, struct kept_reading *reading)
{
    struct unasked_writing *unasked = find_unasked(files, &reading->name);
    reading->files = files;
    reading->piece = NULL;
    reading->found = (struct buf){ 0 };
    if (unasked)
        list_append(&unasked->readers, &reading->link);
    else
        begin_reading(reading);
}

void kept_reading_cancel(struct kept_reading *reading)
{
    file_job_cancel(&reading->file.job);
}

/* ---- removing ---- */

struct kept_removal {
    struct kept_files *files;
    struct store_file request;
};

static void on_removed(struct store_file *req, enum store_status status)
{
    struct kept_removal *removal = container_of(req, struct kept_removal, request);
    (void)status; /* on an error the next sweep removes the file */
    removal->files->busy--;
    free(removal);
}

void kept_files_remove(struct kept_files *files, struct store_file_name name)
{
    if (!files->store) {
        char *path = path_of(files, &name);
        file_remove(files->loop, path);
        free(path);
        return;
    }
    struct kept_removal *removal = mem_new(struct kept_removal);
    removal->files = files;
    removal->request =
        (struct store_file){ .step = FILE_REMOVE, .name = name, .done = on_removed };
    files->busy++;
    files->store->ops->file(files->store, &removal->request);
}

/* ---- the sweep ---- */

static enum err sweep_folder(const struct kept_files *files, kept_needed_fn *is_needed,
                             void *owner, struct failure *why)
{
    int made = mkdir(files->folder, 0700);
    DIR *folder = made && errno != EEXIST ? NULL : opendir(files->folder);
    if (!folder)
        return explain(why, ERR_INTERNAL, "cannot open %s: %s", files->folder,
                       strerror(errno));
    for (const struct dirent *entry; (entry = readdir(folder));) {
        struct store_file_name name = kept_file_name(ENV_EVERY, entry->d_name, "");
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") &&
            !is_needed(owner, &name))
            unlinkat(dirfd(folder), entry->d_name, 0);
    }
    closedir(folder);
    return OK;
}

static void on_swept(struct kept_sweep *sweep)
{
    container_of(sweep, struct kept_files, sweep)->busy--;
}

enum err kept_files_sweep(struct kept_files *files, kept_needed_fn *is_needed, void *owner,
                          struct failure *why)
{
    if (!files->store)
        return sweep_folder(files, is_needed, owner, why);
    files->sweep = (struct kept_sweep){ .store = files->store,
                                        .is_needed = is_needed,
                                        .owner = owner,
                                        .done = on_swept,
                                        .stopping = files->stopped };
    files->busy++;
    kept_sweep_begin(&files->sweep);
    return OK;
}
