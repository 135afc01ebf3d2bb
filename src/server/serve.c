/* serve.c - the process of a gateway: its loop, its signals, its supervise role.
 *
 * If another gateway has become leader of the database, the gateway is restarted in this
 * process: a confined process must not execute programs. Sockets that were passed in, and
 * metrics, stay.
 *
 * The first SIGTERM or SIGINT drains, the second one exits at once. SIGHUP does the same if
 * the gateway was started on a terminal, which is then being closed. Otherwise it reloads
 * the settings. */
#include "server/serve.h"

#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <uv.h>

#include "base/list.h"
#include "base/log.h"
#include "base/terminal.h"
#include "net/client/lookup.h"
#include "net/ring.h"
#include "os/process/service_manager.h"
#include "server/config/config.h"
#include "server/config/config_tls.h"
#include "server/gateway/confinement.h"
#include "server/gateway/gateway.h"
#include "server/role/execute.h"

extern char **environ;

enum { AGAIN_MS = 1000 }; /* pause between restarts while the database is unreachable */

struct service {
    uv_loop_t loop;
    uv_signal_t term, interrupt, hangup;
    uv_timer_t watchdog;
    uv_timer_t again; /* restarts the gateway */
    bool watches_hangup, reloads_when_ready;
    struct gateway *gateway; /* NULL: none at the moment */
    struct config *config;
    struct execute *execute; /* NULL: nothing is executed */
    struct ring *ring;       /* NULL: none */
    bool ready, draining, stopped;
    bool executed; /* the supervise role has exited */
    int status;
};

static void on_again(uv_timer_t *timer);
static void drain(struct service *service);

/* The role has finished its runs while the gateway still accepted their results: drain
 * now. */
static void on_executed(void *owner)
{
    struct service *service = owner;
    service->executed = true;
    if (service->stopped)
        execute_destroy(service->execute);
    else
        drain(service);
}

static void on_ready(void *owner, int port)
{
    struct service *service = owner;
    (void)port;
    service->ready = true;
    service_notify("READY=1\nSTATUS=serves, version " RUNCAST_VERSION);
    if (service->reloads_when_ready)
        raise(SIGHUP); /* it arrived while the runs were being loaded */
}

/* Reports READY, because a service manager need not wait until this gateway leads. */
static void on_standby(void *owner)
{
    (void)owner;
    service_notify("READY=1\nSTATUS=stands by, version " RUNCAST_VERSION);
}

/* The gateway has stopped. If it was never ready, stops the role that it has started;
 * otherwise the role keeps running, as if the gateway had been killed. */
static void let_go_of_role(struct service *service)
{
    service->stopped = true;
    if (!service->execute)
        return;
    if (service->executed || (service->ready && !service->draining))
        execute_destroy(service->execute);
    else if (!service->draining)
        execute_end(service->execute, EXECUTE_OWN, on_executed, service);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct service *service = handle->data;
    (void)number;
    if (service->draining)
        _Exit(1); /* the second signal: exit at once */
    service->draining = true;
    service_notify("STOPPING=1\nSTATUS=drains");
    if (service->execute)
        execute_end(service->execute, EXECUTE_ANY, on_executed, service);
    else
        drain(service);
}

/* Reads the settings again. Flags and variables are the same; the --config file and
 * certificate files may have changed. */
static enum err reload(struct service *service, struct failure *why)
{
    struct config fresh;
    struct certificates *certificates = NULL;
    const struct config *known = service->config;
    enum err refused =
        config_read(&fresh, known->commands, known->argc, known->argv, environ, why);
    if (refused)
        return refused;
    refused = config_load_certificates(&fresh, &certificates, why);
    if (!refused)
        refused = config_take(service->config, &fresh, why);
    if (refused)
        certificates_unref(certificates);
    else
        gateway_reload(service->gateway, certificates);
    config_finish(&fresh);
    return refused;
}

static void on_reload(uv_signal_t *handle, int number)
{
    struct service *service = handle->data;
    struct failure why = { 0 };
    (void)number;
    service->reloads_when_ready = !service->ready;
    if (service->draining || !service->ready)
        return;
    service_notify("RELOADING=1\nMONOTONIC_USEC=%llu",
                   (unsigned long long)(uv_hrtime() / 1000));
    enum err refused = reload(service, &why);
    if (refused)
        log_error("reload failed; settings unchanged", "reason", why.text, NULL);
    else
        log_audit("reload", "result", "ok", NULL);
    service_notify("READY=1\nSTATUS=%s%s", refused ? "not reloaded: " : "serves, reloaded",
                   refused ? why.text : "");
}

static void watch(struct service *service, uv_signal_t *handle, uv_signal_cb callback,
                  int number)
{
    uv_signal_init(&service->loop, handle);
    handle->data = service;
    uv_signal_start(handle, callback, number);
}

/* Reports once why there is no gateway: to the terminal or the log. */
static void log_end(const char *reason)
{
    if (isatty(STDERR_FILENO))
        terminal_print_failure(reason);
    else
        log_error("stopped", "reason", reason, NULL);
}

static void watch_hangup(struct service *service)
{
    struct sigaction before;
    bool is_on_terminal = isatty(STDIN_FILENO) || isatty(STDERR_FILENO);
    service->watches_hangup =
        !sigaction(SIGHUP, NULL, &before) && before.sa_handler != SIG_IGN; /* nohup */
    if (service->watches_hangup)
        watch(service, &service->hangup, is_on_terminal ? on_signal : on_reload, SIGHUP);
}

