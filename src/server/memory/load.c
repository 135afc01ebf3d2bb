/* load.c - loads accounts and runs from the store into memory, before any client is served.
 *
 *   accounts: scan documents ─► none at all? create the first ones ─► link
 *   runs:     environments ─► workers, queues, rates ─► per environment: unfinished runs, in the
 *             order of their last change; then others, newest first, until half the budget
 *             is used or 2 s have passed: `cold` is where that stopped
 *
 * Results are processed in time slices, so that health checks get their responses
 * meanwhile.
 *
 * A gateway that has followed a leader has accounts and runs in memory. It reads only documents
 * of the environments, and adopts its runs.
 *
 * For an archived branch or deleted project, only unfinished runs are loaded, to be
 * canceled. Most have none and stay out of memory. */
#include "server/memory/load.h"

#include "accounts/bootstrap.h"
#include "api/router/services.h"
#include "base/mem.h"

enum {
    PAGE_RUNS = 1000,
    PAGE_BYTES = 8 << 20,
    NEWEST_MS = 2000,
    TAKEN_AT_ONCE = 16, /* runs or documents per check of the clock, 1 µs each */
};

static enum err not_read(struct failure *why)
{
    return explain(why, ERR_STORE, "cannot read the database");
}

/* ---- documents ---- */

static void on_scanned(struct store_read *read, enum store_status status);

static void scan_kind(struct load_documents *load)
{
    load->taken = 0;
    load->scan = (struct store_scan){ .read = { READ_SCAN, load->env, on_scanned },
                                      .kind = load->kinds[load->kind] };
    load->store->ops->read(load->store, &load->scan.read);
}

/* The claims of rates are scanned after the documents. Returns false if nothing is left. */
static bool scan_next(struct load_documents *load)
{
    if (load->refused || load->scan.of_claims)
        return false;
    if (++load->kind < load->kind_count) {
        scan_kind(load);
        return true;
    }
    if (!load->with_rates)
        return false;
    load->taken = 0;
    load->scan = (struct store_scan){ .read = { READ_SCAN, load->env, on_scanned },
                                      .of_claims = true,
                                      .claim_kind = CLAIM_RATE };
    load->store->ops->read(load->store, &load->scan.read);
    return true;
}

static void take_documents(struct deferred *deferred)
{
    struct load_documents *load = container_of(deferred, struct load_documents, taking);
    struct store_scan *scan = &load->scan;
    struct timeslice timeslice = loop_timeslice(load->loop);
    while (load->taken < scan->count && timeslice_left_every(&timeslice, TAKEN_AT_ONCE)) {
        struct document *document = &scan->documents[load->taken++];
        if (!load->refused)
            load->refused = load->take(load, document, &load->why);
        document_finish(document);
    }
    if (load->taken < scan->count) {
        loop_defer(load->loop, deferred);
        return;
    }
    free(scan->documents);
    if (!scan_next(load))
        load->done(load, load->refused);
}

static void on_scanned(struct store_read *read, enum store_status status)
{
    struct load_documents *load = container_of(read, struct load_documents, scan.read);
    load->refused = status ? not_read(&load->why) : OK;
    take_documents(&load->taking);
}

static void load_documents_begin(struct load_documents *load)
{
    load->taking.fn = take_documents;
    list_init(&load->taking.link);
    scan_kind(load);
}

/* ---- accounts ---- */

static const enum document_kind account_kinds[] = { DOC_ORGANIZATION, DOC_PROJECT,
                                                    DOC_USER,         DOC_ENVIRONMENT,
                                                    DOC_KEY,          DOC_TOKEN,
                                                    DOC_WORKER_TOKEN };

void load_documents_of_accounts(struct load_documents *load)
{
    load->kinds = account_kinds;
    load->kind_count = sizeof(account_kinds) / sizeof(account_kinds[0]);
    load_documents_begin(load);
}

static void on_first_written(struct store_commit *commit, enum store_status status)
{
    struct load_accounts *load = container_of(commit, struct load_accounts, commit);
    enum err refused = status ? not_read(&load->why) : OK;
    for (size_t i = 0; i < commit->change_count; i++) {
        if (!refused)
            refused = accounts_add(load->accounts, &load->changes[i].document, &load->why);
        change_finish(&load->changes[i]);
    }
    if (!refused)
        refused = accounts_link(load->accounts, &load->why);
    load->first->is_made = !refused;
    load->done(load, refused);
}

static enum err make_first(struct load_accounts *load)
{
    int64_t now = loop_wall_ms(load->loop);
    enum err refused = first_start_prepare(load->first, &load->why);
    if (refused)
        return refused;
    load->commit = (struct store_commit){ .changes = load->changes,
                                          .now_ms = now,
                                          .done = on_first_written };
    load->commit.change_count =
        accounts_bootstrap(load->accounts, &load->first->made, now, load->changes);
    load->store->ops->commit(load->store, &load->commit);
    return OK;
}

