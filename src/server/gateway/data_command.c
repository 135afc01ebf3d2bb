/* data_command.c - the subcommands backup, restore, db check, db stats and copy.
 *
 * They read and write files in this process, whether a gateway runs or not: a gateway may
 * have access only to its own folder. SIGINT, SIGTERM and SIGHUP stop a backup, restore or
 * copy cleanly. root may run backup, restore, check and stats on another user's data
 * directory. */
#include <inttypes.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/terminal.h"
#include "server/backup/backup.h"
#include "server/backup/copy.h"
#include "server/backup/db_check.h"
#include "server/backup/db_stats.h"
#include "server/backup/restore.h"
#include "server/config/config_value.h"
#include "server/gateway/command.h"
#include "server/gateway/data_directory.h"
#include "server/gateway/gateway.h"

static volatile sig_atomic_t stopped;

static void on_stop(int number)
{
    (void)number;
    stopped = 1;
}

static void watch_signals(void)
{
    static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
    struct sigaction before, action = { .sa_handler = on_stop, .sa_flags = SA_RESTART };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (!sigaction(numbers[i], NULL, &before) && before.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
}

/* Lowers the priority of this process: requests to the gateway are more urgent. */
static void give_way(void)
{
    enum { NICE = 10, IO_WHO_PROCESS = 1, IO_BEST_EFFORT = 2 << 13, IO_LOWEST = 7 };
    if (setpriority(PRIO_PROCESS, 0, NICE) ||
        syscall(SYS_ioprio_set, IO_WHO_PROCESS, 0, IO_BEST_EFFORT | IO_LOWEST))
        log_debug("cannot give way to the gateway", NULL);
}

/* root may work on data directories of other users. */
static enum err find_data(const struct config *config, struct failure *why)
{
    return geteuid() ? gateway_check_data(config, why) : gateway_find_data(config, why);
}

/* For all but copy, which is not only about the SQLite file, and during which no gateway
 * runs. */
static enum err prepare(const struct config *config, struct failure *why)
{
    enum err err = gateway_check_is_file(config, why);
    if (err)
        return err;
    give_way();
    prctl(PR_SET_DUMPABLE, 0); /* no secrets in core files */
    return OK;
}

/* For backup and restore, whose argument is a folder. */
static enum err prepare_folder(const struct config *config, struct failure *why)
{
    const char *folder = config->said.argument;
    if (!*folder || *folder == '-')
        return explain(why, ERR_USAGE, "\"%.60s\" is not a folder; use runcast %s DIR",
                       folder, config->command->words);
    enum err err = prepare(config, why);
    if (!err)
        watch_signals();
    return err;
}

static void print_size(uint64_t bytes, FILE *out)
{
    if (bytes < 10 << 20)
        fprintf(out, "%" PRIu64 " KiB", (bytes + 1023) >> 10);
    else
        fprintf(out, "%" PRIu64 " MiB", bytes >> 20);
}

/* ---- backup ---- */

static void tell_backup(const struct config *config, const struct backup_manifest *manifest,
                        FILE *out)
{
    char made[TIME_TEXT_LEN + 1];
    text_from_time(manifest->made_at, made);
    fprintf(out, "%s is a backup of %s as of %s: ", config->said.argument, config->data,
            made);
    print_size(backup_manifest_bytes(manifest), out);
    fprintf(out, ", %zu files\n", manifest->count);
    if (manifest->holds_key)
        fprintf(out, "It contains the encryption key: anyone who can read it can read "
                     "every secret.\n");
    else
        fprintf(out,
                "It does not contain the encryption key%s%s: keep a copy of the gateway's "
                "key elsewhere, because a restore needs it.\n",
                manifest->key[0] ? ", which is " : "", manifest->key);
}

enum err gateway_backup(const struct config *config, FILE *out, struct failure *why)
{
    struct backup_manifest manifest = { 0 };
    struct backup_options options = { .data = config->data,
                                      .target = config->said.argument,
                                      .key = config->encryption_key,
                                      .stopped = &stopped };
    enum err err = prepare_folder(config, why);
    if (!err)
        err = find_data(config, why);
    if (!err)
        err = backup_make(&options, &manifest, why);
    if (!err)
        tell_backup(config, &manifest, out);
    backup_manifest_finish(&manifest);
    return err;
}

/* ---- restore ---- */

/* A missing directory is accepted: it will be created. */
static enum err check_directory(const struct config *config, struct failure *why)
{
    enum err err = geteuid() ? gateway_directory_open(config->data, false, why) : OK;
    return err == ERR_NOT_FOUND ? OK : err;
}

enum err gateway_restore(const struct config *config, FILE *out, struct failure *why)
{
    struct backup_manifest manifest = { 0 };
    struct restore_options options = { .source = config->said.argument,
                                       .data = config->data,
                                       .key = config->encryption_key,
                                       .stopped = &stopped };
    char made[TIME_TEXT_LEN + 1];
    enum err err = prepare_folder(config, why);
    if (!err)
        err = check_directory(config, why);
    if (!err)
        err = restore_make(&options, &manifest, why);
    if (!err) {
        text_from_time(manifest.made_at, made);
        fprintf(out, "the data in %s are those of %s as of %s: ", config->data,
                config->said.argument, made);
        print_size(backup_manifest_bytes(&manifest), out);
        fprintf(out, ", %zu files; subscribers reload everything (epoch %s)\n",
                manifest.count, manifest.epoch);
    }
    backup_manifest_finish(&manifest);
    return err;
}

/* ---- db ---- */

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

struct findings {
    FILE *out;
    unsigned count;
};

static void on_found(void *owner, const char *text)
{
    struct findings *findings = owner;
    findings->count++;
    terminal_show(findings->out, slice_of(text));
    fputc('\n', findings->out);
}

enum err gateway_db_check(const struct config *config, FILE *out, struct failure *why)
{
    struct findings findings = { .out = out };
    struct db_check_options options = {
        .data = config->data, .now_ms = now_ms(), .found = on_found, .owner = &findings
    };
    struct failure unopened;
    enum err err = prepare(config, why);
    if (!err)
        err = find_data(config, why);
    if (err)
        return err;
    if (gateway_open_vault(config, &options.vault, &unopened)) {
        options.vault = NULL;
        on_found(&findings, unopened.text);
    }
    err = db_check(&options, why);
    vault_close(options.vault);
    if (err)
        return err;
    if (!findings.count)
        fprintf(out, "no damage was found in %s\n", config->data);
    else
        err = explain(why, ERR_INVALID, "%u %s in %s", findings.count,
                      findings.count == 1 ? "finding" : "findings", config->data);
    return err;
}

enum err gateway_db_stats(const struct config *config, FILE *out, struct failure *why)
{
    struct buf text = { 0 };
    struct db_stats_options options = { .data = config->data,
                                        .retain_ms = config->retain_ms,
                                        .now_ms = now_ms(),
                                        .as_json = said_option(&config->said, "--json") };
    enum err err = prepare(config, why);
    if (!err)
        err = find_data(config, why);
    if (!err)
        err = db_stats(&options, &text, why);
    if (!err)
        terminal_show(out, buf_slice(&text));
    buf_finish(&text);
    return err;
}

/* ---- copy ---- */

/* Returns the target, from --to or the setting database; NULL with why if it is missing. */
static const char *target_of(const struct config *config, struct failure *why)
{
    const char *given = said_option(&config->said, "--to");
    const char *target = given ? given : config->database;
    if (given && config_has_password(given)) {
        explain(why, ERR_USAGE,
                "--to: every user of this machine can read the password among the "
                "arguments; leave --to out, and set RUNCAST_DATABASE, or "
                "RUNCAST_DATABASE_FILE to the path of a file with the address");
        return NULL;
    }
    if (!*target) {
        explain(why, ERR_USAGE,
                "the target is missing; use runcast copy --to postgresql://user@host/name, "
                "or set RUNCAST_DATABASE if the address has a password");
        return NULL;
    }
    return target;
}

static void tell_copy(const struct config *config, const struct copied *copied, FILE *out)
{
    fprintf(out,
            "the data in %s are in the schema %s of the database, too: %" PRId64
            " runs, %" PRId64 " documents, %" PRId64 " files of deployments, ",
            config->data, config->database_schema, copied->rows.runs,
            copied->rows.documents, copied->rows.files);
    print_size((uint64_t)copied->rows.bytes, out);
    fprintf(out, "; their epoch is still %s\n", copied->epoch);
    if (copied->missing_files)
        fprintf(out,
                "Files of deployments that were missing and not copied: %zu; runcast db "
                "check, with no database in its settings, lists them.\n",
                copied->missing_files);
    if (*config->encryption_key)
        fprintf(out, "Give its gateways the encryption key that is set here, %s.\n",
                copied->key_id);
    else if (copied->key_is_found)
        fprintf(out,
                "Give its gateways the encryption key %s as RUNCAST_ENCRYPTION_KEY: it is "
                "in %s, but not in encryption.key.\n",
                copied->key_id, config->data);
    else
        fprintf(out,
                "Give its gateways the encryption key, %s: RUNCAST_ENCRYPTION_KEY_FILE=%s"
                "/encryption.key, or what is in that file as RUNCAST_ENCRYPTION_KEY.\n",
                copied->key_id, config->data);
}

enum err gateway_copy(const struct config *config, FILE *out, struct failure *why)
{
    struct copied copied = { 0 };
    struct copy_options options = { .data = config->data, .stopped = &stopped };
    options.target = (struct pg_options){ .schema = config->database_schema,
                                          .durability = config->commit_durability };
    options.target.database = target_of(config, why);
    if (!options.target.database)
        return why->code;
    watch_signals();
    prctl(PR_SET_DUMPABLE, 0); /* no secrets in core files */
    enum err err = gateway_check_data(config, why);
    if (!err)
        err = gateway_open_vault(config, &options.vault, why);
    if (err)
        return err;
    err = copy_make(&options, &copied, why);
    vault_close(options.vault);
    if (!err)
        tell_copy(config, &copied, out);
    return err;
}
