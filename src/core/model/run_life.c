/* run_life.c - the states of a run as one table, and the meaning of its errors.
 *
 *                DELAYED ─delay ended─► QUEUED ◄─version came─┐
 *                   │                   │  │ ──no version──► PENDING_VERSION
 *                   └─no version────────│──│────────────────►   │
 *                                       │  └──ttl ended──► EXPIRED ◄─ttl ended
 *                              dequeued │ ▲ lease expired
 *                                       ▼ │
 *                                     DEQUEUED
 *                                       │ started
 *  wait ended, a slot is free           ▼
 *   WAITING ◄────────────────────► EXECUTING ──► COMPLETED | FAILED | CRASHED |
 *      │           wait               │   ▲      SYSTEM_FAILURE | TIMED_OUT
 *      │         retry soon or queued ▼   │ started
 *      └────────────────────────► RETRYING: paused    (the worker keeps the run)
 *                                           requeued  ─dequeued─► retaken
 *                                           requeued  ─no version─► PENDING_VERSION
 *                                           retaken   ─lease expired─► requeued
 *
 *   cancel:      no worker has it  ──► CANCELED, finished
 *                a worker has it   ──► canceling ──cancel confirmed──► CANCELED, finished
 *   interrupted: every state that a worker may hold ──► INTERRUPTED
 *
 * A state is a status along with the execution status that workers see. RETRYING is three
 * states, CANCELED two (canceling and finished), each other status one. An event that a
 * state has no row for is a conflict. A run never leaves a final status. */
#include "core/model/run_life.h"

#include "base/buf.h"
#include "base/json/scan.h"

enum life_state {
    STATE_DELAYED,
    STATE_VERSIONLESS,
    STATE_QUEUED,
    STATE_DEQUEUED,
    STATE_EXECUTING,
    STATE_WAITING,
    STATE_PAUSED, /* a retry is due soon; the worker keeps the run and its slot */
    STATE_REQUEUED,
    STATE_RETAKEN,
    STATE_CANCELING, /* shown as CANCELED; the worker has not confirmed it yet */
    STATE_CANCELED,
    STATE_COMPLETED,
    STATE_FAILED,
    STATE_INTERRUPTED,
    STATE_CRASHED,
    STATE_SYSTEM_FAILURE,
    STATE_EXPIRED,
    STATE_TIMED_OUT,
    STATE_COUNT
};

/* clang-format off */
static const struct {
    enum run_status status;
    enum run_execution execution;
    /* A slot of its queue and environment; not while it waits, because the run it waits for
     * may need that slot. A run whose waits have ended stays WAITING until it has one. */
    bool holds_slot;
} states[STATE_COUNT] = {
    [STATE_DELAYED] =         { RUN_DELAYED,         EXECUTION_DELAYED,           false },
    [STATE_VERSIONLESS] =     { RUN_PENDING_VERSION, EXECUTION_CREATED,           false },
    [STATE_QUEUED] =          { RUN_QUEUED,          EXECUTION_QUEUED,            false },
    [STATE_DEQUEUED] =        { RUN_DEQUEUED,        EXECUTION_PENDING_EXECUTING, true },
    [STATE_EXECUTING] =       { RUN_EXECUTING,       EXECUTION_EXECUTING,         true },
    [STATE_WAITING] =         { RUN_WAITING,         EXECUTION_WITH_WAITPOINTS,   false },
    [STATE_PAUSED] =          { RUN_RETRYING,        EXECUTION_EXECUTING,         true },
    [STATE_REQUEUED] =        { RUN_RETRYING,        EXECUTION_QUEUED,            false },
    [STATE_RETAKEN] =         { RUN_RETRYING,        EXECUTION_PENDING_EXECUTING, true },
    [STATE_CANCELING] =       { RUN_CANCELED,        EXECUTION_PENDING_CANCEL,    false },
    [STATE_CANCELED] =        { RUN_CANCELED,        EXECUTION_FINISHED,          false },
    [STATE_COMPLETED] =       { RUN_COMPLETED,       EXECUTION_FINISHED,          false },
    [STATE_FAILED] =          { RUN_FAILED,          EXECUTION_FINISHED,          false },
    [STATE_INTERRUPTED] =     { RUN_INTERRUPTED,     EXECUTION_FINISHED,          false },
    [STATE_CRASHED] =         { RUN_CRASHED,         EXECUTION_FINISHED,          false },
    [STATE_SYSTEM_FAILURE] =  { RUN_SYSTEM_FAILURE,  EXECUTION_FINISHED,          false },
    [STATE_EXPIRED] =         { RUN_EXPIRED,         EXECUTION_FINISHED,          false },
    [STATE_TIMED_OUT] =       { RUN_TIMED_OUT,       EXECUTION_FINISHED,          false },
};

