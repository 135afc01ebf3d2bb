/* key_rotation.c - seals everything with another key, and verifies the result by a scan.
 *
 * Documents are read from the store, not from memory, so that no sealed one is missed. If a
 * commit failed, or its outcome is unknown, the next scan shows the result. */
#include "server/upkeep/key_rotation.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/work.h"
#include "server/upkeep/reseal.h"

enum { FREE_EVERY_MS = 1, AGAIN_MS = 1000, TRIES_MAX = 60 };

static const enum document_kind sealed_kinds[] = { DOC_KEY, DOC_VARIABLE,
                                                   DOC_BUILD_VARIABLES };

enum { SEALED_KINDS = sizeof(sealed_kinds) / sizeof(sealed_kinds[0]) };

struct rotate {
    struct engine *engine;
    struct accounts *accounts;
    struct vault *vault;
    struct loop *loop;
    struct timer timer;
    uint32_t timer_kind;
    void (*after_timer)(struct rotate *rotate);

    rotate_done_fn *done;
    void *owner;
    bool busy, stopping;
    bool any_next; /* something is sealed with the next key */
    bool unknown;  /* something may be: a commit failed, and no scan has followed */
    unsigned tries;
    size_t total; /* values sealed again */
    struct failure why;

    struct work work; /* writes and syncs the key files */
    bool saving, keep;
    enum err file_status;
    struct failure file_why;

    struct store_scan scan;
    size_t scanned; /* kinds that were scanned, of sealed_kinds */
    struct document *documents;
    size_t document_count, taken;
    size_t noted; /* how many changes were noted in memory */
    struct deferred deferred, noting;
    struct change *changes;
    size_t *sources; /* index of each change's document */
    size_t change_count;
    struct document_write write;
};

static void seal_some(struct deferred *deferred);
static void note_some(struct deferred *deferred);

static void on_time(struct timer *timer)
{
    struct rotate *rotate = container_of(timer, struct rotate, timer);
    rotate->after_timer(rotate);
}

struct rotate *rotate_create(struct engine *engine, struct accounts *accounts)
{
    struct rotate *rotate = mem_new(struct rotate);
    rotate->engine = engine;
    rotate->accounts = accounts;
    rotate->vault = accounts_vault(accounts);
    rotate->loop = engine_loop(engine);
    rotate->timer_kind = timers_kind(loop_timers(rotate->loop), on_time);
    rotate->deferred.fn = seal_some;
    list_init(&rotate->deferred.link);
    rotate->noting.fn = note_some;
    list_init(&rotate->noting.link);
    return rotate;
}

void rotate_destroy(struct rotate *rotate)
{
    free(rotate);
}

bool rotate_busy(const struct rotate *rotate)
{
    return rotate && rotate->busy;
}

static void wait_ms(struct rotate *rotate, int64_t ms, void (*then)(struct rotate *rotate))
{
    rotate->after_timer = then;
    loop_set_timer(rotate->loop, &rotate->timer, rotate->timer_kind, ms);
}

void rotate_stop(struct rotate *rotate)
{
    if (!rotate)
        return;
    rotate->stopping = true;
    if (rotate->timer.place)
        wait_ms(rotate, 0, rotate->after_timer);
}

static void drop_documents(struct rotate *rotate)
{
    for (size_t i = 0; i < rotate->document_count; i++)
        document_finish(&rotate->documents[i]);
    free(rotate->documents);
    rotate->documents = NULL;
    rotate->document_count = rotate->taken = 0;
}

/* finished: the resources of the changes were released already. */
static void drop_changes(struct rotate *rotate, bool finished)
{
    for (size_t i = 0; !finished && i < rotate->change_count; i++)
        change_finish(&rotate->changes[i]);
    free(rotate->changes);
    free(rotate->sources);
    rotate->changes = NULL;
    rotate->sources = NULL;
    rotate->change_count = 0;
}

/* ---- the end ---- */

static void report(struct rotate *rotate, enum err status, const char *text)
{
    rotate->busy = false;
    if (status)
        log_error("encryption key not rotated", "reason", text, NULL);
    else
        log_info("encryption key rotated", "result", text, NULL);
    rotate->done(rotate->owner, status, text);
}

