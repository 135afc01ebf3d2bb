/* gateway.c - builds, connects and drains all parts of a gateway.
 *
 *   config ─► vault, store ─► engine ─► auth ─► api ─► server ─► leads ─► accounts ─► runs ─► ready
 *
 * No other file knows all parts. The server listens before anything is read or created: the
 * keys of a first start are printed once, with an address that must be ours. Until the runs
 * are in memory, every call but health gets 503; so does every call to a gateway that
 * stands by because another one leads. If another one takes the lead, everything is
 * destroyed, and serve.c starts the gateway again.
 *
 * Draining happens in the opposite order: refuse new requests, finish those in flight, ask
 * sockets to move, then destroy server, engine and store in reverse order of their
 * creation. If another gateway stands by, it gets the lead before sockets move. */
#include "server/gateway/gateway.h"

#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "accounts/account_writer.h"
#include "api/request/request_log.h"
#include "api/router/dispatch.h"
#include "api/router/services.h"
#include "api/schedules/schedule_sync.h"
#include "api/schedules/schedules.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "server/config/config_listen.h"
#include "server/config/config_tls.h"
#include "server/gateway/api_settings.h"
#include "server/gateway/command.h"
#include "server/gateway/connection_shares.h"
#include "server/gateway/data_directory.h"
#include "server/gateway/drain.h"
#include "server/gateway/listening.h"
#include "server/gateway/supervise_token.h"
#include "server/memory/load.h"
#include "server/memory/replication.h"
#include "server/operator/operating.h"
#include "server/upkeep/key_rotation.h"
#include "server/upkeep/retention.h"
#include "store/lead/leading.h"

enum {
    MOVED_MS = 500, /* for clients to read that another gateway leads */
    HAND_OVER_EVERY_MS = 2,
    DRAIN_EVERY_MS = 20,
};

enum phase { PHASE_STARTING, PHASE_READY, PHASE_DRAINING, PHASE_CLOSING };

struct gateway {
    const struct config *config;
    struct gateway_events events;
    struct loop *loop;
    struct vault *vault;
    struct store *store;
    struct leading *leading;
    /* As passed to the store. */
    char name[GATEWAY_NAME_MAX];
    char peer_url[PEER_URL_MAX];
    struct first_start first_start;
    struct ring *ring;
    struct accounts *accounts;
    struct account_writer *writer;
    struct engine *engine;
    struct schedules *schedules;
    struct auth *auth;
    struct api *api;
    struct request_log *request_log;
    struct certificates *certificates; /* NULL: no address speaks TLS */
    struct server *server;
    struct operating *operating;
    struct retain *retain;
    struct rotate *rotate;
    struct replication *replication; /* NULL: peer-listen is not set */
    struct gateway_urls urls;
    enum phase phase;
    bool loading; /* a load_* is in progress */
    /* It has followed a leader when it took the lead, and served clients. */
    bool was_following, has_served, knows_newest;
    struct load_accounts load_accounts;
    struct load_runs load_runs;
    struct timer timer; /* of the drain */
    uint32_t drain_kind, api_kind, close_kind;
    struct drain drain;
    struct failure reason;
};

static void on_drain_tick(struct timer *timer);
static void on_api_tick(struct timer *timer);
static void on_close_tick(struct timer *timer);

/* ---- start ---- */

static void stop_with(struct gateway *gateway, const struct failure *why)
{
    gateway->reason = *why;
    gateway_stop(gateway);
}

