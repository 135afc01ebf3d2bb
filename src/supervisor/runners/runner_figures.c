/* runner_figures.c - formats the metrics of runners. */
#include "supervisor/runners/runner_figures.h"

#include "net/address.h"

static const char *const causes[RUNNER_CAUSES] = {
    [RUNNER_CAUSE_DONE] = "done",     [RUNNER_CAUSE_EXIT] = "exit",
    [RUNNER_CAUSE_SIGNAL] = "signal", [RUNNER_CAUSE_MEMORY] = "memory",
    [RUNNER_CAUSE_KILLED] = "killed", [RUNNER_CAUSE_NOT_STARTED] = "not_started",
};

static void runner_figures_refuse(struct exchange *x, int status, struct slice text)
{
    http_reply(x, status, SLICE("content-type: text/plain; charset=utf-8\r\n"), text);
}

bool runner_figures_are_asked_for(struct exchange *x)
{
    bool asked = x->method == HTTP_GET_ && slice_is(x->path, "/metrics");
    bool by_address = address_is_of_host(http_header(x, "host"));
    if (!asked)
        runner_figures_refuse(x, 404, SLICE("Not found: only /metrics is served here\n"));
    else if (!by_address)
        runner_figures_refuse(x, 403,
                              SLICE("Invalid Host: use an IP address or localhost\n"));
    return asked && by_address;
}

static void add_head(struct buf *out, const char *name, const char *type, const char *help)
{
    buf_print(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void print(const struct runner_figures *figures, struct buf *out)
{
    static const char runners[] = "runcast_runners";
    static const char starts[] = "runcast_runner_starts_total";
    static const char exits[] = "runcast_runner_exits_total";
    add_head(out, runners, "gauge", "Processes of runs, kept ones included");
    buf_print(out, "%s %lld\n", runners, (long long)figures->runners);
    add_head(out, starts, "counter",
             "Runs that were given a new process, or one that was kept");
    buf_print(out, "%s{kind=\"cold\"} %lld\n%s{kind=\"warm\"} %lld\n", starts,
              (long long)figures->cold_starts, starts, (long long)figures->warm_starts);
    add_head(out, exits, "counter",
             "Processes of runs that have ended: done, or before their runs were");
    for (int cause = 0; cause < RUNNER_CAUSES; cause++)
        buf_print(out, "%s{cause=\"%s\"} %lld\n", exits, causes[cause],
                  (long long)figures->exits[cause]);
}

void runner_figures_answer(const struct runner_figures *figures, struct exchange *x)
{
    struct buf text = { 0 };
    print(figures, &text);
    http_reply(x, 200, SLICE("content-type: text/plain; version=0.0.4\r\n"),
               buf_slice(&text));
    buf_finish(&text);
}
