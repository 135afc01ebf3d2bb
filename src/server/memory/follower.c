/* follower.c - connects the replica with the accounts, the engine, and the clients' calls.
 *
 * Reading the accounts: position ─► documents of each kind ─► position: is it the same?
 *                          ▲                                    │ no: others were written
 *                          └────────────────────────────────────┘ meanwhile
 *
 * Only documents of one moment are right together. */
#include "server/memory/follower.h"

#include <stdlib.h>
#include <string.h>

#include "accounts/followed_accounts.h"
#include "api/router/services.h"
#include "base/log.h"
#include "base/mem.h"
#include "server/memory/load.h"
#include "server/memory/reported_uses.h"
#include "server/peers/following.h"

enum {
    IDLE_EVERY_MS = 1, /* between looks at whether the reads for following have ended */
    READS_MAX = 20,    /* of all accounts, because others were written meanwhile */
    /* Twice as long as the clock of a leader may differ from that of the database. */
    KNOWS_NEWEST_MS = 60 * 1000,
    RENEW_MS = 1000,          /* between looks at whether the database has another epoch */
    RENEWALS_MAX = 3,         /* that found the same epoch */
    RENEWALS_FAILED_MAX = 30, /* of a gateway that has taken the lead */
};

struct follower {
    struct loop *loop;
    struct follower_options options;
    struct following *following;
    struct followed_accounts *accounts;
    struct reported_uses uses;
    bool serves;      /* api_follow was called */
    int64_t since_ms; /* of that, monotonic */
    bool is_certain;  /* as reported to the api */
    bool takes_lead, ended;
    bool is_loaded;     /* takes_lead: on_loaded is due, or was called */
    struct timer trust; /* when it ends */
    /* takes_lead, or is_outdated: until the reads for following have ended */
    struct timer idle;
    bool is_outdated;  /* memory may be of another history; nothing is followed meanwhile */
    bool is_renewing;  /* renew is in flight */
    unsigned renewals; /* that found nothing new, since is_outdated */
    struct store_renew renew;
    struct timer again;     /* until the next renew */
    struct deferred loaded; /* reports status */
    enum err status;

    /* The accounts are being read. */
    struct store_walk walk; /* reads no run, only the position */
    struct load_documents documents;
    uint64_t from; /* the position before */
    bool is_after; /* walk reads the position after */
    unsigned reads;
    struct deferred settling;
};

static void on_trust_due(struct timer *timer);
static void on_idle(struct timer *timer);
static void begin_renewing(struct follower *follower);
static void load_when_idle(struct follower *follower);
static void on_loaded(void *owner, enum err status);

static void set_timer(struct follower *follower, struct timer *timer,
                      void (*fn)(struct timer *timer), int64_t ms)
{
    timers_clear(loop_timers(follower->loop), timer);
    loop_set_timer(follower->loop, timer, timers_kind(loop_timers(follower->loop), fn), ms);
}

static struct replica *replica_of(const struct follower *follower)
{
    return following_replica(follower->following);
}

/* ---- trust ---- */

/* Before this gateway serves for the first time, all environments are loaded. */
int64_t follower_left_ms(const struct follower *follower)
{
    bool may = follower->following && !follower->ended && !follower->takes_lead &&
               (follower->serves || replica_is_complete(replica_of(follower)));
    return may ? following_left_ms(follower->following) : 0;
}

bool follower_knows_newest(const struct follower *follower)
{
    return follower->serves &&
           loop_now_ms(follower->loop) - follower->since_ms >= KNOWS_NEWEST_MS;
}

bool follower_serves(const struct follower *follower)
{
    return follower->serves && !follower->ended && !follower->takes_lead;
}

static void begin_certainty(struct follower *follower)
{
    bool is_first = !follower->serves;
    follower->is_certain = follower->serves = true;
    if (is_first)
        follower->since_ms = loop_now_ms(follower->loop);
    if (is_first)
        api_follow(follower->options.api);
    else
        api_end_doubt(follower->options.api);
}

static void note_trust(struct follower *follower)
{
    int64_t left_ms = follower_left_ms(follower);
    if (left_ms > 0)
        set_timer(follower, &follower->trust, on_trust_due, left_ms);
    if (left_ms > 0 && !follower->is_certain) {
        begin_certainty(follower);
    } else if (left_ms <= 0 && follower->is_certain) {
        follower->is_certain = false;
        following_log_late(follower->following);
        api_begin_doubt(follower->options.api);
    }
}

static void on_trust_due(struct timer *timer)
{
    note_trust(container_of(timer, struct follower, trust));
}

static void on_unknown(void *owner)
{
    leading_refrain(((struct follower *)owner)->options.leading,
                    "the leader has stored a value that this version does not know");
}