static void on_runs_loaded(struct load_runs *load, enum err status)
{
    struct gateway *gateway = container_of(load, struct gateway, load_runs);
    gateway->loading = false;
    if (gateway->phase == PHASE_CLOSING) {
        gateway_stop(gateway);
        return;
    }
    if (status) {
        stop_with(gateway, &load->why);
        return;
    }
    if ((status = api_start(gateway->api, &load->why))) {
        stop_with(gateway, &load->why);
        return;
    }
    schedule_sync_all(gateway->api);
    engine_sweep(gateway->engine);
    schedules_start(gateway->schedules);
    for (struct account *a = NULL; (a = accounts_next(gateway->accounts, a));)
        if (a->archived)
            api_retire_environment(gateway->api, a);
    gateway->retain =
        retain_create(gateway->api, gateway->accounts, gateway->config->retain_ms);
    if (gateway->phase != PHASE_STARTING)
        return;
    gateway->rotate = rotate_create(gateway->engine, gateway->accounts);
    operating_serve(gateway->operating, gateway->rotate, gateway->leading);
    gateway->phase = PHASE_READY;
    leading_loaded(gateway->leading);
    replication_lead(gateway->replication, gateway->retain);
    api_set_ready(gateway->api, NULL);
    api_end_doubt(gateway->api);
    server_accept(gateway->server);
    log_audit("start", "version", RUNCAST_VERSION, "data", gateway->config->data, "user",
              log_number(getuid()), NULL);
    log_info("ready", "url", gateway->urls.url, "listen", gateway->config->listen, NULL);
    first_start_print(&gateway->first_start);
    if (gateway->events.on_ready)
        gateway->events.on_ready(gateway->events.owner, gateway->urls.port);
}

static enum err listen_now(struct gateway *gateway, struct failure *why)
{
    const struct config *config = gateway->config;
    struct config_listener listeners[CONFIG_LISTENERS_MAX + 1];
    struct listen_options addresses[CONFIG_LISTENERS_MAX + 1];
    size_t count;
    struct server_options options = { .listeners = addresses,
                                      .handler = api_handler(),
                                      .owner = gateway->api,
                                      .certificates = gateway->certificates,
                                      .ring = gateway->ring,
                                      .trusted_proxies = config->trusted_proxies,
                                      .connections_max = (unsigned)config->connections,
                                      .connections_per_address =
                                          (unsigned)config->connections_per_address };
    enum err refused = config_listeners(config, listeners, &count, why);
    if (!refused)
        refused = config_admin_listener(config, &listeners[count], why);
    if (!refused)
        refused = config_listener_find(listeners, count + 1, why);
    if (refused)
        return refused;
    gateway_log_unused_sockets(listeners, count + 1);
    for (size_t i = 0; i <= count; i++)
        addresses[i] = config_listener_address(&listeners[i], i == count);
    options.listener_count = count + 1;
    refused = server_create(gateway->loop, &options, &gateway->server, why);
    if (refused)
        return refused;
    gateway_note_urls(config, gateway->server, listeners, count, &gateway->urls);
    if (!config_listener_is_local(&listeners[count]))
        log_warn("admin-listen is not a loopback address: anyone who can connect to it can "
                 "read the metrics",
                 "address", config->admin_listen, NULL);
    return OK;
}

/* An environment removed while runs are being loaded is retired after that. */
static void on_environment(void *owner, struct account *account)
{
    struct gateway *gateway = owner;
    bool is_there = engine_environment(gateway->engine, account->number);
    if (!account->archived && !is_there) {
        api_add_environment(gateway->api, account);
        replication_add(gateway->replication, account->number);
    } else if (account->archived && (gateway->retain || engine_follows(gateway->engine))) {
        api_retire_environment(gateway->api, account);
        retain_soon(gateway->retain);
    }
}

static const char *why_not(void *owner)
{
    const struct gateway *gateway = owner;
    const struct follower *follower = replication_follower(gateway->replication);
    const char *reason = leading_why_not(gateway->leading);
    return reason && follower && follower_left_ms(follower) > 0 ? NULL : reason;
}

static struct relay_pool *leader(void *owner)
{
    return replication_pool(((struct gateway *)owner)->replication);
}

static bool is_certain(void *owner)
{
    return !((struct gateway *)owner)->leading || !why_not(owner);
}

/* While this gateway stops, a question has no answer. */
static uint64_t ask(void *owner)
{
    struct follower *follower =
        replication_follower(((struct gateway *)owner)->replication);
    return follower ? follower_ask(follower) : UINT64_MAX;
}

static bool was_left(void *owner, uint32_t number)
{
    const struct follower *follower =
        replication_follower(((struct gateway *)owner)->replication);
    return follower && follower_was_left(follower, number);
}