/* Notifies the service manager that the loop runs. If the loop hangs, the manager kills the
 * process. */
static void on_watchdog(uv_timer_t *timer)
{
    (void)timer;
    service_notify_alive();
}

static void watch_loop(struct service *service)
{
    uint64_t each = (uint64_t)service_watchdog_ms();
    uv_timer_init(&service->loop, &service->watchdog);
    if (each)
        uv_timer_start(&service->watchdog, on_watchdog, 0, each);
}

/* Ignores SIGHUP from here on: the default action would kill a process that is stopping
 * cleanly. */
static void end_hangup(struct service *service)
{
    if (service->watches_hangup)
        uv_close((uv_handle_t *)&service->hangup, NULL);
    signal(SIGHUP, SIG_IGN);
}

/* Closes all handles that keep the loop alive. */
static void end(struct service *service)
{
    uv_close((uv_handle_t *)&service->again, NULL);
    uv_close((uv_handle_t *)&service->watchdog, NULL);
    uv_close((uv_handle_t *)&service->term, NULL);
    uv_close((uv_handle_t *)&service->interrupt, NULL);
    end_hangup(service);
    let_go_of_role(service);
    uv_stop(&service->loop);
}

/* Another gateway leads: ERR_DRAINING as planned, ERR_MOVED otherwise. */
static bool must_start_again(const struct failure *reason)
{
    return reason->code == ERR_MOVED || reason->code == ERR_DRAINING;
}

static void start_again(struct service *service, const struct failure *reason)
{
    service->ready = false;
    if (reason->code == ERR_DRAINING)
        log_info("restarting", "reason", reason->text, NULL);
    else
        log_warn("lead lost; restarting", "reason", reason->text, NULL);
    uv_timer_start(&service->again, on_again, 0, 0);
}

static void on_stopped(void *owner, const struct failure *reason)
{
    struct service *service = owner;
    service->gateway = NULL;
    if (must_start_again(reason) && !service->draining) {
        start_again(service, reason);
        return;
    }
    if (reason->code && !must_start_again(reason)) {
        log_end(reason->text);
        service->status = 1;
    }
    end(service);
}

/* Blocks above M_MMAP_THRESHOLD are mapped by themselves and grow without being copied:
 * copying the arrays of a million runs would take milliseconds of a turn. Large payloads
 * are below it and reuse memory, because new pages cost more than copying. By default
 * malloc adapts both limits. */
static void keep_large_blocks_apart(void)
{
    mallopt(M_MMAP_THRESHOLD, 8 << 20);
    mallopt(M_TRIM_THRESHOLD, 32 << 20);
}

static enum err start(struct service *service, struct failure *why)
{
    struct gateway_events events = { .on_ready = on_ready,
                                     .on_standby = on_standby,
                                     .on_stopped = on_stopped,
                                     .owner = service };
    return gateway_start(&service->loop, service->config, &events, stdout, service->ring,
                         &service->gateway, why);
}

static void on_again(uv_timer_t *timer)
{
    struct service *service = container_of(timer, struct service, again);
    struct failure why = { 0 };
    enum err refused = start(service, &why);
    if (refused == ERR_STORE) {
        log_warn("cannot restart yet; retrying", "reason", why.text, NULL);
        uv_timer_start(timer, on_again, AGAIN_MS, 0);
    } else if (refused) {
        log_end(why.text);
        service->status = 1;
        end(service);
    }
}

static void drain(struct service *service)
{
    if (service->gateway)
        gateway_drain(service->gateway);
    else
        end(service);
}

/* Creates the ring before the sandbox begins, which forbids it. */
static struct ring *make_ring(const struct config *config)
{
    struct ring *ring = NULL;
    struct failure why;
    if (strcmp(config->io_uring, "auto") == 0 && ring_create(&ring, &why))
        log_info("io_uring is unavailable: each frame costs one system call; --io-uring "
                 "off silences this",
                 "reason", why.text, NULL);
    return ring;
}

int serve_run(struct config *config)
{
    struct service service = { .config = config };
    struct failure why = { 0 };

    keep_large_blocks_apart();
    service_keep_sockets();
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_DUMPABLE, 0); /* no secrets in core files */
    if (config->execute && execute_start(config, &service.execute, &why)) {
        log_end(why.text);
        return 2;
    }
    service.ring = make_ring(config);
    bool refused = confinement_begin(config, environ, &why); /* no thread runs yet */
    if (uv_loop_init(&service.loop)) {
        fprintf(stderr, "runcast: cannot start an event loop\n");
        return 1;
    }
    watch_hangup(&service);
    if (service.execute)
        execute_watch(service.execute, &service.loop);
    uv_timer_init(&service.loop, &service.again);
    if (refused || start(&service, &why)) {
        uv_close((uv_handle_t *)&service.again, NULL);
        log_end(why.text);
        end_hangup(&service);
        let_go_of_role(&service);
        uv_run(&service.loop, UV_RUN_DEFAULT);
        uv_loop_close(&service.loop);
        return 1;
    }
    watch(&service, &service.term, on_signal, SIGTERM);
    watch(&service, &service.interrupt, on_signal, SIGINT);
    watch_loop(&service);
    uv_run(&service.loop, UV_RUN_DEFAULT); /* until end() */
    lookup_run_others(&service.loop);
    uv_loop_close(&service.loop);
    ring_destroy(service.ring);
    lookup_shut_down(service.status);
    return service.status;
}