static void on_silent(void *owner)
{
    const struct follower_options *options = &((struct follower *)owner)->options;
    options->on_silent(options->silent_owner);
}

static void on_disconnected(void *owner)
{
    note_trust(owner);
}

static void on_answered(void *owner)
{
    struct follower *follower = owner;
    note_trust(follower);
    certainty_answered(engine_certainty(follower->options.engine),
                       replica_of(follower)->answered);
}

uint64_t follower_ask(struct follower *follower)
{
    return replica_ask(replica_of(follower));
}

enum err follower_command(struct follower *follower, struct leader_command *command,
                          struct slice line, struct failure *why)
{
    return following_command(follower->following, command, line, why);
}

/* ---- environments ---- */

/* The leader may still have one that was archived. */
static struct environment *find(void *owner, uint32_t number)
{
    const struct follower_options *options = &((struct follower *)owner)->options;
    struct environment *env = engine_environment(options->engine, number);
    struct account *account = accounts_by_number(options->accounts, number);
    if (env && account && strcmp(env->id, account->id) != 0) {
        options->on_other_history(options->owner,
                                  "a number is that of another environment");
        return NULL;
    }
    if (env || !account || !account->project)
        return env;
    api_add_environment(options->api, account);
    if (account->archived)
        api_retire_environment(options->api, account);
    return engine_environment(options->engine, number);
}

static struct environment *next(void *owner, uint32_t *at)
{
    return engine_next_environment(((struct follower *)owner)->options.engine, at);
}

static void on_floor(void *owner, struct environment *env)
{
    const struct follower *follower = owner;
    if (!follower->ended)
        api_send_floor(follower->options.api, env);
}

static void on_applied(void *owner, struct environment *env)
{
    engine_trim(((struct follower *)owner)->options.engine, env);
}

bool follower_was_left(const struct follower *follower, uint32_t number)
{
    return follower->following && replica_was_left(replica_of(follower), number);
}

static void on_drop(void *owner, uint32_t number)
{
    replica_forget(replica_of(owner), number);
}

/* ---- accounts ---- */

static enum err take_document(void *owner, const struct document *document,
                              struct failure *why)
{
    struct follower *follower = owner;
    if (!document->name)
        return explain(why, ERR_INVALID, "a document of the accounts has no name");
    followed_accounts_take(follower->accounts, document);
    return OK;
}

static enum err settle(struct follower *follower, bool *more, struct failure *why)
{
    enum err status = followed_accounts_settle(follower->accounts, more, why);
    if (followed_accounts_lack_key(follower->accounts))
        leading_refrain(follower->options.leading,
                        "the leader has rotated the encryption key, and this gateway does "
                        "not have the new one");
    return status;
}

static enum err on_documents_end(void *owner, struct failure *why)
{
    bool more = false;
    return settle(owner, &more, why);
}

static void end_reading(struct follower *follower, enum err status)
{
    const struct follower_options *options = &follower->options;
    if (status == ERR_MOVED && !follower->ended)
        options->on_other_history(options->owner, follower->documents.why.text);
    else if (status)
        log_warn("cannot take the accounts of the database", "reason",
                 follower->documents.why.text, NULL);
    replica_accounts_read(replica_of(follower), status ? 0 : follower->from, status);
}

static void settle_some(struct deferred *settling)
{
    struct follower *follower = container_of(settling, struct follower, settling);
    bool more = false;
    enum err status = ERR_DRAINING;
    if (!follower->ended)
        status = settle(follower, &more, &follower->documents.why);
    if (more)
        loop_defer(follower->loop, settling);
    else
        end_reading(follower, status);
}

static enum err take_read(struct load_documents *load, const struct document *document,
                          struct failure *why)
{
    struct follower *follower = container_of(load, struct follower, documents);
    (void)why;
    followed_accounts_read(follower->accounts, document);
    return OK;
}

static void read_position(struct follower *follower);

static void on_read(struct load_documents *load, enum err status)
{
    struct follower *follower = container_of(load, struct follower, documents);
    if (status)
        end_reading(follower, status);
    else
        read_position(follower);
}

static void read_documents(struct follower *follower)
{
    followed_accounts_begin_read(follower->accounts);
    follower->documents = (struct load_documents){ .store = follower->options.store,
                                                   .loop = follower->loop,
                                                   .env = ENV_INSTALLATION,
                                                   .take = take_read,
                                                   .done = on_read };
    load_documents_of_accounts(&follower->documents);
}

static enum err check_reads(struct follower *follower)
{
    if (++follower->reads < READS_MAX)
        return OK;
    return explain(&follower->documents.why, ERR_STORE,
                   "others were written while they were read");
}

