/* replication.c - connects followers, the leader, and the parts of the gateway whose changes
 * are replicated. */
#include "server/gateway/replication.h"

#include <string.h>
#include <uv.h>

#include "base/log.h"
#include "base/mem.h"
#include "server/config/config_listen.h"
#include "server/gateway/followed_memory.h"
#include "server/gateway/retention.h"
#include "server/peers/following.h"
#include "server/peers/serving.h"

enum {
    FINISH_MS = 5, /* between looks at whether reads have ended */
    HISTORY_MS =
        5 * 1000, /* before a restart; the older history may be that of the leader */
};

struct replication {
    struct loop *loop;
    struct replication_options options;
    const struct leading *leading; /* NULL: it has not begun to stand by */
    struct trust *trust;           /* NULL: no leader speaks TLS */
    struct serving *serving;       /* NULL: it was closed */
    struct following *following;   /* NULL: it does not follow, or no longer */
    struct followed_memory *memory;
    struct timer finish; /* waits until following and memory can be freed */
    struct timer history;
    char why[128]; /* of history */
    void (*closed)(void *owner);
};

static void on_finish(struct timer *timer);
static void on_history(struct timer *timer);

static void set_timer(struct replication *replication, struct timer *timer,
                      void (*fn)(struct timer *timer), int64_t ms)
{
    uint32_t kind = timers_kind(loop_timers(replication->loop), fn);
    loop_set_timer(replication->loop, timer, kind, ms);
}

/* ---- the end ---- */

static void maybe_closed(struct replication *replication)
{
    if (!replication->closed || replication->serving || replication->following ||
        replication->memory)
        return;
    timers_clear(loop_timers(replication->loop), &replication->finish);
    timers_clear(loop_timers(replication->loop), &replication->history);
    void (*closed)(void *owner) = replication->closed;
    void *owner = replication->options.owner;
    trust_destroy(replication->trust);
    free(replication);
    closed(owner);
}

static void on_dropped(void *owner)
{
    struct replication *replication = owner;
    replication->memory = NULL;
    maybe_closed(replication);
}

/* Frees what this gateway followed once its reads have ended. */
static void finish_following(struct replication *replication)
{
    if (!replication->following)
        return;
    if (!following_may_end(replication->following)) {
        set_timer(replication, &replication->finish, on_finish, FINISH_MS);
        return;
    }
    following_destroy(replication->following);
    replication->following = NULL;
    followed_memory_drop(replication->memory, on_dropped);
}

static void on_finish(struct timer *timer)
{
    finish_following(container_of(timer, struct replication, finish));
}

static void end_following(struct replication *replication, const char *why)
{
    timers_clear(loop_timers(replication->loop), &replication->history);
    if (!replication->following)
        return;
    following_end(replication->following, why);
    finish_following(replication);
}

static void on_serving_closed(void *owner)
{
    struct replication *replication = owner;
    replication->serving = NULL;
    maybe_closed(replication);
}

void replication_end(struct replication *replication, const char *why)
{
    if (!replication)
        return;
    engine_on_change(replication->options.engine, NULL, NULL);
    engine_on_drop(replication->options.engine, NULL, NULL);
    account_writer_on_change(replication->options.writer, NULL, NULL);
    serving_end(replication->serving, why);
    end_following(replication, why);
}

void replication_close(struct replication *replication, void (*closed)(void *owner))
{
    replication_end(replication, "this gateway ends");
    replication->closed = closed;
    serving_close(replication->serving);
}

/* ---- following ---- */

static uint64_t me(void *owner)
{
    return leading_me(((struct replication *)owner)->leading);
}

static const struct store_gateway *leader(void *owner)
{
    return leading_leader(((struct replication *)owner)->leading);
}

static struct environment *find(void *owner, uint32_t number)
{
    return followed_memory_find(((struct replication *)owner)->memory, number);
}

static enum err take_document(void *owner, const struct document *document,
                              struct failure *why)
{
    return followed_memory_take(((struct replication *)owner)->memory, document, why);
}

static void read_accounts(void *owner)
{
    followed_memory_read(((struct replication *)owner)->memory);
}

static void on_read(void *owner, enum err status)
{
    struct replication *replication = owner;
    replica_accounts_read(following_replica(replication->following), status);
}

static bool was_left(void *owner, uint32_t number)
{
    const struct replication *replication = owner;
    return replica_was_left(following_replica(replication->following), number);
}

static void forget(void *owner, uint32_t number)
{
    replica_forget(following_replica(((struct replication *)owner)->following), number);
}

static void applied(void *owner, struct environment *env)
{
    followed_memory_trim(((struct replication *)owner)->memory, env);
}

static void on_history(struct timer *timer)
{
    struct replication *replication = container_of(timer, struct replication, history);
    replication->options.on_other_history(replication->options.owner, replication->why);
}

static void give_up(void *owner, const char *why)
{
    struct replication *replication = owner;
    snprintf(replication->why, sizeof(replication->why), "%s", why);
    following_end(replication->following, why);
    set_timer(replication, &replication->history, on_history, HISTORY_MS);
}