/* ---- operators ---- */

static enum err send_command(void *owner, struct leader_command *command, struct slice line,
                             struct failure *why)
{
    return replication_command(((struct gateway *)owner)->replication, command, line, why);
}

static void reply(void *owner, struct source_follower *to, const struct repl_frame *frame)
{
    replication_reply(((struct gateway *)owner)->replication, to, frame);
}

static void list_gateways(void *owner, struct gateways_query *query)
{
    operating_list(((struct gateway *)owner)->operating, query);
}

static struct operating *create_operating(struct gateway *gateway)
{
    const struct operating_options options = { .commands = gateway->config->commands,
                                               .accounts = gateway->accounts,
                                               .writer = gateway->writer,
                                               .vault = gateway->vault,
                                               .name = gateway->name,
                                               .peer_url = gateway->peer_url,
                                               .url = gateway->urls.dashboard_url,
                                               .send = send_command,
                                               .reply = reply,
                                               .owner = gateway };
    return operating_create(gateway->loop, &options);
}

/* ---- the parts ---- */

static struct api_options api_options_of(const struct gateway *gateway)
{
    struct api_options options = { .dashboard_url = gateway->urls.dashboard_url,
                                   .own_url = gateway->urls.url,
                                   .certificates = gateway->certificates,
                                   .why_not = why_not,
                                   .leader = *gateway->config->peer_listen ? leader : NULL,
                                   .list_gateways = list_gateways,
                                   .writer = gateway->writer,
                                   .request_log = gateway->request_log,
                                   .owner = (void *)gateway };
    api_settings_copy(gateway->config, &options);
    return options;
}

/* Returns how many runs execute at once in dev: by default two per core, because one run
 * computes while another reads or writes. */
static uint32_t dev_concurrency(const struct config *config)
{
    int64_t limit = config->dev_concurrency;
    return limit ? (uint32_t)limit : 2 * uv_available_parallelism();
}

static void create_parts(struct gateway *gateway)
{
    const struct config *config = gateway->config;
    gateway->accounts = accounts_create(gateway->vault);
    gateway->writer =
        account_writer_create(gateway->loop, gateway->store, gateway->accounts);
    struct engine_options engine = { .lease_ms = config->lease_ms,
                                     .heartbeat_ms = config->heartbeat_ms,
                                     .cancel_ms = config->cancel_ms,
                                     .dev_ttl_ms = config->dev_ttl_ms,
                                     .queue_size = (uint32_t)config->queue_size,
                                     .concurrency = (uint32_t)config->env_concurrency,
                                     .dev_concurrency = dev_concurrency(config),
                                     .memory = (size_t)config->memory,
                                     .prices = config_prices(config),
                                     .is_certain = is_certain,
                                     .ask = ask,
                                     .was_left = was_left,
                                     .owner = gateway };
    gateway->operating = create_operating(gateway);
    gateway->request_log = request_log_create(
        gateway->loop, (enum request_log_mode)config_log_requests(config));
    struct api_options api = api_options_of(gateway);
    connection_shares_log(config->connections, &api);
    account_writer_on_environment(gateway->writer, on_environment, gateway);
    gateway->engine = engine_create(gateway->loop, gateway->store, &engine);
    gateway->schedules = schedules_create(gateway->engine);
    gateway->auth = auth_create(gateway->accounts);
    gateway->api = api_create(gateway->engine, gateway->schedules, gateway->auth,
                              gateway->accounts, &api);
}

static enum err listen_to_operators(struct gateway *gateway, struct failure *why)
{
    char *path = gateway_path(gateway->config, "admin.sock");
    enum err refused = operating_listen(gateway->operating, path, why);
    free(path);
    return refused;
}