static void on_position_after(struct follower *follower)
{
    if (follower->walk.seq == follower->from) {
        followed_accounts_end_read(follower->accounts);
        settle_some(&follower->settling);
    } else if (check_reads(follower)) {
        end_reading(follower, ERR_STORE);
    } else {
        follower->from = follower->walk.seq;
        read_documents(follower);
    }
}

static void on_position(struct store_read *read, enum store_status status)
{
    struct follower *follower = container_of(read, struct follower, walk.read);
    if (status) {
        explain(&follower->documents.why, ERR_STORE, "cannot read the database");
        end_reading(follower, ERR_STORE);
        return;
    }
    free(follower->walk.runs);
    if (follower->is_after) {
        on_position_after(follower);
        return;
    }
    follower->is_after = true;
    follower->from = follower->walk.seq;
    read_documents(follower);
}

static void read_position(struct follower *follower)
{
    struct store *store = follower->options.store;
    follower->walk = (struct store_walk){
        .read = { READ_WALK, ENV_INSTALLATION, on_position },
        .kind = WALK_ALL,
        .after = INT64_MAX - 1,
        .up_to = INT64_MAX,
        .takes_its_time = true,
        .is_for_memory = true,
        .limit = 1,
    };
    store->ops->read(store, &follower->walk.read);
}

static void read_accounts(void *owner)
{
    struct follower *follower = owner;
    follower->is_after = false;
    follower->reads = 0;
    read_position(follower);
}

/* ---- another history ---- */

/* Everything is loaded again: by the next connection to a leader, or because this gateway has
 * taken the lead. */
static void begin_history(struct follower *follower)
{
    struct store *store = follower->options.store;
    log_warn("the database has another history; loading it", "epoch", follower->renew.epoch,
             NULL);
    store->ops->begin_history(store, follower->renew.epoch);
    replica_begin_history(replica_of(follower));
    followed_accounts_begin_history(follower->accounts);
}

/* Memory is of the history of the database. A gateway that leads cannot change to another. */
static void go_on(struct follower *follower)
{
    follower->is_outdated = false;
    following_resume(follower->following);
    if (!follower->takes_lead)
        return;
    follower->options.store->on_history = NULL;
    load_when_idle(follower);
}

static bool is_new(const struct follower *follower)
{
    return strcmp(follower->renew.epoch, follower->options.store->epoch) != 0;
}

/* No read of the history before may end later. */
static void begin_when_idle(struct follower *follower)
{
    if (!replica_is_idle(replica_of(follower))) {
        set_timer(follower, &follower->idle, on_idle, IDLE_EVERY_MS);
        return;
    }
    begin_history(follower);
    go_on(follower);
}

static void on_again(struct timer *timer)
{
    begin_renewing(container_of(timer, struct follower, again));
}

/* Another gateway may be renewing the epoch. A gateway that follows can find that out later. */
static bool may_go_on(const struct follower *follower)
{
    return follower->takes_lead ? !follower->renew.is_other
                                : follower->renewals > RENEWALS_MAX;
}

/* Memory is not used. A gateway that has taken the lead ends if it can never be. */
static void renew_again(struct follower *follower, enum store_status status)
{
    bool is_vain = !status && follower->renewals > RENEWALS_MAX;
    if (follower->takes_lead && is_vain)
        on_loaded(follower, ERR_MOVED);
    else if (follower->takes_lead && follower->renewals > RENEWALS_FAILED_MAX)
        on_loaded(follower, ERR_STORE);
    else
        set_timer(follower, &follower->again, on_again, RENEW_MS);
}

static void on_renewed(struct store_renew *renew, enum store_status status)
{
    struct follower *follower = container_of(renew, struct follower, renew);
    follower->is_renewing = false;
    if (follower->ended || !follower->is_outdated)
        return;
    follower->renewals++;
    if (!status && is_new(follower))
        begin_when_idle(follower);
    else if (!status && may_go_on(follower))
        go_on(follower);
    else
        renew_again(follower, status);
}

static void begin_renewing(struct follower *follower)
{
    struct store *store = follower->options.store;
    if (follower->is_renewing)
        return;
    follower->is_renewing = true;
    follower->renew = (struct store_renew){ .done = on_renewed };
    store->ops->renew(store, &follower->renew);
}

/* Memory is not used until the database has named its epoch. */
static void doubt_history(struct follower *follower, const char *why)
{
    if (follower->is_outdated)
        return;
    log_info("memory may be of another history", "reason", why, NULL);
    follower->is_outdated = true;
    follower->renewals = 0;
    following_pause(follower->following, why);
    note_trust(follower);
    begin_renewing(follower);
}

static void give_up(void *owner, const char *why)
{
    doubt_history(owner, why);
}

static void on_history(void *owner)
{
    doubt_history(owner, "another server has become the primary one");
}

/* ---- last uses ---- */