/* Every forgotten environment was purged before, so its number has a floor. */
static void note_number(struct load_accounts *load)
{
    uint32_t number = accounts_free_number(load->accounts);
    while (load->store->ops->position(load->store, number).floor)
        number++;
    accounts_note_number(load->accounts, number);
}

enum err load_accounts_settle(struct load_accounts *load)
{
    note_number(load);
    return vault_settle(accounts_vault(load->accounts), &load->why);
}

static enum err settle_accounts(struct load_accounts *load)
{
    enum err settled = load_accounts_settle(load);
    if (settled)
        return settled;
    if (!accounts_empty(load->accounts) || !load->first) {
        enum err refused = accounts_link(load->accounts, &load->why);
        load->done(load, refused);
        return OK;
    }
    return make_first(load);
}

static enum err take_account(struct load_documents *documents,
                             const struct document *document, struct failure *why)
{
    struct load_accounts *load = container_of(documents, struct load_accounts, documents);
    return accounts_add(load->accounts, document, why);
}

static void on_accounts_read(struct load_documents *documents, enum err status)
{
    struct load_accounts *load = container_of(documents, struct load_accounts, documents);
    load->why = documents->why;
    if (status || (status = settle_accounts(load)))
        load->done(load, status);
}

void load_accounts_begin(struct load_accounts *load)
{
    load->documents = (struct load_documents){
        .store = load->store,
        .loop = load->loop,
        .env = ENV_INSTALLATION,
        .take = take_account,
        .done = on_accounts_read,
    };
    load_documents_of_accounts(&load->documents);
}

/* ---- runs ---- */

static const enum document_kind restored_kinds[] = {
    DOC_WORKER,   DOC_CURRENT,  DOC_DEPLOYMENT, DOC_BUILD_VARIABLES, DOC_QUEUE,
    DOC_VARIABLE, DOC_SCHEDULE, DOC_BULK,       DOC_ACTIVITY,        DOC_LIMIT,
};

static struct environment *environment_now(const struct load_runs *load)
{
    return engine_environment(load->engine, load->account->number);
}

static void on_page(struct store_read *read, enum store_status status);

static void walk_page(struct load_runs *load)
{
    struct store *store = engine_store(load->engine);
    load->walk.read = (struct store_read){ READ_WALK, load->account->number, on_page };
    load->walk.takes_its_time = !load->walk.newest_first; /* on a slow disk */
    load->walk.limit = PAGE_RUNS;
    load->walk.byte_limit = PAGE_BYTES;
    load->walk.runs = NULL;
    load->walk.count = 0;
    store->ops->read(store, &load->walk.read);
}

static bool is_in_memory(const struct load_runs *load)
{
    return load->was_following && (load->all_is_there || environment_now(load));
}

/* Begins with the environment of load->account; NULL: that was the last one. */
static void begin_environment(struct load_runs *load)
{
    if (!load->account) {
        load->done(load, OK);
        return;
    }
    if (is_in_memory(load)) {
        loop_defer(engine_loop(load->engine), &load->taking_over);
        return;
    }
    struct store *store = engine_store(load->engine);
    struct store_position position = store->ops->position(store, load->account->number);
    load->walk = (struct store_walk){ .kind = WALK_UNFINISHED, .up_to = position.seq };
    walk_page(load);
}

static void next_environment(struct load_runs *load)
{
    load->account = accounts_next(load->accounts, load->account);
    begin_environment(load);
}

static void begin_newest(struct load_runs *load, const struct environment *env)
{
    load->walk = (struct store_walk){ .kind = WALK_SETTLED,
                                      .up_to = env->cold,
                                      .newest_first = true };
    load->until_ms = loop_now_ms(env->loop) + NEWEST_MS;
    walk_page(load);
}

/* Adopts the runs of environments in memory: of many in a turn, if they have few. */
static void take_over_some(struct deferred *deferred)
{
    struct load_runs *load = container_of(deferred, struct load_runs, taking_over);
    struct timeslice timeslice = loop_timeslice(engine_loop(load->engine));
    while (load->account && is_in_memory(load) && timeslice_left(&timeslice)) {
        struct environment *env = environment_now(load);
        if (env && engine_take_over(load->engine, env, &load->taken_over))
            break;
        load->taken_over = 0;
        if (env && !load->knows_newest && !load->account->archived) {
            begin_newest(load, env);
            return;
        }
        load->account = accounts_next(load->accounts, load->account);
    }
    begin_environment(load);
}

