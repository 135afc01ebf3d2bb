/* replication.c - connects followers, the leader, and the parts of the gateway whose changes
 * are replicated. */
#include "server/memory/replication.h"

#include <string.h>

#include "api/router/services.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "core/replication/comparison.h"
#include "server/config/config_listen.h"
#include "server/memory/account_comparison.h"
#include "server/operator/operating.h"
#include "server/peers/serving.h"
#include "server/upkeep/retention.h"

enum { FINISH_MS = 5 }; /* between looks at whether reads have ended */

struct replication {
    struct loop *loop;
    struct replication_options options;
    struct leading *leading;     /* NULL: it neither stands by nor leads */
    struct trust *trust;         /* NULL: no leader speaks TLS */
    struct serving *serving;     /* NULL: it was closed */
    struct follower *follower;   /* NULL: it does not follow, or no longer */
    struct forwarder *forwarder; /* NULL: it was closed */
    struct timer finish;         /* waits until the follower can be freed */
    struct account_comparison account_comparison;
    struct comparison comparison; /* after it */
    bool compares; /* this gateway has taken the lead with the memory of a follower */
    void (*stopped)(void *owner); /* of replication_stop_serving */
    void (*closed)(void *owner);
};

static void on_finish(struct timer *timer);

/* ---- the end ---- */

static void finish_soon(struct replication *replication)
{
    struct timers *timers = loop_timers(replication->loop);
    timers_clear(timers, &replication->finish);
    loop_set_timer(replication->loop, &replication->finish, timers_kind(timers, on_finish),
                   FINISH_MS);
}

static void maybe_closed(struct replication *replication)
{
    if (!replication->closed || replication->serving || replication->follower ||
        replication->forwarder)
        return;
    if (!comparison_is_idle(&replication->comparison) ||
        !account_comparison_is_idle(&replication->account_comparison)) {
        finish_soon(replication);
        return;
    }
    timers_clear(loop_timers(replication->loop), &replication->finish);
    void (*closed)(void *owner) = replication->closed;
    void *owner = replication->options.owner;
    trust_destroy(replication->trust);
    free(replication);
    closed(owner);
}

/* Frees the follower once its reads have ended. */
static void finish_following(struct replication *replication)
{
    if (replication->follower && !follower_may_end(replication->follower)) {
        finish_soon(replication);
        return;
    }
    follower_destroy(replication->follower);
    replication->follower = NULL;
    maybe_closed(replication);
}

static void on_finish(struct timer *timer)
{
    finish_following(container_of(timer, struct replication, finish));
}

static void end_following(struct replication *replication, const char *why)
{
    if (!replication->follower)
        return;
    follower_end(replication->follower, why);
    finish_following(replication);
}

static void on_serving_closed(void *owner)
{
    struct replication *replication = owner;
    void (*stopped)(void *owner) = replication->stopped;
    replication->serving = NULL;
    replication->stopped = NULL;
    if (stopped)
        stopped(replication->options.owner);
    else
        maybe_closed(replication);
}

void replication_stop_serving(struct replication *replication, void (*closed)(void *owner))
{
    replication->stopped = closed;
    serving_close(replication->serving);
}

static void on_forwarder_closed(void *owner)
{
    struct replication *replication = owner;
    replication->forwarder = NULL;
    maybe_closed(replication);
}

void replication_end(struct replication *replication, const char *why)
{
    if (!replication)
        return;
    engine_on_change(replication->options.engine, NULL, NULL);
    engine_on_drop(replication->options.engine, NULL, NULL);
    account_writer_on_change(replication->options.writer, NULL, NULL);
    operating_follow(replication->options.operating, NULL);
    if (replication->serving)
        serving_end(replication->serving, why);
    account_comparison_stop(&replication->account_comparison);
    comparison_stop(&replication->comparison);
    end_following(replication, why);
}

void replication_close(struct replication *replication, void (*closed)(void *owner))
{
    replication_end(replication, "this gateway ends");
    replication->closed = closed;
    if (replication->serving)
        serving_close(replication->serving);
    forwarder_close(replication->forwarder, on_forwarder_closed, replication);
}

/* ---- following ---- */

static void report_no_peer_listen(const struct leading *leading)
{
    const struct store_gateway *leader = leading_leader(leading);
    if (leader && leader->peer_url[0])
        log_warn("cannot follow the leader", "leader", leader->name, "url",
                 leader->peer_url, "reason",
                 "this gateway has no peer-listen; set it here, too", NULL);
}

static void on_silent(void *owner)
{
    struct replication *replication = owner;
    forwarder_renew(replication->forwarder);
    api_leave_leader(replication->options.api);
}

