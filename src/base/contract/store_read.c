/* store_read.c - frees what a read of the store has delivered. */
#include "runcast/store.h"

#include <stdlib.h>

static void finish_runs(struct run **runs, size_t *count)
{
    for (size_t i = 0; i < *count; i++)
        run_finish(&(*runs)[i]);
    free(*runs);
    *runs = NULL;
    *count = 0;
}

static void finish_load(struct store_load *load)
{
    run_finish(&load->run);
    document_finish(&load->document);
}

static void finish_scan(struct store_scan *scan)
{
    for (size_t i = 0; i < scan->count; i++)
        document_finish(&scan->documents[i]);
    free(scan->documents);
    scan->documents = NULL;
    scan->count = 0;
}

/* Returns NULL if reads of this kind cannot be abandoned. */
static atomic_bool *abandoned_of(const struct store_read *read)
{
    if (read->kind == READ_LIST)
        return &container_of((struct store_read *)read, struct store_list, read)->abandoned;
    if (read->kind == READ_COUNT)
        return &container_of((struct store_read *)read, struct store_count, read)
                    ->abandoned;
    return NULL;
}

void store_read_abandon(struct store_read *read)
{
    atomic_bool *abandoned = abandoned_of(read);
    if (abandoned)
        atomic_store(abandoned, true);
}

bool store_read_is_abandoned(const struct store_read *read)
{
    const atomic_bool *abandoned = abandoned_of(read);
    return abandoned && atomic_load(abandoned);
}

void store_read_finish(struct store_read *read)
{
    struct store_list *list = container_of(read, struct store_list, read);
    struct store_walk *walk = container_of(read, struct store_walk, read);
    switch (read->kind) {
    case READ_LOAD: finish_load(container_of(read, struct store_load, read)); break;
    case READ_PIECE:
        bytes_clear(&container_of(read, struct store_piece, read)->piece);
        break;
    case READ_LIST: finish_runs(&list->runs, &list->count); break;
    case READ_WALK: finish_runs(&walk->runs, &walk->count); break;
    case READ_SCAN: finish_scan(container_of(read, struct store_scan, read)); break;
    case READ_COUNT: break;
    }
}
