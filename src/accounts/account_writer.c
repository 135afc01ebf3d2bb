/* account_writer.c - decides, commits and applies one change to accounts at a time.
 *
 * A commit that failed may have been written all the same, for example if the disk could
 * not be synced. Before the next write is decided, the first document of that commit is
 * read from the store. A commit is written whole or not at all, so this one document
 * settles it. */
#include "accounts/account_writer.h"

#include "base/log.h"
#include "base/mem.h"

struct account_writer {
    struct loop *loop;
    struct store *store;
    struct accounts *accounts;
    void (*on_environment)(void *owner, struct account *account);
    void *owner;
    void (*on_change)(void *owner, const struct change *change); /* NULL: no listener */
    void *change_owner;
    struct list waiting; // account_write::link
    struct account_write *current;
    struct deferred turn;
    struct vault_waiter waiter; /* waits until a rotation of the vault's key has ended */
    struct store_commit commit;
    struct change changes[DRAFT_MAX]; /* of the commit in flight, or of the one in doubt */
    size_t in_doubt;                  /* how many of them are in doubt; 0: none */
    struct store_load load;           /* reads the first of them */
};

static void take_turn(struct deferred *turn);
static void on_rotated(struct vault_waiter *waiter);

static void give_back(struct account_writer *writer, size_t count)
{
    for (size_t i = 0; i < count; i++)
        change_finish(&writer->changes[i]);
}

struct account_writer *account_writer_create(struct loop *loop, struct store *store,
                                             struct accounts *accounts)
{
    struct account_writer *writer = mem_new(struct account_writer);
    writer->loop = loop;
    writer->store = store;
    writer->accounts = accounts;
    writer->turn.fn = take_turn;
    writer->waiter.fn = on_rotated;
    list_init(&writer->waiter.link);
    list_init(&writer->turn.link);
    list_init(&writer->waiting);
    return writer;
}

void account_writer_destroy(struct account_writer *writer)
{
    if (!writer)
        return;
    loop_cancel_deferred(&writer->turn);
    give_back(writer, writer->in_doubt);
    vault_wait_no_more(&writer->waiter);
    free(writer);
}

void account_writer_on_environment(struct account_writer *writer,
                                   void (*fn)(void *owner, struct account *account),
                                   void *owner)
{
    writer->on_environment = fn;
    writer->owner = owner;
}

void account_writer_on_change(struct account_writer *writer,
                              void (*fn)(void *owner, const struct change *change),
                              void *owner)
{
    writer->on_change = fn;
    writer->change_owner = owner;
}

static void account_writer_finish(struct account_writer *writer, enum err status)
{
    struct account_write *write = writer->current;
    writer->current = NULL;
    vault_release(accounts_vault(writer->accounts));
    if (!list_empty(&writer->waiting))
        loop_defer(writer->loop, &writer->turn);
    write->done(write, status);
}

static enum err not_written(struct failure *why, enum store_status status)
{
    if (status == STORE_NO_SPACE)
        return explain(why, ERR_STORE_FULL, "%s", errors[ERR_STORE_FULL].text);
    if (status == STORE_TAKEN)
        return explain(why, ERR_CONFLICT, "this request was already executed");
    return explain(why, ERR_STORE, "%s", errors[ERR_STORE].text);
}

void account_writer_report_environment(struct account_writer *writer,
                                       struct account *account)
{
    if (writer->on_environment && !account->forgotten)
        writer->on_environment(writer->owner, account);
}

static void report_project(struct account_writer *writer, struct slice id)
{
    for (struct account *a = NULL; (a = accounts_next(writer->accounts, a));)
        if (a->archived && slice_is(id, a->project->id))
            account_writer_report_environment(writer, a);
}

void account_writer_report(struct account_writer *writer, const struct document *document)
{
    struct slice name = bytes_slice(document->name);
    if (document->kind == DOC_PROJECT)
        report_project(writer, name);
    struct account *account =
        document->kind == DOC_ENVIRONMENT ? accounts_by_id(writer->accounts, name) : NULL;
    if (account)
        account_writer_report_environment(writer, account);
}

static void report_environments(struct account_writer *writer)
{
    for (size_t i = 0; i < writer->commit.change_count; i++)
        account_writer_report(writer, &writer->changes[i].document);
}

static enum err apply(struct account_writer *writer, struct failure *why)
{
    enum err err = OK;
    for (size_t i = 0; !err && i < writer->commit.change_count; i++) {
        if (writer->on_change)
            writer->on_change(writer->change_owner, &writer->changes[i]);
        err = accounts_apply(writer->accounts, &writer->changes[i], why);
    }
    if (!err)
        err = accounts_link(writer->accounts, why);
    if (!err)
        report_environments(writer);
    if (err)
        log_error("accounts", "reason", why->text, NULL);
    return err;
}

