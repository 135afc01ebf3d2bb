/* left_runs.c - the list of runs: RUN SNAPSHOT ATTEMPT, a line each; attempt 0: not
 * started. */
#include "supervisor/runners/left_runs.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"

enum { LINES_MAX = 1000 }; /* more runs than a machine executes */

static const char list_name[] = "supervise.runs";

static void write_list(const struct left_runs *left)
{
    const struct runner_shared *shared = left->shared;
    struct buf text = { 0 };
    size_t at = 0;
    if (shared->unreported)
        return; /* the next role tries what this one could not report */
    for (struct runner *runner; (runner = table_next(&shared->runners, &at));)
        if (runner->has_run && runner_end_of(&runner->facts) != RUNNER_END_NOTHING)
            buf_print(&text, "%s %s %" PRId64 "\n", runner->message.run,
                      runner->message.snapshot, runner->facts.attempt);
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

static void report_line(struct runner_shared *shared, struct slice line)
{
    struct run_message message = { 0 };
    if (!read_id(&line, message.run) || !read_id(&line, message.snapshot) ||
        text_to_i64(line, &message.attempt) || message.attempt < 0)
        return;
    log_warn("reporting a run of an earlier supervise role", "run", message.run, "attempt",
             log_number(message.attempt), NULL);
    runner_report_left(shared, &message);
}

void left_runs_report(const struct left_runs *left)
{
    struct buf text = { 0 };
    site_read_list(left->shared->site, list_name, &text);
    struct slice rest = buf_slice(&text), line;
    for (int i = 0; i < LINES_MAX && slice_split(&rest, '\n', &line); i++)
        if (line.len)
            report_line(left->shared, line);
    buf_finish(&text);
}