static void on_accounts_loaded(struct load_accounts *load, enum err status)
{
    struct gateway *gateway = container_of(load, struct gateway, load_accounts);
    struct failure why = load->why;
    gateway->loading = false;
    if (gateway->phase == PHASE_CLOSING) {
        gateway_stop(gateway);
        return;
    }
    if (!status) {
        operating_lead(gateway->operating);
        status = listen_to_operators(gateway, &why);
    }
    if (!status && gateway->config->execute)
        status = supervise_token_serve(gateway->config, gateway->accounts, &why);
    if (status) {
        stop_with(gateway, &why);
        return;
    }
    gateway->loading = true;
    gateway->load_runs = (struct load_runs){ .engine = gateway->engine,
                                             .accounts = gateway->accounts,
                                             .api = gateway->api,
                                             .was_following = gateway->was_following,
                                             .all_is_there = gateway->has_served,
                                             .knows_newest = gateway->knows_newest,
                                             .done = on_runs_loaded };
    load_runs_begin(&gateway->load_runs);
}

/* ---- leading ---- */

/* Accounts and runs are as in the database: what only a gateway that decides needs is left. */
static void on_memory_loaded(void *owner, enum err status)
{
    struct gateway *gateway = owner;
    struct load_accounts *load = &gateway->load_accounts;
    *load =
        (struct load_accounts){ .store = gateway->store, .accounts = gateway->accounts };
    engine_stop_following(gateway->engine);
    if (status)
        explain(&load->why, status, "%s",
                status == ERR_MOVED ? "memory is of another history"
                                    : "cannot read the database");
    else
        status = load_accounts_settle(load);
    on_accounts_loaded(load, status);
}

static void on_taken(void *owner)
{
    struct gateway *gateway = owner;
    const struct follower *follower = replication_follower(gateway->replication);
    gateway->has_served = follower && follower_serves(follower);
    gateway->knows_newest = follower && follower_knows_newest(follower);
    api_stand_by(gateway->api, leading_why_not(gateway->leading));
    metrics[M_LEADS] = 1;
    gateway->loading = true;
    gateway->was_following = replication_take_lead(gateway->replication, gateway->leading);
    if (gateway->was_following)
        return;
    engine_stop_following(gateway->engine);
    gateway->load_accounts =
        (struct load_accounts){ .store = gateway->store,
                                .accounts = gateway->accounts,
                                .loop = gateway->loop,
                                .first =
                                    gateway->first_start.out ? &gateway->first_start : NULL,
                                .done = on_accounts_loaded };
    load_accounts_begin(&gateway->load_accounts);
}

/* Accepts connections on passed-in sockets. A gateway that stands by reports whether it is
 * ready. */
static void on_standby(void *owner)
{
    struct gateway *gateway = owner;
    struct failure why;
    server_accept(gateway->server);
    replication_stand_by(gateway->replication, gateway->leading);
    if (gateway->replication && listen_to_operators(gateway, &why))
        log_warn("cannot listen for subcommands", "reason", why.text, NULL);
    if (gateway->events.on_standby)
        gateway->events.on_standby(gateway->events.owner);
}

static void on_other_leads(void *owner)
{
    struct gateway *gateway = owner;
    api_refuse_early(gateway->api);
}

static void look_at_drain_in(struct gateway *gateway, int64_t ms)
{
    loop_set_timer(gateway->loop, &gateway->timer, gateway->drain_kind, ms);
}

static void begin_drain(struct gateway *gateway, int64_t timeout_ms)
{
    gateway->phase = PHASE_DRAINING;
    gateway->drain = (struct drain){ .loop = gateway->loop,
                                     .server = gateway->server,
                                     .api = gateway->api,
                                     .engine = gateway->engine,
                                     .leading = gateway->leading,
                                     .until = loop_now_ms(gateway->loop) + timeout_ms };
    look_at_drain_in(gateway, DRAIN_EVERY_MS);
}

/* Stops work that this process starts by itself: the store would refuse it from now on. */
static void stop_own_work(struct gateway *gateway)
{
    operating_serve(gateway->operating, NULL, NULL);
    engine_stop(gateway->engine);
    schedules_stop(gateway->schedules);
}