static const struct {
    enum life_state from;
    enum run_event event;
    enum life_state to;
} transitions[] = {
    { STATE_DELAYED,     EVENT_DELAY_OVER,       STATE_QUEUED },
    { STATE_DELAYED,     EVENT_NO_VERSION,       STATE_VERSIONLESS },
    { STATE_DELAYED,     EVENT_CANCEL,           STATE_CANCELED },

    { STATE_VERSIONLESS, EVENT_VERSION_CAME,     STATE_QUEUED },
    { STATE_VERSIONLESS, EVENT_TTL_OVER,         STATE_EXPIRED },
    { STATE_VERSIONLESS, EVENT_CANCEL,           STATE_CANCELED },

    { STATE_QUEUED,      EVENT_NO_VERSION,       STATE_VERSIONLESS },
    { STATE_QUEUED,      EVENT_TTL_OVER,         STATE_EXPIRED },
    { STATE_QUEUED,      EVENT_DEQUEUED,         STATE_DEQUEUED },
    { STATE_QUEUED,      EVENT_CANCEL,           STATE_CANCELED },

    { STATE_DEQUEUED,    EVENT_LEASE_OVER,       STATE_QUEUED },
    { STATE_DEQUEUED,    EVENT_STARTED,          STATE_EXECUTING },
    { STATE_DEQUEUED,    EVENT_SYSTEM_FAILURE,   STATE_SYSTEM_FAILURE },
    { STATE_DEQUEUED,    EVENT_INTERRUPTED,      STATE_INTERRUPTED },
    { STATE_DEQUEUED,    EVENT_CANCEL,           STATE_CANCELING },

    { STATE_EXECUTING,   EVENT_WAIT,             STATE_WAITING },
    { STATE_EXECUTING,   EVENT_RETRY_SOON,       STATE_PAUSED },
    { STATE_EXECUTING,   EVENT_RETRY_QUEUED,     STATE_REQUEUED },
    { STATE_EXECUTING,   EVENT_SUCCEEDED,        STATE_COMPLETED },
    { STATE_EXECUTING,   EVENT_FAILED,           STATE_FAILED },
    { STATE_EXECUTING,   EVENT_CRASHED,          STATE_CRASHED },
    { STATE_EXECUTING,   EVENT_SYSTEM_FAILURE,   STATE_SYSTEM_FAILURE },
    { STATE_EXECUTING,   EVENT_TIMED_OUT,        STATE_TIMED_OUT },
    { STATE_EXECUTING,   EVENT_INTERRUPTED,      STATE_INTERRUPTED },
    { STATE_EXECUTING,   EVENT_CANCEL,           STATE_CANCELING },

    /* A waiting run may complete, because its process can die while it waits. */
    { STATE_WAITING,     EVENT_WAIT,             STATE_WAITING },
    { STATE_WAITING,     EVENT_WAIT_OVER,        STATE_EXECUTING },
    { STATE_WAITING,     EVENT_RETRY_SOON,       STATE_PAUSED },
    { STATE_WAITING,     EVENT_RETRY_QUEUED,     STATE_REQUEUED },
    { STATE_WAITING,     EVENT_SUCCEEDED,        STATE_COMPLETED },
    { STATE_WAITING,     EVENT_FAILED,           STATE_FAILED },
    { STATE_WAITING,     EVENT_CRASHED,          STATE_CRASHED },
    { STATE_WAITING,     EVENT_SYSTEM_FAILURE,   STATE_SYSTEM_FAILURE },
    { STATE_WAITING,     EVENT_TIMED_OUT,        STATE_TIMED_OUT },
    { STATE_WAITING,     EVENT_INTERRUPTED,      STATE_INTERRUPTED },
    { STATE_WAITING,     EVENT_CANCEL,           STATE_CANCELING },

    /* A paused or retaken run may end because its worker has gone silent. */
    { STATE_PAUSED,      EVENT_STARTED,          STATE_EXECUTING },
    { STATE_PAUSED,      EVENT_RETRY_QUEUED,     STATE_REQUEUED },
    { STATE_PAUSED,      EVENT_FAILED,           STATE_FAILED },
    { STATE_PAUSED,      EVENT_CRASHED,          STATE_CRASHED },
    { STATE_PAUSED,      EVENT_SYSTEM_FAILURE,   STATE_SYSTEM_FAILURE },
    { STATE_PAUSED,      EVENT_INTERRUPTED,      STATE_INTERRUPTED },
    { STATE_PAUSED,      EVENT_CANCEL,           STATE_CANCELED },

    { STATE_REQUEUED,    EVENT_NO_VERSION,       STATE_VERSIONLESS },
    { STATE_REQUEUED,    EVENT_DEQUEUED,         STATE_RETAKEN },
    { STATE_REQUEUED,    EVENT_SYSTEM_FAILURE,   STATE_SYSTEM_FAILURE },
    { STATE_REQUEUED,    EVENT_INTERRUPTED,      STATE_INTERRUPTED },
    { STATE_REQUEUED,    EVENT_CANCEL,           STATE_CANCELED },

    { STATE_RETAKEN,     EVENT_LEASE_OVER,       STATE_REQUEUED },
    { STATE_RETAKEN,     EVENT_STARTED,          STATE_EXECUTING },
    { STATE_RETAKEN,     EVENT_FAILED,           STATE_FAILED },
    { STATE_RETAKEN,     EVENT_CRASHED,          STATE_CRASHED },
    { STATE_RETAKEN,     EVENT_SYSTEM_FAILURE,   STATE_SYSTEM_FAILURE },
    { STATE_RETAKEN,     EVENT_INTERRUPTED,      STATE_INTERRUPTED },
    { STATE_RETAKEN,     EVENT_CANCEL,           STATE_CANCELING },

    { STATE_CANCELING,   EVENT_CANCEL,           STATE_CANCELING },
    { STATE_CANCELING,   EVENT_CANCEL_CONFIRMED, STATE_CANCELED },
};
/* clang-format on */

