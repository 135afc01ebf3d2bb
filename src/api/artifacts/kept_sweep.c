/* kept_sweep.c - lists names page by page and removes files that are not needed. */
#include "api/artifacts/kept_sweep.h"

#include "base/log.h"
#include "base/mem.h"

static void list_next(struct kept_sweep *sweep);

static void end(struct kept_sweep *sweep, enum store_status status)
{
    if (status)
        log_warn("cannot list unused files of deployments in the database", NULL);
    free(sweep->names);
    sweep->names = NULL;
    sweep->done(sweep);
}

static void go_on(struct kept_sweep *sweep);

static void on_removed(struct store_file *req, enum store_status status)
{
    struct kept_sweep *sweep = container_of(req, struct kept_sweep, request);
    if (status || sweep->stopping)
        end(sweep, status);
    else
        go_on(sweep);
}

/* Removes the next file that is not needed, or lists the next page. */
static void go_on(struct kept_sweep *sweep)
{
    while (sweep->next < sweep->count) {
        const struct store_file_name *name = &sweep->names[sweep->next++];
        sweep->request.name = *name;
        if (sweep->is_needed(sweep->owner, name))
            continue;
        sweep->request.step = FILE_REMOVE;
        sweep->request.done = on_removed;
        sweep->store->ops->file(sweep->store, &sweep->request);
        return;
    }
    list_next(sweep);
}

static void on_listed(struct store_file *req, enum store_status status)
{
    struct kept_sweep *sweep = container_of(req, struct kept_sweep, request);
    free(sweep->names);
    sweep->names = status ? NULL : req->names;
    sweep->count = req->count;
    sweep->next = 0;
    if (status || sweep->stopping || !sweep->count)
        end(sweep, status);
    else
        go_on(sweep);
}

/* Lists the names after the last one that was examined. */
static void list_next(struct kept_sweep *sweep)
{
    sweep->request.step = FILE_LIST;
    sweep->request.done = on_listed;
    sweep->store->ops->file(sweep->store, &sweep->request);
}

void kept_sweep_begin(struct kept_sweep *sweep)
{
    sweep->request = (struct store_file){ 0 };
    list_next(sweep);
}