/* Sends clients to the leading gateway; responses that they do not read soon are cut. */
static void on_lost(void *owner, const char *reason, bool for_good)
{
    struct gateway *gateway = owner;
    bool is_planned = leading_has_passed(gateway->leading);
    struct failure why;
    explain(&why,
            for_good     ? ERR_CONFLICT
            : is_planned ? ERR_DRAINING
                         : ERR_MOVED,
            "%s", reason);
    replication_end(gateway->replication, reason);
    metrics[M_LEADS] = 0;
    if (gateway->phase == PHASE_READY) {
        gateway->reason = why;
        begin_drain(gateway, MOVED_MS);
        drain_to_leader(&gateway->drain);
        stop_own_work(gateway);
    } else if (gateway->phase != PHASE_CLOSING) {
        stop_with(gateway, &why);
    }
}

static void on_doubt(void *owner)
{
    struct gateway *gateway = owner;
    api_begin_doubt(gateway->api);
}

static void on_certain(void *owner)
{
    struct gateway *gateway = owner;
    api_end_doubt(gateway->api);
}

static void begin_to_lead(struct gateway *gateway)
{
    struct leading_options options = { .name = gateway->name,
                                       .beat_ms = gateway->config->beat_ms,
                                       .dead_ms = gateway->config->dead_after_ms,
                                       .on_standby = on_standby,
                                       .on_other_leads = on_other_leads,
                                       .on_taken = on_taken,
                                       .on_lost = on_lost,
                                       .on_doubt = on_doubt,
                                       .on_certain = on_certain,
                                       .owner = gateway };
    gateway->leading = leading_create(gateway->loop, gateway->store, &options);
    api_stand_by(gateway->api, leading_why_not(gateway->leading));
}

/* Starts again, as after a lost lead: the epoch of the store is read again, too. */
static void on_other_history(void *owner, const char *why)
{
    struct failure reason;
    explain(&reason, ERR_MOVED, "%s", why);
    stop_with(owner, &reason);
}

static enum err begin_replication(struct gateway *gateway, struct failure *why)
{
    struct replication_options options = { .config = gateway->config,
                                           .store = gateway->store,
                                           .vault = gateway->vault,
                                           .certificates = gateway->certificates,
                                           .engine = gateway->engine,
                                           .accounts = gateway->accounts,
                                           .writer = gateway->writer,
                                           .api = gateway->api,
                                           .operating = gateway->operating,
                                           .calls = api_handler(),
                                           .on_loaded = on_memory_loaded,
                                           .on_other_history = on_other_history,
                                           .owner = gateway };
    return replication_create(gateway->loop, &options, &gateway->replication, why);
}

static enum err open_data(struct gateway *gateway, struct uv_loop_s *uv,
                          struct failure *why)
{
    struct gateway_identity identity = { .name = gateway->name,
                                         .peer_url = gateway->peer_url };
    struct config_listener peer;
    enum err refused = config_peer_listener(gateway->config, &peer, why);
    if (!refused)
        refused = gateway_open_vault(gateway->config, &gateway->vault, why);
    if (refused)
        return refused;
    config_write_peer_url(gateway->config, &peer, gateway->peer_url);
    identity.vault = gateway->vault;
    gateway_name(gateway->config, gateway->name);
    refused = gateway_open_store(gateway->config, &identity, uv, &gateway->store, why);
    if (refused)
        vault_close(gateway->vault);
    return refused;
}

/* ---- start ---- */

/* Output that is not shown on a terminal is stored: in a log, in a journal. */
static bool prints_keys(const struct config *config, FILE *out)
{
    return out && (config->print_keys || isatty(fileno(out)));
}

enum err gateway_start(struct uv_loop_s *uv, const struct config *config,
                       const struct gateway_events *events, FILE *first_keys,
                       struct ring *ring, struct gateway **out, struct failure *why)
{
    struct gateway *gateway = mem_new(struct gateway);
    enum err refused;

    gateway->config = config;
    gateway->events = *events;
    gateway->first_start =
        (struct first_start){ .out = first_keys,
                              .prints_keys = prints_keys(config, first_keys),
                              .data = config->data,
                              .url = gateway->urls.url,
                              .dashboard_url = gateway->urls.dashboard_url };
    gateway->ring = ring;
    if ((refused = gateway_check_listen(config, why)) ||
        (refused = config_load_certificates(config, &gateway->certificates, why)) ||
        (refused = gateway_directory_open(config->data, true, why)) ||
        (refused = open_data(gateway, uv, why)))
        goto fail;

