/* cluster_frames.h - the frames of replication, and forwarded requests, as values.
 *
 *   follower ── hello, ask ──────────────────────────────────► leader
 *            ◄── hello, beat, change, before, document, passed, floor ──
 *
 * The follower opens the connection. A beat is sent only as the response to a numbered ask,
 * so its age counts from a moment of the follower's own clock: however long the beat was on
 * the way, and however long the follower was suspended, it trusts no longer than its leader.
 * Real replication can encode these structs as they are. */
#pragma once

#include "runcast/store.h"

enum repl_kind {
    REPL_HELLO,
    REPL_ASK,
    REPL_BEAT,
    REPL_BEFORE,
    REPL_CHANGE,
    REPL_DOCUMENT,
    REPL_PASSED,
    REPL_FLOOR,
};

/* Environments of the simulation: the accounts, and one with runs. */
enum { REPL_ACCOUNTS, REPL_RUNS, REPL_ENVS };

/* Which history and which lead a statement belongs to. */
struct repl_head {
    char epoch[17];
    uint64_t term;
};

/* Both sides begin with it. The leader's also says what it had applied: everything after
 * that follows on this connection. */
struct repl_hello {
    struct repl_head head;
    uint64_t applied[REPL_ENVS];
};

struct repl_ask {
    uint64_t number; /* counts up */
};

/* left_ms: how long the leader trusted itself from the moment when it answered. */
struct repl_beat {
    struct repl_head head;
    uint64_t number; /* of the ask */
    int64_t left_ms;
    uint64_t applied[REPL_ENVS];
};

/* REPL_BEFORE: the run as it was, before the change that follows, if it was final. */
struct repl_run {
    uint32_t env;
    uint64_t seq;
    struct run run;
};

struct repl_document {
    uint32_t env;
    uint64_t seq;
    struct document document;
};

/* Numbers of changes that followers do not need. */
struct repl_passed {
    uint32_t env;
    uint64_t from, to;
};

struct repl_frame {
    enum repl_kind kind;
    union {
        struct repl_hello hello;
        struct repl_ask ask;
        struct repl_beat beat;
        struct repl_run run;
        struct repl_document document;
        struct repl_passed passed;
        struct store_position floor;
    };
};

/* Releases the texts of the run or document. */
static inline void repl_frame_finish(struct repl_frame *frame)
{
    if (frame->kind == REPL_BEFORE || frame->kind == REPL_CHANGE)
        run_finish(&frame->run.run);
    else if (frame->kind == REPL_DOCUMENT)
        document_finish(&frame->document.document);
}
