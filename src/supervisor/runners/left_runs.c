/* left_runs.c - the list of runs, a line each: RUN SNAPSHOT ATTEMPT MACHINE; attempt 0: not
 * started.
 *
 * MACHINE stands for two ids. A tool that clones a machine renews machine-id, or the
 * hypervisor gives the clone another product_uuid, which only root can read. Neither
 * changes at a reboot. Lines of earlier programs have no MACHINE, and are reported. */
#include "supervisor/runners/left_runs.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "base/vault/vault.h"

enum { LINES_MAX = 1000 }; /* more runs than a machine executes */

static const char list_name[] = "supervise.runs", unknown_machine[] = "-";

/* ---- the machine ---- */

static void add_file(struct buf *ids, const char *path)
{
    char text[128];
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = file >= 0 ? read(file, text, sizeof(text)) : -1;
    if (file >= 0)
        close(file);
    if (len > 0)
        buf_add(ids, (struct slice){ text, (size_t)len });
}

/* The ids are hashed, because machine-id must not be shown. */
static void name_machine(char machine[MACHINE_TEXT])
{
    unsigned char hash[HASH_LEN];
    struct buf ids = { 0 };
    add_file(&ids, "/etc/machine-id");
    add_file(&ids, "/sys/class/dmi/id/product_uuid");
    vault_hash(buf_slice(&ids), hash);
    if (ids.len)
        text_to_hex(hash, (MACHINE_TEXT - 1) / 2, machine);
    else
        memcpy(machine, unknown_machine, sizeof(unknown_machine));
    buf_finish(&ids);
}

static bool is_of_another(const struct left_runs *left, struct slice machine)
{
    return machine.len && !slice_is(machine, unknown_machine) &&
           strcmp(left->machine, unknown_machine) && !slice_is(machine, left->machine);
}

/* ---- the list ---- */

static void write_list(const struct left_runs *left)
{
    const struct runner_shared *shared = left->shared;
    struct buf text = { 0 };
    size_t at = 0;
    if (shared->unreported)
        return; /* the next role retries the reports that this one could not send */
    for (struct runner *runner; (runner = table_next(&shared->runners, &at));)
        if (runner->has_run && runner_end_of(&runner->facts) != RUNNER_END_NOTHING)
            buf_print(&text, "%s %s %" PRId64 " %s\n", runner->message.run,
                      runner->message.snapshot, runner->facts.attempt, left->machine);
    site_write_list(shared->site, list_name, buf_slice(&text));
    buf_finish(&text);
}

static void on_noted(struct deferred *noted)
{
    write_list(container_of(noted, struct left_runs, noted));
}

void left_runs_init(struct left_runs *left, struct runner_shared *shared)
{
    *left = (struct left_runs){ .shared = shared, .noted.fn = on_noted };
    name_machine(left->machine);
}

void left_runs_note(struct left_runs *left)
{
    loop_defer(left->shared->loop, &left->noted);
}

void left_runs_finish(struct left_runs *left)
{
    loop_cancel_deferred(&left->noted);
    write_list(left);
}

static bool read_id(struct slice *line, char id[MESSAGE_ID_MAX])
{
    struct slice word;
    slice_split(line, ' ', &word);
    if (!message_id_is_right(word))
        return false;
    snprintf(id, MESSAGE_ID_MAX, "%.*s", SLICE_ARG(word));
    return true;
}

static void report_line(const struct left_runs *left, struct slice line)
{
    struct run_message message = { 0 };
    struct slice attempt;
    if (!read_id(&line, message.run) || !read_id(&line, message.snapshot))
        return;
    slice_split(&line, ' ', &attempt);
    if (text_to_i64(attempt, &message.attempt) || message.attempt < 0)
        return;
    if (is_of_another(left, line)) {
        log_warn("ignoring a run in the list of another machine", "run", message.run,
                 "attempt", log_number(message.attempt), NULL);
        return;
    }
    log_warn("reporting a run of an earlier supervise role", "run", message.run, "attempt",
             log_number(message.attempt), NULL);
    runner_report_left(left->shared, &message);
}

void left_runs_report(const struct left_runs *left)
{
    struct buf text = { 0 };
    site_read_list(left->shared->site, list_name, &text);
    struct slice rest = buf_slice(&text), line;
    for (int i = 0; i < LINES_MAX && slice_split(&rest, '\n', &line); i++)
        if (line.len)
            report_line(left, line);
    buf_finish(&text);
}