enum { TRANSITION_COUNT = sizeof(transitions) / sizeof(transitions[0]) };

/* Returns STATE_COUNT for a pair that no state has. */
static enum life_state state_of(const struct run *run)
{
    unsigned state = 0;
    while (state < STATE_COUNT && (states[state].status != run->status ||
                                   states[state].execution != run->execution))
        state++;
    return (enum life_state)state;
}

/* Returns STATE_COUNT if the event is not possible in this state. */
static enum life_state next_state(const struct run *run, enum run_event event)
{
    enum life_state from = state_of(run);
    if (event == EVENT_TTL_OVER && run->attempt > 0)
        return STATE_COUNT; /* a run that has started once does not expire */
    for (size_t i = 0; i < TRANSITION_COUNT; i++)
        if (transitions[i].from == from && transitions[i].event == event)
            return transitions[i].to;
    return STATE_COUNT;
}

enum err run_advance(struct run *run, enum run_event event, int64_t now_ms)
{
    enum life_state next = next_state(run, event);
    if (next == STATE_COUNT)
        return ERR_CONFLICT;
    run->status = (uint8_t)states[next].status;
    run->execution = (uint8_t)states[next].execution;
    run->snapshot++;
    if (run->execution == EXECUTION_FINISHED)
        run->finished_at = now_ms;
    run->updated_at = now_ms;
    return OK;
}

bool run_holds_slot(const struct run *run)
{
    enum life_state state = state_of(run);
    return state < STATE_COUNT && states[state].holds_slot;
}

bool run_is_with_worker(const struct run *run)
{
    return run_holds_slot(run) || state_of(run) == STATE_WAITING;
}

/* ---- errors ---- */

/* The codes of internal errors. A code that ends in _ stands for all codes that begin with
 * it. Any other code is a SYSTEM_FAILURE that may be retried. */
/* clang-format off */
static const struct error_code {
    const char *code;
    enum run_event event;
    bool retriable;
} error_codes[] = {
    { "TASK_INPUT_ERROR",                        EVENT_FAILED,         true },
    { "TASK_OUTPUT_ERROR",                       EVENT_FAILED,         true },
    { "TASK_MIDDLEWARE_ERROR",                   EVENT_FAILED,         true },
    { "TASK_RUN_UNCAUGHT_EXCEPTION",             EVENT_FAILED,         true },
    { "RECURSIVE_WAIT_DEADLOCK",                 EVENT_FAILED,         false },
    { "TASK_RUN_STALLED_",                       EVENT_FAILED,         true },
    { "TASK_RUN_CANCELLED",                      EVENT_INTERRUPTED,    false },
    { "MAX_DURATION_EXCEEDED",                   EVENT_TIMED_OUT,      false },
    { "TASK_PROCESS_OOM_KILLED",                 EVENT_CRASHED,        false },
    { "TASK_PROCESS_MAYBE_OOM_KILLED",           EVENT_CRASHED,        false },
    { "TASK_PROCESS_SIGSEGV",                    EVENT_CRASHED,        true },
    { "TASK_PROCESS_EXITED_WITH_NON_ZERO_CODE",  EVENT_CRASHED,        true },
    { "TASK_RUN_CRASHED",                        EVENT_CRASHED,        true },
    { "DISK_SPACE_EXCEEDED",                     EVENT_CRASHED,        false },
    { "OUTDATED_SDK_VERSION",                    EVENT_CRASHED,        false },
    { "HANDLE_ERROR_ERROR",                      EVENT_CRASHED,        true },
    { "COULD_NOT_",                              EVENT_SYSTEM_FAILURE, false },
    { "CONFIGURED_INCORRECTLY",                  EVENT_SYSTEM_FAILURE, false },
    { "TASK_ALREADY_RUNNING",                    EVENT_SYSTEM_FAILURE, false },
    { "TASK_PROCESS_SIGKILL_TIMEOUT",            EVENT_SYSTEM_FAILURE, false },
    { "TASK_RUN_HEARTBEAT_TIMEOUT",              EVENT_SYSTEM_FAILURE, false },
    { "TASK_DID_CONCURRENT_WAIT",                EVENT_SYSTEM_FAILURE, false },
    { "TASK_DEQUEUED_",                          EVENT_SYSTEM_FAILURE, false },
    { "TASK_HAS_N0_",                            EVENT_SYSTEM_FAILURE, false },
    { "TASK_RUN_DEQUEUED_MAX_RETRIES",           EVENT_SYSTEM_FAILURE, false },
    { "BATCH_ITEM_",                             EVENT_SYSTEM_FAILURE, false },
    { "PAYLOAD_TOO_LARGE",                       EVENT_SYSTEM_FAILURE, false },
    { "UNSPECIFIED_ERROR",                       EVENT_SYSTEM_FAILURE, false },
};
/* clang-format on */

