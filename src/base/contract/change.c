/* change.c - functions that every store driver needs for changes and statuses. */
#include "runcast/store.h"

enum err err_of_store(enum store_status status)
{
    switch (status) {
    case STORE_OK: return OK;
    case STORE_MISSING: return ERR_NOT_FOUND;
    case STORE_LOST:
    case STORE_TAKEN: return ERR_CONFLICT;
    case STORE_NO_SPACE: return ERR_STORE_FULL;
    case STORE_MOVED: return ERR_MOVED;
    default: return ERR_STORE;
    }
}

void document_finish(struct document *document)
{
    bytes_clear(&document->name);
    bytes_clear(&document->body);
}

void change_finish(struct change *change)
{
    run_finish(&change->run);
    document_finish(&change->document);
}

struct bytes *idempotency_claim_key(struct slice task, struct slice key)
{
    struct bytes *both = bytes_create_empty(task.len + 1 + key.len);
    memcpy(both->data, task.ptr, task.len);
    both->data[task.len] = 0;
    memcpy(both->data + task.len + 1, key.ptr, key.len);
    return both;
}

void change_number(struct change *change, uint64_t seq)
{
    struct run *run = &change->run;
    bool is_new = change->expected == 0;

    change->seq = seq;
    if (change->kind == CHANGE_DOCUMENT) {
        change->document.version = change->expected + 1;
        return;
    }
    run->version = change->expected + 1;
    run->rev = seq;
    if (is_new)
        run->output_rev = 0;
    if (is_new || change->marks & MARK_WHOLE)
        run->whole_rev = seq;
    if (is_new || change->marks & MARK_METADATA)
        run->metadata_rev = seq;
    if (change->marks & MARK_OUTPUT)
        run->output_rev = seq;
}
