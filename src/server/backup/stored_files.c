/* stored_files.c - derives the names of files from the rows of deployments. */
#include "server/backup/stored_files.h"

#include "api/deployments/deployment.h"
#include "base/mem.h"

enum { FIRST_CAPACITY = 32 };

static struct stored_file *add(struct stored_files *files, uint32_t env, const char *id,
                               const char *ending)
{
    if (files->count == files->capacity) {
        files->capacity = files->capacity ? 2 * files->capacity : FIRST_CAPACITY;
        files->all = mem_resize(files->all, files->capacity * sizeof(*files->all));
    }
    struct stored_file *file = &files->all[files->count++];
    *file = (struct stored_file){ .env = env, .bytes = -1 };
    snprintf(file->name, sizeof(file->name), "deployments/%.40s%s", id, ending);
    return file;
}

static enum err take_row(void *owner, const struct document *document)
{
    struct stored_files *files = owner;
    struct deployment_row row;
    struct failure why;
    if (deployment_read(bytes_slice(document->body), &row, &why)) {
        explain(&files->damaged, why.code, "the row of deployment \"%.60s\" is damaged",
                document->name->data);
        return OK;
    }
    if (row.archive_bytes) {
        struct stored_file *archive = add(files, document->env, row.id, ".tar.gz");
        archive->bytes = row.archive_bytes;
        snprintf(archive->sha256, sizeof(archive->sha256), "%s", row.archive_hash);
    }
    if (row.archive_bytes && row.has_index)
        add(files, document->env, row.id, ".index.json");
    add(files, document->env, row.id, ".log")->may_be_missing = true;
    deployment_row_finish(&row);
    return OK;
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct stored_file *)a)->name,
                  ((const struct stored_file *)b)->name);
}

enum err stored_files_read(struct sqlite_look *look, struct stored_files *files,
                           struct failure *why)
{
    enum err err = sqlite_look_documents(look, DOC_DEPLOYMENT, take_row, files, why);
    if (files->count)
        qsort(files->all, files->count, sizeof(*files->all), compare);
    return err;
}

void stored_files_finish(struct stored_files *files)
{
    free(files->all);
    *files = (struct stored_files){ 0 };
}

static int compare_name(const void *name, const void *file)
{
    return strcmp(name, ((const struct stored_file *)file)->name);
}

const struct stored_file *stored_files_find(const struct stored_files *files,
                                            const char *name)
{
    return files->count
               ? bsearch(name, files->all, files->count, sizeof(*files->all), compare_name)
               : NULL;
}