static void on_placed(struct rotate *rotate)
{
    char id[KEY_ID_TEXT_MAX], text[128];
    vault_rotation_end(rotate->vault, rotate->keep);
    vault_key_id(rotate->vault, id);
    if (rotate->file_status) /* the next start finds both files and decides */
        log_error("cannot store the key files", "reason", rotate->file_why.text, NULL);
    snprintf(text, sizeof(text), "%zu values are sealed with encryption key %s now",
             rotate->total, id);
    if (rotate->keep)
        report(rotate, OK, text);
    else
        report(rotate, rotate->why.code, rotate->why.text);
}

static void run_work(struct work *work)
{
    struct rotate *rotate = container_of(work, struct rotate, work);
    rotate->file_status =
        rotate->saving
            ? vault_rotation_save(rotate->vault, &rotate->file_why)
            : vault_rotation_place(rotate->vault, rotate->keep, &rotate->file_why);
}

static void end(struct rotate *rotate, bool keep);
static void await_free(struct rotate *rotate);

static void after_work(struct work *work)
{
    struct rotate *rotate = container_of(work, struct rotate, work);
    if (!rotate->saving) {
        on_placed(rotate);
        return;
    }
    if (!rotate->file_status) {
        await_free(rotate);
        return;
    }
    rotate->why = rotate->file_why;
    end(rotate, false);
}

static void begin_work(struct rotate *rotate, bool saving)
{
    rotate->saving = saving;
    rotate->work.run = run_work;
    rotate->work.done = after_work;
    work_begin(loop_uv(rotate->loop), &rotate->work, WORK_KEYS);
}

static void end(struct rotate *rotate, bool keep)
{
    drop_documents(rotate);
    drop_changes(rotate, false);
    rotate->keep = keep;
    begin_work(rotate, false);
}

/* Returns to the old key, if it is certain that nothing is sealed with the next one. */
static void fail(struct rotate *rotate)
{
    if (!rotate->any_next && !rotate->unknown) {
        end(rotate, false);
        return;
    }
    drop_documents(rotate);
    drop_changes(rotate, false);
    vault_rotation_give_up(rotate->vault);
    report(rotate, ERR_STORE,
           "it is unknown whether the new key was written; both are kept, and the next "
           "start finds out which one is right; until then nothing is sealed");
}

/* ---- scan, seal, commit; until nothing is left ---- */

static void begin_scan(struct rotate *rotate);

static void try_again(struct rotate *rotate, const char *reason)
{
    drop_documents(rotate);
    if (rotate->stopping || ++rotate->tries == TRIES_MAX) {
        explain(&rotate->why, ERR_STORE, "%s; the old key is still in use", reason);
        fail(rotate);
        return;
    }
    wait_ms(rotate, AGAIN_MS, begin_scan);
}

/* Notes resealed documents in memory, for a time slice per turn. Until all are noted, both
 * keys can open documents. */
static void note_some(struct deferred *deferred)
{
    struct rotate *rotate = container_of(deferred, struct rotate, noting);
    struct timeslice timeslice = loop_timeslice(rotate->loop);
    while (rotate->noted < rotate->change_count && timeslice_left(&timeslice)) {
        struct document *document = &rotate->documents[rotate->sources[rotate->noted++]];
        reseal_note(rotate->accounts, document);
        document_finish(document);
    }
    if (rotate->noted < rotate->change_count) {
        loop_defer(rotate->loop, deferred);
        return;
    }
    rotate->total += rotate->change_count;
    drop_changes(rotate, true);
    drop_documents(rotate);
    begin_scan(rotate);
}

static void on_written(struct document_write *write, enum err status)
{
    struct rotate *rotate = container_of(write, struct rotate, write);
    rotate->any_next |= !status;
    rotate->unknown |= status == ERR_STORE;
    rotate->noted = 0;
    if (!status) {
        loop_defer(rotate->loop, &rotate->noting);
        return;
    }
    drop_changes(rotate, true);
    try_again(rotate, "the store rejected the commit");
}