static size_t collect_uses(void *owner, bool is_new, struct repl_use *list, size_t most)
{
    struct follower *follower = owner;
    if (is_new)
        follower->uses = (struct reported_uses){ 0 };
    return reported_uses_collect(&follower->uses, follower->options.accounts,
                                 loop_now_ms(follower->loop), loop_wall_ms(follower->loop),
                                 list, most);
}

/* ---- taking the lead ---- */

bool follower_is_empty(const struct follower *follower)
{
    return accounts_empty(follower->options.accounts) &&
           replica_is_idle(replica_of(follower));
}

static void report_loaded(struct deferred *deferred)
{
    const struct follower *follower = container_of(deferred, struct follower, loaded);
    follower->options.on_loaded(follower->options.owner, follower->status);
}

/* If memory lacks nothing, this is still within follower_take_lead. */
static void on_loaded(void *owner, enum err status)
{
    struct follower *follower = owner;
    const struct replica *replica = replica_of(follower);
    engine_note_newest(follower->options.engine, replica->newest_id, replica->newest_ms);
    follower->status = status;
    follower->is_loaded = true;
    loop_defer(follower->loop, &follower->loaded);
}

static void load_when_idle(struct follower *follower)
{
    if (following_may_end(follower->following))
        replica_load(replica_of(follower));
    else
        set_timer(follower, &follower->idle, on_idle, IDLE_EVERY_MS);
}

static void on_idle(struct timer *timer)
{
    struct follower *follower = container_of(timer, struct follower, idle);
    if (!follower->is_outdated)
        load_when_idle(follower);
    else if (!follower->is_renewing) /* otherwise on_renewed continues */
        begin_when_idle(follower);
}

static void stop(struct follower *follower, const char *why)
{
    struct timers *timers = loop_timers(follower->loop);
    timers_clear(timers, &follower->trust);
    timers_clear(timers, &follower->again);
    following_end(follower->following, why);
}

void follower_take_lead(struct follower *follower)
{
    follower->takes_lead = true;
    stop(follower, "this gateway takes the lead");
    follower->is_outdated = true; /* until the database has named its epoch */
    follower->renewals = 0;
    begin_renewing(follower);
}

/* ---- the beginning and the end ---- */

static uint64_t me(void *owner)
{
    return leading_me(((struct follower *)owner)->options.leading);
}

static const struct store_gateway *leader(void *owner)
{
    return leading_leader(((struct follower *)owner)->options.leading);
}

static struct following_options following_options_of(struct follower *follower)
{
    return (struct following_options){ .store = follower->options.store,
                                       .vault = follower->options.vault,
                                       .trust = follower->options.trust,
                                       .me = me,
                                       .leader = leader,
                                       .disconnected = on_disconnected,
                                       .uses = collect_uses,
                                       .silent = on_silent,
                                       .unknown = on_unknown,
                                       .owner = follower,
                                       .replica = { .give_up = give_up,
                                                    .find = find,
                                                    .take_document = take_document,
                                                    .documents_end = on_documents_end,
                                                    .read_accounts = read_accounts,
                                                    .next = next,
                                                    .loaded = on_loaded,
                                                    .applied = on_applied,
                                                    .floor_moved = on_floor,
                                                    .answered = on_answered,
                                                    .owner = follower } };
}

struct follower *follower_create(struct loop *loop, const struct follower_options *options)
{
    struct follower *follower = mem_new(struct follower);
    follower->loop = loop;
    follower->options = *options;
    follower->settling.fn = settle_some;
    list_init(&follower->settling.link);
    follower->loaded.fn = report_loaded;
    list_init(&follower->loaded.link);
    engine_follow(options->engine);
    engine_on_drop(options->engine, on_drop, follower);
    follower->accounts = followed_accounts_create(loop, options->accounts, options->writer);
    options->store->on_history = on_history;
    options->store->history_owner = follower;
    struct following_options following = following_options_of(follower);
    follower->following = following_create(loop, &following);
    return follower;
}

void follower_end(struct follower *follower, const char *why)
{
    follower->ended = true;
    engine_on_drop(follower->options.engine, NULL, NULL);
    follower->options.store->on_history = NULL;
    stop(follower, why);
    if (follower->takes_lead && !follower->is_loaded)
        on_loaded(follower, ERR_DRAINING);
}

bool follower_may_end(const struct follower *follower)
{
    return !follower->is_renewing && list_empty(&follower->loaded.link) &&
           following_may_end(follower->following);
}

void follower_destroy(struct follower *follower)
{
    if (!follower)
        return;
    timers_clear(loop_timers(follower->loop), &follower->idle);
    timers_clear(loop_timers(follower->loop), &follower->again);
    following_destroy(follower->following);
    followed_accounts_destroy(follower->accounts);
    free(follower);
}