void replication_stand_by(struct replication *replication, struct leading *leading)
{
    if (!replication) {
        report_no_peer_listen(leading);
        return;
    }
    const struct replication_options *options = &replication->options;
    replication->leading = leading;
    struct follower_options follower = { .store = options->store,
                                         .vault = options->vault,
                                         .trust = replication->trust,
                                         .leading = leading,
                                         .engine = options->engine,
                                         .accounts = options->accounts,
                                         .writer = options->writer,
                                         .api = options->api,
                                         .on_other_history = options->on_other_history,
                                         .on_loaded = options->on_loaded,
                                         .owner = options->owner,
                                         .on_silent = on_silent,
                                         .silent_owner = replication };
    replication->follower = follower_create(replication->loop, &follower);
}

struct follower *replication_follower(const struct replication *replication)
{
    return replication ? replication->follower : NULL;
}

enum err replication_command(struct replication *replication,
                             struct leader_command *command, struct slice line,
                             struct failure *why)
{
    if (replication && replication->follower)
        return follower_command(replication->follower, command, line, why);
    return explain(why, ERR_DRAINING, "the gateway is not ready; try again");
}

/* ---- calls for the leader ---- */

static uint64_t me(void *owner)
{
    return leading_me(((struct replication *)owner)->leading);
}

static const struct store_gateway *leader(void *owner)
{
    return leading_leader(((struct replication *)owner)->leading);
}

static void create_forwarder(struct replication *replication)
{
    const struct forwarder_options options = { .vault = replication->options.vault,
                                               .trust = replication->trust,
                                               .me = me,
                                               .leader = leader,
                                               .owner = replication };
    replication->forwarder = forwarder_create(replication->loop, &options);
}

struct relay_pool *replication_pool(const struct replication *replication)
{
    bool is_known = replication && replication->leading && replication->forwarder;
    return is_known ? forwarder_pool(replication->forwarder) : NULL;
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
    return leading_grant_ms(((struct replication *)owner)->leading);
}

static void on_take(void *owner, struct source_follower *from,
                    const struct repl_frame *frame)
{
    operating_take(((struct replication *)owner)->options.operating, from, frame);
}

static void on_left(void *owner, struct source_follower *follower)
{
    operating_leave(((struct replication *)owner)->options.operating, follower);
}

void replication_reply(struct replication *replication, struct source_follower *to,
                       const struct repl_frame *frame)
{
    serving_send(replication->serving, to, frame);
}

/* The next start reads everything from the database. */
static void on_difference(void *owner)
{
    leading_give_up(((struct replication *)owner)->leading,
                    "memory differs from the database");
}

static void on_accounts_compared(void *owner, bool differs)
{
    if (differs)
        on_difference(owner);
    else
        comparison_begin(&((struct replication *)owner)->comparison);
}

static void init_comparison(struct replication *replication)
{
    const struct replication_options *options = &replication->options;
    const struct account_comparison_options accounts = { .store = options->store,
                                                         .accounts = options->accounts,
                                                         .writer = options->writer,
                                                         .done = on_accounts_compared,
                                                         .owner = replication };
    const struct comparison_options comparison = { .next = next_environment,
                                                   .differs = on_difference,
                                                   .owner = replication };
    account_comparison_init(&replication->account_comparison, replication->loop, &accounts);
    comparison_init(&replication->comparison, replication->loop, options->store,
                    &comparison);
}

bool replication_take_lead(struct replication *replication, struct leading *leading)
{
    if (!replication)
        return false;
    replication->leading = leading;
    bool has_memory = replication->follower && !follower_is_empty(replication->follower);
    replication->compares = has_memory;
    if (has_memory)
        follower_take_lead(replication->follower);
    else
        end_following(replication, "this gateway takes the lead");
    return has_memory;
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
                                     .take = on_take,
                                     .left = on_left,
                                     .owner = replication };
    memcpy(source.head.epoch, store->epoch, sizeof(source.head.epoch));
    end_following(replication, "this gateway leads");
    serving_begin(replication->serving, &source);
    operating_follow(options->operating, serving_source(replication->serving));
    engine_on_change(options->engine, on_change, replication);
    engine_on_drop(options->engine, on_drop, replication);
    account_writer_on_change(options->writer, on_account_change, replication);
    retain_on_purged(retain, on_purged, replication);
    if (replication->compares)
        account_comparison_begin(&replication->account_comparison);
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
                                       .owner = replication,
                                       .calls = replication->options.calls,
                                       .calls_owner = replication->options.api };
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
    create_forwarder(replication);
    init_comparison(replication);
    warn_public(options->config, &listener);
    metrics[M_PEER_LISTEN] = 1;
    *out = replication;
    return OK;
}

void replication_show(struct replication *replication, struct certificates *certificates)
{
    if (replication)
        serving_show(replication->serving, certificates);
}
