/* command.c - carries out subcommands on accounts, in the gateway or, if none runs, here.
 *
 *   store ─► accounts ─► command ─► close the store
 *
 * The process that opens the store locks it, so the two cannot collide. */
#include "server/gateway/command.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "accounts/command_words.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/vault/secret.h"
#include "server/gateway/data_directory.h"
#include "server/gateway/gateway.h"
#include "server/gateway/health.h"
#include "server/memory/load.h"
#include "server/operator/admin_socket.h"
#include "store/sqlite/sqlite_store.h"

struct lone_command {
    struct load_accounts load;
    struct account_command command;
    struct loop *loop;
    struct store *store;
    struct failure why;
    char *text; /* the command's output; printed if it succeeds */
    size_t text_len;
};

/* ---- the data directory ---- */

enum err gateway_open_vault(const struct config *config, struct vault **vault,
                            struct failure *why)
{
    char *key_file = gateway_path(config, "encryption.key");
    enum err refused = vault_open(slice_of(config->encryption_key), key_file, vault, why);
    free(key_file);
    if (refused || !*config->next_encryption_key)
        return refused;
    refused = vault_offer(*vault, slice_of(config->next_encryption_key), why);
    if (refused)
        vault_close(*vault);
    return refused;
}

/* ---- without a gateway ---- */

static void on_closed(struct store *store)
{
    struct lone_command *lone = store->owner;
    loop_destroy(lone->loop);
}

static void end(struct lone_command *lone, const struct failure *why)
{
    if (why)
        lone->why = *why;
    lone->store->owner = lone;
    lone->store->ops->close(lone->store, on_closed);
}

static void on_done(struct account_command *command, enum err status)
{
    struct lone_command *lone = container_of(command, struct lone_command, command);
    end(lone, status ? &command->write.why : NULL);
}

static void on_loaded(struct load_accounts *load, enum err status)
{
    struct lone_command *lone = container_of(load, struct lone_command, load);
    if (status)
        end(lone, &load->why);
    else
        account_command_begin(&lone->command);
}

/* Carries out a change with the words in config. Blocks until everything is closed. */
static enum err run_alone(const struct config *config, command_fn *change,
                          struct vault *vault, FILE *out, struct failure *why)
{
    struct lone_command lone = {
        .command = { .change = change, .said = config->said, .done = on_done }
    };
    uv_loop_t uv;
    if (uv_loop_init(&uv))
        return explain(why, ERR_STORE, "cannot start an event loop");
    static const struct gateway_identity nobody; /* SQLite does not use the identity */
    enum err refused = gateway_open_store(config, &nobody, &uv, &lone.store, why);
    if (!refused) {
        struct accounts *accounts = accounts_create(vault);
        lone.loop = loop_create(&uv);
        lone.command.out = open_memstream(&lone.text, &lone.text_len);
        lone.command.accounts = accounts;
        lone.command.writer = account_writer_create(lone.loop, lone.store, accounts);
        lone.load = (struct load_accounts){ .store = lone.store,
                                            .accounts = accounts,
                                            .done = on_loaded };
        load_accounts_begin(&lone.load);
        uv_run(&uv, UV_RUN_DEFAULT);
        account_writer_destroy(lone.command.writer);
        accounts_destroy(accounts);
        refused = lone.why.code;
        fclose(lone.command.out);
        if (refused)
            *why = lone.why;
        else
            fwrite(lone.text, 1, lone.text_len, out);
        secret_wipe(lone.text, lone.text_len);
        free(lone.text);
    }
    uv_run(&uv, UV_RUN_DEFAULT);
    uv_loop_close(&uv);
    return refused;
}

static enum err ask_gateway(const struct config *config, FILE *out, struct failure *why)
{
    char *path = gateway_path(config, "admin.sock");
    struct buf line = { 0 };
    for (size_t i = 0; i < config->word_count; i++) {
        buf_add_char(&line, i ? ',' : '[');
        buf_add_json(&line, slice_of(config->words[i]));
    }
    buf_add_char(&line, ']');
    char *request = mem_text(buf_slice(&line));
    enum err refused = admin_ask(path, request, out, why);
    buf_finish(&line);
    free(request);
    free(path);
    return refused;
}

