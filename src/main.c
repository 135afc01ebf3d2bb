/* main.c - arguments, signals, exit status.
 *
 *   0: served and drained, or the command did what it says   1: could not
 *   2: the settings or the words of the command are wrong
 *
 * The first SIGTERM or SIGINT drains, a second one ends at once. SIGHUP does as they do when
 * the gateway was started on a terminal, which is closed then; else nothing: there is
 * nothing to be read again. */
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <uv.h>

#include "base/log.h"
#include "gateway/config.h"
#include "gateway/config_help.h"
#include "runcast/gateway.h"

extern char **environ;

struct process {
    uv_loop_t loop;
    uv_signal_t term, interrupt, hangup;
    bool watches_hangup;
    struct gateway *gateway;
    bool draining;
    int status;
};

static void on_signal(uv_signal_t *handle, int number)
{
    struct process *process = handle->data;
    (void)number;
    if (process->draining)
        _Exit(1); /* said twice: at once */
    process->draining = true;
    gateway_drain(process->gateway);
}

static void watch(struct process *process, uv_signal_t *handle, int number)
{
    uv_signal_init(&process->loop, handle);
    handle->data = process;
    uv_signal_start(handle, on_signal, number);
}

/* Why there is no gateway: once, to whoever reads it. */
static void tell_end(const char *reason)
{
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "runcast: %s\n", reason);
    else
        log_error("stopped", "reason", reason, NULL);
}

static void watch_hangup(struct process *process)
{
    struct sigaction before;
    process->watches_hangup = (isatty(STDIN_FILENO) || isatty(STDERR_FILENO)) &&
                              !sigaction(SIGHUP, NULL, &before) &&
                              before.sa_handler != SIG_IGN; /* nohup */
    if (process->watches_hangup)
        watch(process, &process->hangup, SIGHUP);
    else
        signal(SIGHUP, SIG_IGN);
}

static void on_stopped(void *owner, const struct failure *reason)
{
    struct process *process = owner;
    if (reason->code) {
        tell_end(reason->text);
        process->status = 1;
    }
    uv_close((uv_handle_t *)&process->term, NULL);
    uv_close((uv_handle_t *)&process->interrupt, NULL);
    if (process->watches_hangup)
        uv_close((uv_handle_t *)&process->hangup, NULL);
}

/* What is larger is mapped by itself and grows without being copied: the arrays of a million
 * runs would take milliseconds of a turn. What comes and goes with large payloads is below,
 * in memory that was touched before: new pages cost more than copying. Left alone, malloc
 * changes its mind about both. */
static void keep_large_blocks_apart(void)
{
    mallopt(M_MMAP_THRESHOLD, 8 << 20);
    mallopt(M_TRIM_THRESHOLD, 32 << 20);
}

static int serve(const struct config *config)
{
    struct process process = { 0 };
    struct gateway_events events = { .on_stopped = on_stopped, .owner = &process };
    struct failure why = { 0 };

    keep_large_blocks_apart();
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_DUMPABLE, 0); /* no secrets in core files */
    if (uv_loop_init(&process.loop)) {
        fprintf(stderr, "runcast: cannot start an event loop\n");
        return 1;
    }
    if (gateway_start(&process.loop, config, &events, stdout, &process.gateway, &why)) {
        tell_end(why.text);
        uv_run(&process.loop, UV_RUN_DEFAULT);
        uv_loop_close(&process.loop);
        return 1;
    }
    watch(&process, &process.term, SIGTERM);
    watch(&process, &process.interrupt, SIGINT);
    watch_hangup(&process);
    uv_run(&process.loop, UV_RUN_DEFAULT);
    uv_loop_close(&process.loop);
    uv_library_shutdown();
    return process.status;
}

static void print(void (*fill)(const struct config *config, struct buf *out),
                  const struct config *config)
{
    struct buf text = { 0 };
    fill(config, &text);
    fwrite(text.ptr, 1, text.len, stdout);
    buf_finish(&text);
}

static void fill_help(const struct config *config, struct buf *out)
{
    config_print_help(config->topic, out);
}

/* The status of a command. */
static int tell(enum err refused, const struct failure *why)
{
    if (refused)
        fprintf(stderr, "runcast: %s\n", why->text);
    return refused == ERR_USAGE ? 2 : refused ? 1 : 0;
}

/* Each by itself is right, or there would be no config. */
static int check(const struct config *config)
{
    struct failure why = { 0 };
    if (gateway_check(config, &why)) {
        fprintf(stderr, "runcast: %s\n", why.text);
        return 2;
    }
    printf("runcast: the settings are fine\n");
    return 0;
}

static int run(const struct config *config)
{
    struct failure why = { 0 };
    switch (config->command) {
    case COMMAND_HELP: print(fill_help, config); return 0;
    case COMMAND_VERSION: printf("runcast %s\n", RUNCAST_VERSION); return 0;
    case COMMAND_CHECK_CONFIG: return check(config);
    case COMMAND_PRINT_CONFIG: print(config_print, config); return 0;
    case COMMAND_KEYS:
    case COMMAND_ACCOUNTS: return tell(gateway_command(config, stdout, &why), &why);
    case COMMAND_VAULT_ROTATE:
        return tell(gateway_rotate_vault(config, stdout, &why), &why);
    case COMMAND_RESTORED: return tell(gateway_restored(config, stdout, &why), &why);
    case COMMAND_VAULT: return 2;
    case COMMAND_SERVE: return serve(config);
    }
    return 1;
}

int main(int argc, char **argv)
{
    struct config config;
    struct failure why = { 0 };

    if (config_read(&config, argc, argv, environ, &why)) {
        fprintf(stderr, "runcast: %s\n", why.text);
        return 2;
    }
    log_configure(config_log_level(&config), config_log_format(&config));
    int status = run(&config);
    config_finish(&config);
    return status;
}