static bool has_room(const struct load_runs *load, const struct environment *env)
{
    const struct quota *project = &env->project_final->quota;
    return env->finals.used < env->budget / 2 && project->used < project->limit / 2 &&
           loop_now_ms(env->loop) < load->until_ms;
}

/* Finds the next page of the newest runs; returns false if there is none, or the budget is
 * used. */
static bool go_on(struct load_runs *load, struct environment *env)
{
    if (!load->more) {
        env->cold = 0;
        return false;
    }
    env->cold = load->last - 1;
    load->walk.up_to = env->cold;
    return has_room(load, env);
}

/* Returns the environment of the page. An archived one is created only if it has unfinished
 * runs, which must end. Returns NULL if it has none. */
static struct environment *environment_of_page(const struct load_runs *load)
{
    struct environment *env = environment_now(load);
    if (!env && load->count) {
        api_add_environment(load->api, load->account);
        env = environment_now(load);
    }
    return env;
}

static void begin_taking(struct load_runs *load);

static void end_page(struct load_runs *load, struct environment *env)
{
    load->is_taking = false;
    if (load->is_ahead) {
        if (load->is_read)
            begin_taking(load);
    } else if (load->walk.newest_first) {
        if (go_on(load, env))
            walk_page(load);
        else
            next_environment(load);
    } else if (!load->account->archived) {
        begin_newest(load, env);
    } else {
        if (env)
            api_retire_environment(load->api, load->account);
        next_environment(load);
    }
}

static void take_page(struct deferred *deferred)
{
    struct load_runs *load = container_of(deferred, struct load_runs, taking);
    struct environment *env = environment_of_page(load);
    struct timeslice timeslice = loop_timeslice(engine_loop(load->engine));
    while (load->taken < load->count && timeslice_left_every(&timeslice, TAKEN_AT_ONCE))
        engine_load_run(load->engine, env, &load->runs[load->taken++]);
    if (load->taken < load->count) {
        loop_defer(engine_loop(load->engine), deferred);
        return;
    }
    free(load->runs);
    end_page(load, env);
}

/* Lets the store read the next page while this one is processed. Not for the newest runs,
 * because it is not yet known whether they fit into the budget. */
static void read_ahead(struct load_runs *load)
{
    load->is_ahead = load->more && !load->walk.newest_first;
    if (!load->is_ahead)
        return;
    load->walk.after = load->last;
    walk_page(load);
}

/* Takes the page. If the store is slow, skips the newest runs, which can be read later. */
static void begin_taking(struct load_runs *load)
{
    struct store_walk *walk = &load->walk;
    load->is_read = false;
    if (load->status == STORE_SLOW && walk->newest_first) {
        next_environment(load);
        return;
    }
    if (load->status) {
        load->done(load, not_read(&load->why));
        return;
    }
    load->is_taking = true;
    load->runs = walk->runs;
    load->count = walk->count;
    load->more = walk->more;
    load->taken = 0;
    if (load->count)
        load->last = load->runs[load->count - 1].rev;
    read_ahead(load);
    take_page(&load->taking);
}

static void on_page(struct store_read *read, enum store_status status)
{
    struct load_runs *load = container_of(read, struct load_runs, walk.read);
    load->status = status;
    load->is_read = true;
    if (!load->is_taking)
        begin_taking(load);
}

static enum err take_restored(struct load_documents *documents,
                              const struct document *document, struct failure *why)
{
    struct load_runs *load = container_of(documents, struct load_runs, documents);
    if (!documents->scan.of_claims)
        return api_restore(load->api, document, why);
    engine_restore_rate(load->engine, document);
    return OK;
}

static void on_restored(struct load_documents *documents, enum err status)
{
    struct load_runs *load = container_of(documents, struct load_runs, documents);
    load->why = documents->why;
    if (status)
        load->done(load, status);
    else
        next_environment(load);
}

void load_runs_begin(struct load_runs *load)
{
    load->taking.fn = take_page;
    list_init(&load->taking.link);
    load->taking_over.fn = take_over_some;
    list_init(&load->taking_over.link);
    for (struct account *a = NULL; (a = accounts_next(load->accounts, a));) {
        engine_join_stored(load->engine, a->number, &a->project->stored);
        if (!a->archived && !engine_environment(load->engine, a->number))
            api_add_environment(load->api, a);
    }
    load->account = NULL;
    load->documents = (struct load_documents){
        .store = engine_store(load->engine),
        .loop = engine_loop(load->engine),
        .kinds = restored_kinds,
        .kind_count = sizeof(restored_kinds) / sizeof(restored_kinds[0]),
        .env = ENV_EVERY,
        .with_rates = true,
        .take = take_restored,
        .done = on_restored,
    };
    load_documents_begin(&load->documents);
}