enum err gateway_find_data(const struct config *config, struct failure *why)
{
    struct stat found;
    char *path = gateway_path(config, "runcast.db");
    int problem = stat(path, &found) ? errno : 0;
    free(path);
    if (problem == ENOENT || problem == ENOTDIR)
        return explain(
            why, ERR_NOT_FOUND,
            "there is no runcast data in %s; name the data directory with --data, and a "
            "PostgreSQL with RUNCAST_DATABASE",
            config->data);
    if (problem)
        return explain(why, ERR_INVALID, "cannot look for runcast data in %s: %s",
                       config->data, strerror(problem));
    return OK;
}

enum err gateway_check_data(const struct config *config, struct failure *why)
{
    enum err refused = gateway_find_data(config, why);
    return refused ? refused : gateway_directory_open(config->data, false, why);
}

enum err gateway_check_is_file(const struct config *config, struct failure *why)
{
    if (!*config->database)
        return OK;
    return explain(why, ERR_INVALID,
                   "%s: not for PostgreSQL, which has its own tools; use pg_dump to back "
                   "up and pg_restore to restore",
                   config->origins[SETTING_database]);
}

static void run_quietly(const char *program, const char *argument)
{
    char *const argv[] = { (char *)program, (char *)argument, NULL };
    posix_spawn_file_actions_t quiet;
    pid_t child;
    posix_spawn_file_actions_init(&quiet);
    posix_spawn_file_actions_addopen(&quiet, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (!posix_spawnp(&child, argv[0], &quiet, NULL, argv, environ))
        waitpid(child, NULL, 0);
    posix_spawn_file_actions_destroy(&quiet);
}

/* Writes a page that redirects to the link, readable by its user only. */
static bool write_page(const char *path, const char *link)
{
    unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    if (!file)
        return false;
    fprintf(file,
            "<!doctype html><title>runcast</title>"
            "<meta http-equiv=\"refresh\" content=\"0; url=%s\">",
            link);
    return fclose(file) == 0;
}

/* On a desktop, opens the link after it was printed; failure is ignored. The link is not
 * passed as an argument, which every user on the machine could read. A file in the user's
 * runtime folder leads to it, and its code works only once. */
static void open_link(const char *link)
{
    char path[PATH_MAX];
    const char *folder = getenv("XDG_RUNTIME_DIR");
    if (!isatty(STDOUT_FILENO) || (!getenv("DISPLAY") && !getenv("WAYLAND_DISPLAY")) ||
        !folder || folder[0] != '/')
        return;
    int len = snprintf(path, sizeof(path), "%s/runcast-dashboard.html", folder);
    if (len < (int)sizeof(path) && write_page(path, link))
        run_quietly("xdg-open", path);
}

enum err gateway_dashboard(const struct config *config, FILE *out, struct failure *why)
{
    char *text = NULL;
    size_t len = 0;
    FILE *printed = open_memstream(&text, &len);
    enum err refused = gateway_command(config, printed, why);
    fclose(printed);
    if (!refused) {
        fwrite(text, 1, len, out);
        fflush(out);
        text[strcspn(text, "\n")] = '\0';
        open_link(text);
    }
    secret_wipe(text, len);
    free(text);
    return refused;
}

/* Returns true if the gateway of the data directory stands by: it responds, and its data are
 * elsewhere. */
static bool stands_by(const struct config *config)
{
    struct failure ignored;
    return gateway_find_data(config, &ignored) == ERR_NOT_FOUND && health_responds(config);
}

static enum err explain_standby(const struct config *config, struct failure *why)
{
    return explain(
        why, ERR_NOT_FOUND,
        "the gateway of %s does not lead; run this on the machine of the leading "
        "gateway, which its log names, or give all gateways a peer-listen",
        config->data);
}

/* The data of a gateway with PostgreSQL are elsewhere, so the command needs the gateway. */
static enum err explain_stopped(const struct config *config, struct failure *why)
{
    return explain(why, ERR_NOT_FOUND,
                   "there is no runcast data in %s, and no gateway serves it; start its "
                   "gateway, or name another data directory with --data",
                   config->data);
}

enum err gateway_command(const struct config *config, FILE *out, struct failure *why)
{
    struct vault *vault;
    enum err refused = ask_gateway(config, out, why);
    if (refused != ERR_NOT_FOUND)
        return refused;

    if (stands_by(config))
        return explain_standby(config, why);
    if (*config->database)
        return explain(why, ERR_NOT_FOUND,
                       "no gateway serves the data in %s; start it, or run this on the "
                       "machine of a running one",
                       config->data);
    if (gateway_find_data(config, why) == ERR_NOT_FOUND)
        return explain_stopped(config, why);
    if ((refused = gateway_check_data(config, why)) ||
        (refused = gateway_open_vault(config, &vault, why)))
        return refused;
    refused = run_alone(config, config->command->change, vault, out, why);
    vault_close(vault);
    return refused;
}

/* ---- key rotation ---- */

/* Sends a line that only a running gateway can carry out. without: what to do if none runs. */
static enum err ask_running(const struct config *config, const char *line,
                            const char *without, FILE *out, struct failure *why)
{
    char *path = gateway_path(config, "admin.sock");
    enum err refused = admin_ask(path, line, out, why);
    free(path);
    if (refused != ERR_NOT_FOUND)
        return refused;
    if (stands_by(config))
        return explain_standby(config, why);
    return explain(why, ERR_NOT_FOUND, "no gateway serves the data in %s; %s", config->data,
                   without);
}

enum err gateway_rotate_vault(const struct config *config, FILE *out, struct failure *why)
{
    char line[128];
    snprintf(line, sizeof(line), "vault rotate %s", config->next_encryption_key);
    enum err refused = ask_running(
        config, line, "start it first: a running gateway rotates its key", out, why);
    secret_wipe(line, sizeof(line));
    return refused;
}

/* ---- the gateways of a database ---- */

static const char with_data[] =
    "run this on the machine of a running gateway, with its --data or --config";

enum err gateway_pass_lead(const struct config *config, FILE *out, struct failure *why)
{
    char line[128];
    snprintf(line, sizeof(line), "lead %s", config->said.argument);
    return ask_running(config, line, with_data, out, why);
}

enum err gateway_list_all(const struct config *config, FILE *out, struct failure *why)
{
    const char *line = said_option(&config->said, "--json") ? "gateways json" : "gateways";
    return ask_running(config, line, with_data, out, why);
}

/* ---- a database that was copied back ---- */

/* Checks that the key opens the database, which a start needs. Listing organizations opens
 * everything; the output is discarded. */
static enum err check_key(const struct config *config, struct failure *why)
{
    struct vault *vault;
    FILE *nowhere = fopen("/dev/null", "we");
    enum err refused = nowhere ? gateway_open_vault(config, &vault, why)
                               : explain(why, ERR_STORE, "cannot open /dev/null");
    if (!refused) {
        refused = run_alone(config, command_list_organizations, vault, nowhere, why);
        vault_close(vault);
    }
    if (nowhere)
        fclose(nowhere);
    return refused;
}

enum err gateway_restored(const struct config *config, FILE *out, struct failure *why)
{
    char epoch[17];
    enum err refused = gateway_check_is_file(config, why);
    if (!refused)
        refused = gateway_check_data(config, why);
    if (!refused)
        refused = check_key(config, why);
    if (refused)
        return refused;
    char *path = gateway_path(config, "runcast.db");
    refused = sqlite_store_renew_epoch(path, epoch, why);
    free(path);
    if (!refused)
        fprintf(out, "subscribers reload everything in %s (epoch %s)\n", config->data,
                epoch);
    return refused;
}