    gateway->loop = loop_create(uv);
    certificates_warn(gateway->certificates, loop_wall_ms(gateway->loop) / 1000);
    gateway->drain_kind = timers_kind(loop_timers(gateway->loop), on_drain_tick);
    gateway->api_kind = timers_kind(loop_timers(gateway->loop), on_api_tick);
    gateway->close_kind = timers_kind(loop_timers(gateway->loop), on_close_tick);
    create_parts(gateway);
    *out = gateway;
    if (listen_now(gateway, why) || begin_replication(gateway, why)) {
        stop_with(gateway, why);
        return OK;
    }
    begin_to_lead(gateway);
    return OK;

fail:
    certificates_unref(gateway->certificates);
    free(gateway);
    return refused;
}

void gateway_reload(struct gateway *gateway, struct certificates *certificates)
{
    if (gateway->phase == PHASE_CLOSING) {
        certificates_unref(certificates);
        return;
    }
    certificates_unref(gateway->certificates);
    gateway->certificates = certificates;
    certificates_warn(certificates, loop_wall_ms(gateway->loop) / 1000);
    server_show(gateway->server, certificates);
    replication_show(gateway->replication, certificates);
    struct api_options options = api_options_of(gateway);
    api_reload(gateway->api, &options);
    server_limit_connections(gateway->server, (unsigned)gateway->config->connections,
                             (unsigned)gateway->config->connections_per_address);
    request_log_set_mode(gateway->request_log,
                         (enum request_log_mode)config_log_requests(gateway->config));
    log_configure(config_log_level(gateway->config), config_log_format(gateway->config));
}

/* ---- stop ---- */

static void on_store_closed(struct store *store)
{
    struct gateway *gateway = store->owner;
    struct gateway_events events = gateway->events;
    struct failure reason = gateway->reason;
    first_start_finish(&gateway->first_start);
    leading_destroy(gateway->leading);
    rotate_destroy(gateway->rotate);
    schedules_destroy(gateway->schedules);
    engine_destroy(gateway->engine);
    account_writer_destroy(gateway->writer);
    accounts_destroy(gateway->accounts);
    vault_close(gateway->vault);
    request_log_destroy(gateway->request_log);
    certificates_unref(gateway->certificates);
    loop_destroy(gateway->loop);
    tag_list_forget_shared();
    bytes_forget_shared();
    free(gateway);
    if (!reason.code)
        log_info("stopped", NULL);
    log_audit("stop", "result", reason.code ? "failed" : "ok", NULL);
    events.on_stopped(events.owner, &reason);
}

static bool commands_are_idle(const struct gateway *gateway)
{
    return engine_idle(gateway->engine) && schedules_are_idle(gateway->schedules);
}

static void close_store(struct gateway *gateway);

static void on_replication_closed(void *owner)
{
    close_store(owner);
}

/* Closes the store when no part has a commit in flight or will begin one. */
static void close_store(struct gateway *gateway)
{
    bool idle = (!gateway->engine || commands_are_idle(gateway)) &&
                (!gateway->writer || account_writer_idle(gateway->writer));
    if (!idle || rotate_busy(gateway->rotate)) {
        loop_set_timer(gateway->loop, &gateway->timer, gateway->close_kind, 1);
        return;
    }
    if (gateway->replication) {
        replication_close(gateway->replication, on_replication_closed);
        gateway->replication = NULL;
        return;
    }
    log_decision("drain step", NULL, NULL, "no commit is in flight", "step",
                 "the store is closed", NULL);
    operating_destroy(gateway->operating);
    gateway->store->owner = gateway;
    gateway->store->ops->close(gateway->store, on_store_closed);
}

static void on_close_tick(struct timer *timer)
{
    close_store(container_of(timer, struct gateway, timer));
}

/* Waits for the end of operations that the parts have started by themselves. */
static void end_api(struct gateway *gateway)
{
    if (!api_may_end(gateway->api)) {
        loop_set_timer(gateway->loop, &gateway->timer, gateway->api_kind, 1);
        return;
    }
    api_destroy(gateway->api);
    auth_destroy(gateway->auth);
    close_store(gateway);
}