static void on_committed(struct store_commit *commit, enum store_status status)
{
    struct account_writer *writer = container_of(commit, struct account_writer, commit);
    struct failure *why = &writer->current->why;
    enum err err = status ? not_written(why, status) : apply(writer, why);
    if (status == STORE_FAILED)
        writer->in_doubt = commit->change_count;
    else
        give_back(writer, commit->change_count);
    account_writer_finish(writer, err);
}

static void on_claim_tried(struct store_commit *commit, enum store_status status)
{
    struct account_writer *writer = container_of(commit, struct account_writer, commit);
    struct failure *why = &writer->current->why;
    account_writer_finish(writer,
                          status == STORE_TAKEN ? not_written(why, status) : ERR_RULE);
}

/* Finds out if an earlier request has the claim. To take it until a time in the past leaves
 * it free. */
static void try_claim(struct account_writer *writer)
{
    struct claim *claim = writer->current->claim;
    claim->expires_at = 1;
    writer->commit = (struct store_commit){ .claims = claim,
                                            .claim_count = 1,
                                            .now_ms = loop_wall_ms(writer->loop),
                                            .done = on_claim_tried };
    writer->store->ops->commit(writer->store, &writer->commit);
}

static void decide(struct account_writer *writer)
{
    struct account_write *write = writer->current;
    struct draft draft = { .vault = accounts_vault(writer->accounts),
                           .now_ms = loop_wall_ms(writer->loop),
                           .changes = writer->changes };
    enum err err = write->decide(write, writer->accounts, &draft);
    if (err || !draft.count) {
        give_back(writer, draft.count);
        if (err == ERR_RULE && write->claim)
            try_claim(writer);
        else
            account_writer_finish(writer, err);
        return;
    }
    draft_end_expired(&draft, writer->accounts);
    writer->commit = (struct store_commit){ .changes = writer->changes,
                                            .change_count = draft.count,
                                            .claims = write->claim,
                                            .claim_count = write->claim ? 1 : 0,
                                            .now_ms = draft.now_ms,
                                            .done = on_committed };
    writer->store->ops->commit(writer->store, &writer->commit);
}

/* ---- a commit in doubt ---- */

static bool is_written(const struct account_writer *writer, enum store_status status)
{
    const struct change *change = &writer->changes[0];
    if (status == STORE_MISSING)
        return !change->document.body;
    return change->document.body && writer->load.document.version == change->expected + 1;
}

static void on_looked(struct store_read *read, enum store_status status)
{
    struct account_writer *writer = container_of(read, struct account_writer, load.read);
    struct failure *why = &writer->current->why;
    enum err err = OK;

    if (status != STORE_OK && status != STORE_MISSING) {
        account_writer_finish(writer, not_written(why, status));
        return;
    }
    if (is_written(writer, status)) {
        for (size_t i = 0; i < writer->in_doubt; i++)
            writer->changes[i].document.version = writer->changes[i].expected + 1;
        err = apply(writer, why);
    }
    if (status == STORE_OK)
        document_finish(&writer->load.document);
    give_back(writer, writer->in_doubt);
    writer->in_doubt = 0;
    if (err)
        account_writer_finish(writer, err);
    else
        decide(writer);
}

static void look(struct account_writer *writer)
{
    const struct document *document = &writer->changes[0].document;
    writer->load = (struct store_load){ .read = { READ_LOAD, document->env, on_looked },
                                        .is_document = true,
                                        .kind = document->kind,
                                        .name = document->name };
    writer->store->ops->read(writer->store, &writer->load.read);
}

static void on_rotated(struct vault_waiter *waiter)
{
    struct account_writer *writer = container_of(waiter, struct account_writer, waiter);
    loop_defer(writer->loop, &writer->turn);
}

/* Returns true if the write may seal its values now. If false, it waits or was failed. */
static bool may_seal(struct account_writer *writer)
{
    struct vault *vault = accounts_vault(writer->accounts);
    switch (vault_hold(vault)) {
    case VAULT_HELD: return true;
    case VAULT_WAIT: vault_wait(vault, &writer->waiter); return false;
    case VAULT_SHUT: break;
    }
    while (!list_empty(&writer->waiting)) {
        struct account_write *write =
            container_of(list_take(&writer->waiting), struct account_write, link);
        write->done(write, explain(&write->why, ERR_STORE, "%s", errors[ERR_STORE].text));
    }
    return false;
}

static void take_turn(struct deferred *turn)
{
    struct account_writer *writer = container_of(turn, struct account_writer, turn);
    if (writer->current || list_empty(&writer->waiting) || !may_seal(writer))
        return;
    writer->current = container_of(list_take(&writer->waiting), struct account_write, link);
    if (writer->in_doubt)
        look(writer);
    else
        decide(writer);
}

bool account_writer_idle(const struct account_writer *writer)
{
    return !writer->current && list_empty(&writer->waiting);
}

void account_write_begin(struct account_writer *writer, struct account_write *write)
{
    list_append(&writer->waiting, &write->link);
    if (!writer->current)
        loop_defer(writer->loop, &writer->turn);
}
