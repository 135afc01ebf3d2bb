/* leftovers.c - removes the remaining documents of an environment in small commits.
 *
 *   any run left? ─► yes: done, retention has not finished
 *        │ no
 *        ▼
 *   each kind of document: read a page ─► remove it in one commit ─► the next page
 *        │ none of any kind
 *        ▼
 *   of a deleted project: emptied; of a branch: its own document ─► forgotten
 *
 * An environment's number is not reused while a client may have a token, cursor or URL with
 * it: the store remembers the number up to which retention has removed environments. */
#include "server/upkeep/leftovers.h"

#include "base/mem.h"

static void scan_next(struct leftovers *leftovers);

static void leftovers_finish(struct leftovers *leftovers)
{
    leftovers->done(leftovers);
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
    struct leftovers *leftovers = container_of(write, struct leftovers, write);
    if (!status)
        accounts_forget(leftovers->account);
    leftovers_finish(leftovers);
}

static void forget_account(struct leftovers *leftovers)
{
    struct account *account = leftovers->account;
    if (account->project->deleted_at) {
        account->emptied = true;
        leftovers_finish(leftovers);
        return;
    }
    leftovers->changes[0] = removal(ENV_INSTALLATION, DOC_ENVIRONMENT,
                                    bytes_create(slice_of(account->id)), account->version);
    leftovers->write = (struct document_write){ 0 };
    documents_write_begin(leftovers->engine, leftovers->changes, 1, &leftovers->write,
                          on_forgotten);
}

/* ---- documents ---- */

static void on_removed(struct document_write *write, enum err status)
{
    struct leftovers *leftovers = container_of(write, struct leftovers, write);
    if (status || leftovers->stopping)
        leftovers_finish(leftovers);
    else
        scan_next(leftovers);
}

static void on_scanned(struct store_read *read, enum store_status status)
{
    struct leftovers *leftovers = container_of(read, struct leftovers, scan.read);
    const struct store_scan *scan = &leftovers->scan;
    bool goes_on = !status && !leftovers->stopping;
    size_t count = scan->count;
    for (size_t i = 0; i < count && goes_on; i++)
        leftovers->changes[i] =
            removal(read->env, scan->kind, bytes_ref(scan->documents[i].name),
                    scan->documents[i].version);
    store_read_finish(read);
    leftovers->write = (struct document_write){ 0 };
    if (!goes_on) {
        leftovers_finish(leftovers);
    } else if (count) {
        documents_write_begin(leftovers->engine, leftovers->changes, count,
                              &leftovers->write, on_removed);
    } else {
        leftovers->kind++;
        scan_next(leftovers);
    }
}

static void scan_next(struct leftovers *leftovers)
{
    struct store *store = engine_store(leftovers->engine);
    if (leftovers->kind == DOC_KINDS) {
        forget_account(leftovers);
        return;
    }
    leftovers->scan =
        (struct store_scan){ .read = { READ_SCAN, leftovers->account->number, on_scanned },
                             .kind = leftovers->kind,
                             .limit = LEFTOVERS_AT_ONCE,
                             .byte_limit = 1 << 20 };
    store->ops->read(store, &leftovers->scan.read);
}

/* ---- runs ---- */

static void on_walked(struct store_read *read, enum store_status status)
{
    struct leftovers *leftovers = container_of(read, struct leftovers, walk.read);
    bool has_runs = leftovers->walk.count;
    store_read_finish(read);
    if (status || has_runs || leftovers->stopping)
        leftovers_finish(leftovers);
    else
        scan_next(leftovers);
}

void leftovers_remove(struct leftovers *leftovers)
{
    struct store *store = engine_store(leftovers->engine);
    uint32_t number = leftovers->account->number;
    leftovers->kind = DOC_ORGANIZATION;
    leftovers->walk = (struct store_walk){ .read = { READ_WALK, number, on_walked },
                                           .kind = WALK_ALL,
                                           .up_to = store->ops->position(store, number).seq,
                                           .limit = 1 };
    store->ops->read(store, &leftovers->walk.read);
}