static void create_memory(struct replication *replication)
{
    const struct config *config = replication->options.config;
    int64_t dev = config->dev_concurrency;
    struct followed_memory_options options = {
        .store = replication->options.store,
        .budget = (size_t)config->memory,
        .concurrency = (uint32_t)config->env_concurrency,
        .dev_concurrency = dev ? (uint32_t)dev : 2 * uv_available_parallelism(),
        .on_read = on_read,
        .was_left = was_left,
        .forget = forget,
        .owner = replication
    };
    replication->memory = followed_memory_create(replication->loop, &options);
}

void replication_stand_by(struct replication *replication, struct leading *leading)
{
    if (!replication)
        return;
    replication->leading = leading;
    create_memory(replication);
    struct following_options options = { .store = replication->options.store,
                                         .vault = replication->options.vault,
                                         .trust = replication->trust,
                                         .me = me,
                                         .leader = leader,
                                         .owner = replication,
                                         .replica = { .give_up = give_up,
                                                      .find = find,
                                                      .take_document = take_document,
                                                      .read_accounts = read_accounts,
                                                      .applied = applied } };
    replication->following = following_create(replication->loop, &options);
}

/* ---- leading ---- */

static void on_change(void *owner, const struct run *before, const struct change *change)
{
    source_apply(serving_source(((struct replication *)owner)->serving), before, change);
}

static void on_account_change(void *owner, const struct change *change)
{
    on_change(owner, NULL, change);
}

static void on_drop(void *owner, uint32_t number)
{
    source_drop(serving_source(((struct replication *)owner)->serving), number);
}

static void on_purged(void *owner, const struct store_position *position)
{
    source_floor(serving_source(((struct replication *)owner)->serving), position);
}

static struct environment *next_environment(void *owner, uint32_t *at)
{
    return engine_next_environment(((struct replication *)owner)->options.engine, at);
}

static int64_t left_ms(void *owner)
{
    return leading_left_ms(((struct replication *)owner)->leading);
}

void replication_take_lead(struct replication *replication, const struct leading *leading)
{
    if (!replication)
        return;
    replication->leading = leading;
    end_following(replication, "this gateway takes the lead");
}

void replication_lead(struct replication *replication, struct retain *retain)
{
    if (!replication)
        return;
    const struct replication_options *options = &replication->options;
    struct store *store = options->store;
    struct source_options source = { .head.term = store->term,
                                     .gateway = leading_me(replication->leading),
                                     .accounts_seq =
                                         store->ops->position(store, ENV_INSTALLATION).seq,
                                     .next = next_environment,
                                     .left_ms = left_ms,
                                     .owner = replication };
    memcpy(source.head.epoch, store->epoch, sizeof(source.head.epoch));
    serving_begin(replication->serving, &source);
    engine_on_change(options->engine, on_change, replication);
    engine_on_drop(options->engine, on_drop, replication);
    account_writer_on_change(options->writer, on_account_change, replication);
    retain_on_purged(retain, on_purged, replication);
}

void replication_add(struct replication *replication, uint32_t number)
{
    struct source *source = replication ? serving_source(replication->serving) : NULL;
    struct environment *env =
        source ? engine_environment(replication->options.engine, number) : NULL;
    if (env)
        source_add(source, env);
}

/* ---- making ---- */

/* The leader's certificate must be valid for the host in its peer-url. */
static enum err load_trust(struct replication *replication,
                           const struct config_listener *listener, struct failure *why)
{
    const struct config *config = replication->options.config;
    if (!listener->secure && strncmp(config->peer_url, "https:", 6) != 0)
        return OK;
    return trust_create(*config->ca_file ? config->ca_file : NULL, &replication->trust,
                        why);
}

static enum err listen_for_peers(struct replication *replication,
                                 const struct config_listener *listener,
                                 struct failure *why)
{
    struct listen_options address = config_listener_address(listener, false);
    address.setting = "peer-listen";
    address.has_one_port = true;
    struct serving_options options = { .address = &address,
                                       .certificates = replication->options.certificates,
                                       .vault = replication->options.vault,
                                       .closed = on_serving_closed,
                                       .owner = replication };
    return serving_create(replication->loop, &options, &replication->serving, why);
}

static void warn_public(const struct config *config, const struct config_listener *listener)
{
    if (!listener->secure && config_listener_is_public(listener))
        log_warn("peer-listen is not an address of a private network: anyone in between "
                 "can read the changes; use a private one, or append ,tls",
                 "address", config->peer_listen, NULL);
}

enum err replication_create(struct loop *loop, const struct replication_options *options,
                            struct replication **out, struct failure *why)
{
    struct config_listener listener;
    enum err refused = config_peer_listener(options->config, &listener, why);
    *out = NULL;
    if (refused || !listener.host[0])
        return refused;
    struct replication *replication = mem_new(struct replication);
    replication->loop = loop;
    replication->options = *options;
    refused = load_trust(replication, &listener, why);
    if (!refused)
        refused = listen_for_peers(replication, &listener, why);
    if (refused) {
        trust_destroy(replication->trust);
        free(replication);
        return refused;
    }
    warn_public(options->config, &listener);
    *out = replication;
    return OK;
}

void replication_show(struct replication *replication, struct certificates *certificates)
{
    if (replication)
        serving_show(replication->serving, certificates);
}
