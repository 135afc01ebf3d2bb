/* frames.c - releases frames, completes runs, and decides which documents followers need. */
#include "core/replication/frames.h"

#include <stdlib.h>

void repl_frame_finish(struct repl_frame *frame)
{
    switch (frame->kind) {
    case REPL_BEFORE:
    case REPL_CHANGE: run_finish(&frame->run.run); break;
    case REPL_DOCUMENT: document_finish(&frame->document.document); break;
    case REPL_POSITIONS: free(frame->positions.list); break;
    case REPL_USES: free(frame->uses.list); break;
    case REPL_COMMAND:
    case REPL_ANSWER: bytes_unref(frame->command.text); break;
    default: break;
    }
    frame->kind = REPL_NONE;
}

uint32_t repl_version_common(uint32_t least, uint32_t newest)
{
    uint32_t common = newest < REPL_VERSION ? newest : REPL_VERSION;
    return common >= least && common >= REPL_VERSION_LEAST ? common : 0;
}

/* on_left and on_lost of server/gateway/gateway.c give the reason: this, or a longer one. */
bool repl_end_is_planned(const char *why)
{
    return slice_starts(slice_of(why), "the lead was handed over");
}

/* ---- packets ---- */

void repl_run_complete(struct repl_run *change, const struct run *known)
{
    struct run *run = &change->run;
    if (!(change->marks & MARK_PAYLOAD)) {
        bytes_set(&run->payload, known->payload);
        bytes_set(&run->metadata_seed, known->metadata_seed);
    }
    if (!(change->marks & MARK_METADATA))
        bytes_set(&run->metadata, known->metadata);
    if (!(change->marks & MARK_OUTPUT)) {
        bytes_set(&run->output, known->output);
        bytes_set(&run->error, known->error);
    }
}

void repl_run_fill(struct repl_run *change, const struct run *stored)
{
    unsigned left_out = change->marks & REPL_LEFT_OUT;
    change->marks &= ~(unsigned)REPL_LEFT_OUT;
    if (stored && left_out & REPL_LEFT_PAYLOAD)
        bytes_set(&change->run.payload, stored->payload);
    if (stored && left_out & REPL_LEFT_OUTPUT) {
        bytes_set(&change->run.output, stored->output);
        bytes_set(&change->run.error, stored->error);
    }
}

/* ---- documents ---- */

/* Followers authenticate clients, so they need the accounts. The kinds that only a deciding
 * gateway needs are read when it takes the lead. */
static const bool follows[] = {
    [DOC_ORGANIZATION] = true,     [DOC_PROJECT] = true,      [DOC_USER] = true,
    [DOC_ENVIRONMENT] = true,      [DOC_KEY] = true,          [DOC_TOKEN] = true,
    [DOC_BATCH] = false,           [DOC_QUEUE] = false,       [DOC_WORKER] = false,
    [DOC_WAITPOINT] = false,       [DOC_SCHEDULE] = false,    [DOC_VARIABLE] = false,
    [DOC_PACKET] = false,          [DOC_BULK] = false,        [DOC_WORKER_TOKEN] = true,
    [DOC_TRACE] = false,           [DOC_CURRENT] = false,     [DOC_DEPLOYMENT] = false,
    [DOC_BUILD_VARIABLES] = false, [DOC_TRACE_PIECE] = false, [DOC_ACTIVITY] = false,
    [DOC_LIMIT] = false,
};

_Static_assert(sizeof(follows) / sizeof(follows[0]) == DOC_KINDS,
               "a new kind of document decides whether followers need it");

bool repl_document_follows(enum document_kind kind)
{
    return follows[kind];
}
