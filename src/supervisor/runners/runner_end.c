/* runner_end.c - maps the exit of a process to a report. */
#include "supervisor/runners/runner_end.h"

#include <signal.h>
#include <stdio.h>

#include "base/json/members.h"
#include "base/json/scan.h"
#include "supervisor/gateway_client/run_message.h"

enum { EXIT_KILLED = 128 + SIGKILL, REASON_MAX = 256 };

enum runner_end runner_end_of(const struct runner_facts *facts)
{
    if (!facts->started)
        return RUNNER_END_RELEASE;
    return facts->open ? RUNNER_END_LOOK : RUNNER_END_NOTHING;
}

/* Returns true if no other process has begun another attempt. */
static bool is_ours(const struct runner_facts *facts, struct slice run)
{
    int64_t attempt = 0;
    return members_number(run, "attemptNumber", &attempt) && attempt == facts->attempt;
}

struct runner_newest runner_end_decide(const struct runner_facts *facts,
                                       struct slice answer)
{
    static const char *const executing[] = { "EXECUTING", "EXECUTING_WITH_WAITPOINTS" };
    struct runner_newest newest = { .verdict = RUNNER_VERDICT_NOTHING };
    if (!scan_is_json(answer) || scan_type(answer) != SCAN_OBJECT)
        return newest;
    struct slice execution = scan_member(answer, "execution");
    struct slice snapshot = scan_member(execution, "snapshot");
    if (scan_type(execution) != SCAN_OBJECT || scan_type(snapshot) != SCAN_OBJECT)
        return newest;
    struct bytes *id = members_text(snapshot, "friendlyId");
    struct bytes *status = members_text(snapshot, "executionStatus");
    if (id && message_id_is_right(bytes_slice(id)) && status &&
        is_ours(facts, scan_member(execution, "run"))) {
        snprintf(newest.snapshot, sizeof(newest.snapshot), "%s", id->data);
        if (slice_is(bytes_slice(status), "PENDING_CANCEL"))
            newest.verdict = RUNNER_VERDICT_CANCELED;
        for (size_t i = 0; i < sizeof(executing) / sizeof(executing[0]); i++)
            if (slice_is(bytes_slice(status), executing[i]))
                newest.verdict = RUNNER_VERDICT_FAILED;
    }
    bytes_unref(id);
    bytes_unref(status);
    return newest;
}

enum runner_cause runner_end_cause(const struct runner_facts *facts, bool has_run,
                                   const struct process_end *end)
{
    if (end->oom)
        return RUNNER_CAUSE_MEMORY;
    if (facts->killed)
        return RUNNER_CAUSE_KILLED;
    if (!has_run || (facts->started && !facts->open))
        return RUNNER_CAUSE_DONE;
    return end->cause == PROCESS_EXITED     ? RUNNER_CAUSE_EXIT
           : end->cause == PROCESS_SIGNALED ? RUNNER_CAUSE_SIGNAL
                                            : RUNNER_CAUSE_NOT_STARTED;
}

/* A SIGKILL may come from anyone. It counts as out of memory only if the control group has
 * counted an OOM kill, or a shell reports exit status 137 and we did not kill it. */
const char *runner_end_code(const struct runner_facts *facts, const struct process_end *end)
{
    bool by_shell = end->cause == PROCESS_EXITED && end->status == EXIT_KILLED;
    if (end->oom || (by_shell && !facts->killed))
        return "TASK_PROCESS_OOM_KILLED";
    if (facts->killed || (end->cause == PROCESS_SIGNALED && end->status == SIGTERM))
        return "TASK_PROCESS_SIGTERM";
    if (end->cause == PROCESS_SIGNALED && end->status == SIGSEGV)
        return "TASK_PROCESS_SIGSEGV";
    return "TASK_PROCESS_EXITED_WITH_NON_ZERO_CODE";
}

/* The output may not be UTF-8: then all bytes from 0x80 on become question marks. */
static void add_trace(struct buf *out, struct slice trace)
{
    struct buf clean = { 0 };
    buf_add(&clean, trace);
    if (!text_is_utf8(trace))
        for (size_t i = 0; i < clean.len; i++)
            if ((unsigned char)clean.ptr[i] >= 0x80)
                clean.ptr[i] = '?';
    members_add_text(out, "stackTrace", buf_slice(&clean));
    buf_finish(&clean);
}

void runner_end_completion(struct buf *out, const char *run, const char *code,
                           const char *message, struct slice trace)
{
    buf_add_text(out, "{\"completion\":{\"ok\":false");
    members_add_text(out, "id", slice_of(run));
    members_add_name(out, "error");
    buf_add_text(out, "{\"type\":\"INTERNAL_ERROR\"");
    members_add_text(out, "code", slice_of(code));
    members_add_text(out, "message", slice_of(message));
    if (trace.len)
        add_trace(out, trace);
    buf_add_text(out, "}},\"forceRequeue\":true}");
}

bool runner_end_is_final(struct slice answer)
{
    if (!scan_is_json(answer) || scan_type(answer) != SCAN_OBJECT)
        return false;
    struct slice result = scan_member(answer, "result");
    if (scan_type(result) != SCAN_OBJECT)
        return false;
    struct bytes *status = members_text(result, "attemptStatus");
    bool final = status && (slice_is(bytes_slice(status), "RUN_FINISHED") ||
                            slice_is(bytes_slice(status), "RETRY_QUEUED"));
    bytes_unref(status);
    return final;
}

void runner_end_release(struct buf *out, const char *reason)
{
    struct slice text = slice_of(reason);
    if (text.len > REASON_MAX)
        text.len = REASON_MAX;
    while (text.len && !text_is_utf8(text))
        text.len--;
    buf_add_char(out, '{');
    members_add_text(out, "reason", text.len ? text : SLICE("unknown"));
    buf_add_char(out, '}');
}
