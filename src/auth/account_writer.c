/* account_writer.c - decide, commit, apply; the next. */
#include "auth/account_writer.h"

#include "base/log.h"
#include "base/mem.h"

struct account_writer {
    struct loop *loop;
    struct store *store;
    struct accounts *accounts;
    void (*on_environment)(void *owner, struct account *account);
    void *owner;
    struct list waiting; // account_write::link
    struct account_write *current;
    struct deferred turn;
    struct vault_waiter waiter; /* until a rotation of the vault's key has ended */
    struct store_commit commit;
    struct change changes[DRAFT_MAX];
};

static void take_turn(struct deferred *turn);
static void on_rotated(struct vault_waiter *waiter);

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

static void finish(struct account_writer *writer, enum err status)
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
    return explain(why, ERR_STORE, "%s", errors[ERR_STORE].text);
}

static enum err apply(struct account_writer *writer, struct failure *why)
{
    enum err err = OK;
    for (size_t i = 0; !err && i < writer->commit.change_count; i++)
        err = accounts_apply(writer->accounts, &writer->changes[i], why);
    if (!err)
        err = accounts_link(writer->accounts, why);
    for (size_t i = 0; !err && i < writer->commit.change_count; i++) {
        const struct change *change = &writer->changes[i];
        bool is_new = change->document.kind == DOC_ENVIRONMENT && !change->expected;
        if (is_new && writer->on_environment)
            writer->on_environment(
                writer->owner,
                accounts_by_id(writer->accounts, bytes_slice(change->document.name)));
    }
    if (err)
        log_error("accounts", "reason", why->text, NULL);
    return err;
}

static void give_back(struct account_writer *writer, size_t count)
{
    for (size_t i = 0; i < count; i++)
        change_finish(&writer->changes[i]);
}

static void on_committed(struct store_commit *commit, enum store_status status)
{
    struct account_writer *writer = container_of(commit, struct account_writer, commit);
    struct failure *why = &writer->current->why;
    enum err err = status ? not_written(why, status) : apply(writer, why);
    give_back(writer, commit->change_count);
    finish(writer, err);
}

static void on_rotated(struct vault_waiter *waiter)
{
    struct account_writer *writer = container_of(waiter, struct account_writer, waiter);
    loop_defer(writer->loop, &writer->turn);
}

/* False: its turn is not yet, or never. */
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
    struct draft draft = { .vault = accounts_vault(writer->accounts),
                           .now_ms = loop_wall_ms(writer->loop),
                           .changes = writer->changes };
    if (writer->current || list_empty(&writer->waiting) || !may_seal(writer))
        return;
    struct account_write *write =
        container_of(list_take(&writer->waiting), struct account_write, link);
    writer->current = write;
    enum err err = write->decide(write, writer->accounts, &draft);
    if (err || !draft.count) {
        give_back(writer, draft.count);
        finish(writer, err);
        return;
    }
    writer->commit = (struct store_commit){ .changes = writer->changes,
                                            .change_count = draft.count,
                                            .now_ms = draft.now_ms,
                                            .done = on_committed };
    writer->store->ops->commit(writer->store, &writer->commit);
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