/* Commits the changes; without any, everything is sealed with the next key. */
static void commit(struct rotate *rotate)
{
    if (!rotate->change_count) {
        end(rotate, true);
    } else if (rotate->stopping) {
        explain(&rotate->why, ERR_DRAINING,
                "the gateway is stopping; the old key is still in use");
        fail(rotate);
    } else {
        documents_write_begin(rotate->engine, rotate->changes, rotate->change_count,
                              &rotate->write, on_written);
    }
}

static bool seal_next(struct rotate *rotate)
{
    struct document *document = &rotate->documents[rotate->taken];
    struct change *change = &rotate->changes[rotate->change_count];
    enum err err = reseal(rotate->accounts, document, change, &rotate->why);
    if (!err)
        rotate->sources[rotate->change_count++] = rotate->taken;
    else
        document_finish(document); /* unchanged */
    rotate->any_next |= err == ERR_CONFLICT;
    rotate->taken++;
    return err != ERR_INVALID;
}

static void seal_some(struct deferred *deferred)
{
    struct rotate *rotate = container_of(deferred, struct rotate, deferred);
    struct timeslice timeslice = loop_timeslice(rotate->loop);
    while (rotate->taken < rotate->document_count && timeslice_left(&timeslice)) {
        if (!seal_next(rotate)) {
            fail(rotate);
            return;
        }
    }
    if (rotate->taken < rotate->document_count)
        loop_defer(rotate->loop, deferred);
    else
        commit(rotate);
}

static void on_scanned(struct store_read *read, enum store_status status);

static void scan_kind(struct rotate *rotate)
{
    struct store *store = engine_store(rotate->engine);
    rotate->scan = (struct store_scan){ .read = { READ_SCAN, ENV_EVERY, on_scanned },
                                        .kind = sealed_kinds[rotate->scanned] };
    store->ops->read(store, &rotate->scan.read);
}

static void take_documents(struct rotate *rotate)
{
    const struct store_scan *scan = &rotate->scan;
    size_t count = rotate->document_count + scan->count;
    rotate->documents = mem_resize(rotate->documents, count * sizeof(struct document));
    for (size_t i = 0; i < scan->count; i++)
        rotate->documents[rotate->document_count++] = scan->documents[i];
    free(scan->documents);
}

static void on_scanned(struct store_read *read, enum store_status status)
{
    struct rotate *rotate = container_of(read, struct rotate, scan.read);
    take_documents(rotate);
    if (status) {
        try_again(rotate, "cannot read the database");
        return;
    }
    if (++rotate->scanned < SEALED_KINDS) {
        scan_kind(rotate);
        return;
    }
    rotate->unknown = rotate->any_next = false; /* the documents will show it */
    rotate->changes = mem_new_array(struct change, rotate->document_count);
    rotate->sources = mem_new_array(size_t, rotate->document_count);
    seal_some(&rotate->deferred);
}

/* Scans the store. After a failed sync, the data that is read may not be durable. */
static void begin_scan(struct rotate *rotate)
{
    if (engine_store(rotate->engine)->failing) {
        try_again(rotate, "the store is failing");
        return;
    }
    rotate->scanned = 0;
    scan_kind(rotate);
}

static void await_free(struct rotate *rotate)
{
    if (vault_is_free(rotate->vault) || rotate->stopping)
        begin_scan(rotate);
    else
        wait_ms(rotate, FREE_EVERY_MS, await_free);
}

enum err rotate_begin(struct rotate *rotate, struct slice next_key, rotate_done_fn *done,
                      void *owner, struct failure *why)
{
    if (rotate->stopping)
        return explain(why, ERR_DRAINING, "the gateway is stopping");
    enum err err = vault_rotation_begin(rotate->vault, next_key, why);
    if (err)
        return err;
    rotate->done = done;
    rotate->owner = owner;
    rotate->busy = true;
    rotate->any_next = rotate->unknown = false;
    rotate->tries = 0;
    rotate->total = 0;
    rotate->why = (struct failure){ 0 };
    begin_work(rotate, true);
    return OK;
}