enum { ERROR_CODE_COUNT = sizeof(error_codes) / sizeof(error_codes[0]) };

static const struct error_code thrown = { "", EVENT_FAILED, true };
static const struct error_code other_internal = { "", EVENT_SYSTEM_FAILURE, true };

static bool is_text(struct slice json, const char *text)
{
    struct buf buf = { 0 };
    bool same = scan_string(json, &buf) && slice_is(buf_slice(&buf), text);
    buf_finish(&buf);
    return same;
}

static const struct error_code *code_named(struct slice name)
{
    for (size_t i = 0; i < ERROR_CODE_COUNT; i++) {
        const char *code = error_codes[i].code;
        bool is_family = code[strlen(code) - 1] == '_';
        if (is_family ? slice_starts(name, code) : slice_is(name, code))
            return &error_codes[i];
    }
    return &other_internal;
}

static const struct error_code *code_of(struct slice error_json)
{
    if (scan_type(error_json) != SCAN_OBJECT)
        return &thrown;
    if (!is_text(scan_member(error_json, "type"), "INTERNAL_ERROR"))
        return &thrown;

    struct buf name = { 0 };
    scan_string(scan_member(error_json, "code"), &name);
    const struct error_code *code = code_named(buf_slice(&name));
    buf_finish(&name);
    return code;
}

enum run_event run_event_of_error(struct slice error_json, bool is_dev)
{
    const struct error_code *code = code_of(error_json);
    if (is_dev && slice_starts(slice_of(code->code), "TASK_RUN_STALLED_"))
        return EVENT_INTERRUPTED; /* the developer's session is gone */
    return code->event;
}

/* Returns true if the member is a string that contains the text. */
static bool contains(struct slice error_json, const char *name, const char *text)
{
    struct buf buf = { 0 };
    bool found = scan_string(scan_member(error_json, name), &buf) && buf.len &&
                 memmem(buf.ptr, buf.len, text, strlen(text));
    buf_finish(&buf);
    return found;
}

/* Returns true if the process was killed, or aborted because its heap was full. Its
 * controller reports that as "Process exited with code -1 after signal SIGKILL." */
static bool exit_is_out_of_memory(struct slice error_json)
{
    if (!contains(error_json, "message", "-1"))
        return false;
    return contains(error_json, "message", "SIGKILL") ||
           (contains(error_json, "message", "SIGABRT") &&
            (contains(error_json, "stackTrace", "JavaScript heap out of memory") ||
             contains(error_json, "stackTrace", "Reached heap limit")));
}

static bool thrown_is_out_of_memory(struct slice error_json)
{
    return is_text(scan_member(error_json, "type"), "BUILT_IN_ERROR") &&
           (is_text(scan_member(error_json, "message"), "MANUAL_OOM_KILL_ERROR") ||
            contains(error_json, "message", "ffmpeg was killed with signal SIGKILL"));
}

bool run_error_is_out_of_memory(struct slice error_json)
{
    const struct error_code *code = code_of(error_json);
    if (code == &thrown)
        return scan_type(error_json) == SCAN_OBJECT && thrown_is_out_of_memory(error_json);
    if (slice_is(slice_of(code->code), "TASK_PROCESS_EXITED_WITH_NON_ZERO_CODE"))
        return exit_is_out_of_memory(error_json);
    return slice_is(slice_of(code->code), "TASK_PROCESS_OOM_KILLED") ||
           slice_is(slice_of(code->code), "TASK_PROCESS_MAYBE_OOM_KILLED");
}

bool run_error_is_retriable(struct slice error_json)
{
    return code_of(error_json)->retriable;
}