static void on_api_tick(struct timer *timer)
{
    end_api(container_of(timer, struct gateway, timer));
}

static void on_serving_closed(void *owner)
{
    end_api(owner);
}

static void on_server_closed(struct server *server)
{
    struct api *api = server_owner(server);
    struct gateway *gateway = api_options(api)->owner;
    log_decision("drain step", NULL, NULL, "every connection has ended", "step",
                 "the server is closed", NULL);
    if (gateway->replication)
        replication_stop_serving(gateway->replication, on_serving_closed);
    else
        end_api(gateway);
}

void gateway_stop(struct gateway *gateway)
{
    gateway->phase = PHASE_CLOSING;
    if (gateway->store && gateway->store->ops->limit_wait)
        gateway->store->ops->limit_wait(gateway->store);
    if (gateway->leading)
        leading_stop(gateway->leading);
    if (gateway->loading)
        return; /* called again when it ends */
    timers_clear(loop_timers(gateway->loop), &gateway->timer);
    replication_end(gateway->replication, "this gateway ends");
    retain_destroy(gateway->retain);
    gateway->retain = NULL;
    rotate_stop(gateway->rotate);
    if (gateway->engine)
        stop_own_work(gateway);
    if (!gateway->server) {
        end_api(gateway);
        return;
    }
    api_set_ready(gateway->api, "stopping");
    api_stop(gateway->api);
    server_close(gateway->server, on_server_closed);
}

static void on_left(void *owner)
{
    struct gateway *gateway = owner;
    if (gateway->phase != PHASE_DRAINING)
        return;
    stop_own_work(gateway);
    replication_end(gateway->replication, "the lead was handed over");
    metrics[M_LEADS] = 0;
    api_has_handed_over(gateway->api);
    drain_sockets(&gateway->drain);
    look_at_drain_in(gateway, DRAIN_EVERY_MS);
}

/* Also ends the retention, which would begin further writes. */
static bool writes_are_idle(struct gateway *gateway)
{
    bool purges = gateway->retain && !retain_stop(gateway->retain);
    return !purges && commands_are_idle(gateway) && account_writer_idle(gateway->writer) &&
           !rotate_busy(gateway->rotate);
}

static void on_drain_tick(struct timer *timer)
{
    struct gateway *gateway = container_of(timer, struct gateway, timer);
    int64_t left_ms = gateway->drain.until - loop_now_ms(gateway->loop);
    enum handover handover = drain_hand_over(&gateway->drain, writes_are_idle(gateway));
    if (handover == HANDOVER_DUE)
        leading_hand_over(gateway->leading, on_left);
    if (handover != HANDOVER_NONE) {
        look_at_drain_in(gateway, handover == HANDOVER_DUE ? left_ms : HAND_OVER_EVERY_MS);
        return;
    }
    bool quiet = drain_step(&gateway->drain) && commands_are_idle(gateway);
    if (!quiet && left_ms > 0) {
        look_at_drain_in(gateway, DRAIN_EVERY_MS);
        return;
    }
    log_decision("drain step", NULL, NULL,
                 quiet ? "no client is left" : "drain-timeout expired", "step",
                 "waiting ended", NULL);
    gateway_stop(gateway);
}

/* A gateway that follows has clients, and no lead to hand over. */
static bool serves_as_follower(const struct gateway *gateway)
{
    const struct follower *follower = replication_follower(gateway->replication);
    return gateway->phase == PHASE_STARTING && !gateway->loading && follower &&
           follower_serves(follower);
}

void gateway_drain(struct gateway *gateway)
{
    if (gateway->phase == PHASE_CLOSING)
        return; /* the lead was lost just before: it is already stopping */
    if (gateway->phase != PHASE_READY && !serves_as_follower(gateway)) {
        gateway_stop(gateway);
        return;
    }
    log_info("draining", NULL);
    begin_drain(gateway, gateway->config->drain_timeout_ms);
    if (drain_begin(&gateway->drain))
        look_at_drain_in(gateway, 0);
}
