/* remains.c - removes the remaining documents of an environment in small commits.
 *
 *   any run left? ─► yes: done, retention has not finished
 *        │ no
 *        ▼
 *   each kind of document: read a page ─► remove it in one commit ─► the next page
 *        │ none of any kind
 *        ▼
 *   of a deleted project: emptied; of a branch: its own document ─► forgotten
 *
 * The number of an environment is not used again while a client may have a token, cursor or
 * URL of it: the store remembers up to which number retention has removed environments. */
#include "server/gateway/remains.h"

#include "base/mem.h"

static void scan_next(struct remains *remains);

static void remains_finish(struct remains *remains)
{
    remains->done(remains);
}

/* Returns the change that removes a document; takes ownership of the name. */
static struct change removal(uint32_t env, enum document_kind kind, struct bytes *name,
                             uint32_t version)
{
    return (struct change){ .kind = CHANGE_DOCUMENT,
                            .env = env,
                            .expected = version,
                            .document = { .kind = kind, .env = env, .name = name } };
}

/* ---- the environment itself ---- */

static void on_forgotten(struct document_write *write, enum err status)
{
    struct remains *remains = container_of(write, struct remains, write);
    if (!status)
        accounts_forget(remains->account);
    remains_finish(remains);
}

static void forget_account(struct remains *remains)
{
    struct account *account = remains->account;
    if (account->project->deleted_at) {
        account->emptied = true;
        remains_finish(remains);
        return;
    }
    remains->changes[0] = removal(ENV_INSTALLATION, DOC_ENVIRONMENT,
                                  bytes_create(slice_of(account->id)), account->version);
    remains->write = (struct document_write){ 0 };
    documents_write_begin(remains->engine, remains->changes, 1, &remains->write,
                          on_forgotten);
}

/* ---- documents ---- */

static void on_removed(struct document_write *write, enum err status)
{
    struct remains *remains = container_of(write, struct remains, write);
    if (status || remains->stopping)
        remains_finish(remains);
    else
        scan_next(remains);
}

static void on_scanned(struct store_read *read, enum store_status status)
{
    struct remains *remains = container_of(read, struct remains, scan.read);
    const struct store_scan *scan = &remains->scan;
    bool goes_on = !status && !remains->stopping;
    size_t count = scan->count;
    for (size_t i = 0; i < count && goes_on; i++)
        remains->changes[i] =
            removal(read->env, scan->kind, bytes_ref(scan->documents[i].name),
                    scan->documents[i].version);
    store_read_finish(read);
    remains->write = (struct document_write){ 0 };
    if (!goes_on) {
        remains_finish(remains);
    } else if (count) {
        documents_write_begin(remains->engine, remains->changes, count, &remains->write,
                              on_removed);
    } else {
        remains->kind++;
        scan_next(remains);
    }
}

static void scan_next(struct remains *remains)
{
    struct store *store = engine_store(remains->engine);
    if (remains->kind == DOC_KINDS) {
        forget_account(remains);
        return;
    }
    remains->scan =
        (struct store_scan){ .read = { READ_SCAN, remains->account->number, on_scanned },
                             .kind = remains->kind,
                             .limit = REMAINS_AT_ONCE,
                             .byte_limit = 1 << 20 };
    store->ops->read(store, &remains->scan.read);
}

/* ---- runs ---- */

static void on_walked(struct store_read *read, enum store_status status)
{
    struct remains *remains = container_of(read, struct remains, walk.read);
    bool has_runs = remains->walk.count;
    store_read_finish(read);
    if (status || has_runs || remains->stopping)
        remains_finish(remains);
    else
        scan_next(remains);
}

void remains_remove(struct remains *remains)
{
    struct store *store = engine_store(remains->engine);
    uint32_t number = remains->account->number;
    remains->kind = DOC_ORGANIZATION;
    remains->walk = (struct store_walk){ .read = { READ_WALK, number, on_walked },
                                         .kind = WALK_ALL,
                                         .up_to = store->ops->position(store, number).seq,
                                         .limit = 1 };
    store->ops->read(store, &remains->walk.read);
}
