/* frames.h - the frames of replication between gateways, as values.
 *
 *   follower ── hello, ask, report, uses, command ─────────────────────────► leader
 *            ◄── hello, positions, before, change, document, passed, omitted,
 *                floor, beat, sum, dropped, answer, end ─────────────────────
 *
 * The follower opens the connection, and says hello first. The leader answers with its own
 * hello and the positions of all environments; from then on it sends everything that it
 * applies, in order. A beat is the response to a numbered ask, so that its age counts from
 * a moment of the follower's own clock. Whatever was applied before a beat was sent arrives
 * before it.
 *
 * A packet (payload, output, error, metadata) travels only in the change that wrote it. A long
 * one that no later change can replace is left out even there: the follower reads it from the
 * database (left_out.h). While a follower reads slowly, whole changes may be omitted.
 *
 * A leader of version 1 skips reports and uses, and answers no command. frame_codec.h reads and
 * writes frames as bytes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/vault/vault.h"
#include "runcast/store.h"

enum {
    REPL_VERSION_LEAST = 1, /* the versions that this program speaks */
    REPL_VERSION = 4,
    REPL_VERSION_COMMANDS = 2, /* from this one on, a leader answers commands */
    REPL_VERSION_LEFT_OUT = 3, /* from this one on, a follower reads packets itself */
    REPL_VERSION_OMITTED = 4,  /* the same for whole changes */
    REPL_POSITIONS_MAX = 1000, /* in one frame */
    REPL_USES_MAX = 20,    /* in one frame, which a leader of version 1 must take, too */
    REPL_PROGRAM_MAX = 32, /* bytes of a program's version, with the terminating zero */
    REPL_WHY_MAX = 128,    /* bytes of a reason, with the terminating zero */
    /* Marks of a run that travels with all its packets. */
    REPL_PACKETS = MARK_PAYLOAD | MARK_METADATA | MARK_OUTPUT,
    /* Marks of packets that the change wrote, but that are left out because they are long. */
    REPL_LEFT_PAYLOAD = 1 << 8,
    REPL_LEFT_OUTPUT = 1 << 9, /* output and error */
    REPL_LEFT_OUT = REPL_LEFT_PAYLOAD | REPL_LEFT_OUTPUT,
};

/* Numbers on the wire: append, never reorder. */
enum repl_kind {
    REPL_NONE,
    REPL_HELLO,
    REPL_ASK,
    REPL_POSITIONS,
    REPL_BEAT,
    REPL_BEFORE,
    REPL_CHANGE,
    REPL_DOCUMENT,
    REPL_PASSED,
    REPL_FLOOR,
    REPL_SUM,
    REPL_END,
    REPL_DROPPED,
    REPL_REPORT,
    REPL_USES,
    REPL_COMMAND,
    REPL_ANSWER,
    REPL_OMITTED,
    REPL_KINDS
};

/* The history and the lead that a frame belongs to. */
struct repl_head {
    char epoch[17];
    uint64_t term; /* of the leader; 0 in a frame of a follower */
};

/* The first frame of each side. A follower names the versions that it speaks; the leader's
 * answer names the one that it chose, as both. */
struct repl_hello {
    uint32_t least, newest;
    uint64_t gateway; /* store_gateway::id of the sender */
    struct repl_head head;
};

struct repl_ask {
    uint64_t number; /* counts up */
};

/* The leader's position in an environment when it answered the follower's hello. */
struct repl_position {
    uint32_t env;
    uint64_t seq;
};

/* Follow the leader's hello: as many frames as its environments need; the last one is
 * empty, or has less than REPL_POSITIONS_MAX. */
struct repl_positions {
    struct repl_position *list; /* mem_alloc'd when read */
    size_t count;
};

struct repl_beat {
    struct repl_head head;
    uint64_t number; /* of the ask */
    int64_t left_ms; /* how long the leader trusted itself when it answered */
};

/* A run, as of seq. As REPL_BEFORE: the run as it was before the change that follows, if it
 * was final; with all packets, because the follower may have evicted it. */
struct repl_run {
    uint32_t env;
    uint64_t seq;
    /* enum change_marks; REPL_PACKETS of a new run. Packets that they do not name are NULL; see
     * repl_run_complete. So are those of REPL_LEFT_OUT; see repl_run_fill. */
    unsigned marks;
    struct run run;
};

struct repl_document {
    uint32_t env;
    uint64_t seq;
    struct document document; /* body NULL: deleted */
};

/* The numbers from … to, which followers do not need; or, as REPL_OMITTED, which they read from the
 * database. */
struct repl_passed {
    uint32_t env;
    uint64_t from, to;
};

/* The unfinished runs of an environment at seq: their number, and the sum of their hashes.
 * A follower compares both with its own memory at exactly this position. */
struct repl_sum {
    uint32_t env;
    uint64_t seq;
    uint64_t count, sum;
};

/* The leader has dropped the environment from memory. */
struct repl_dropped {
    uint32_t env;
};

/* A follower reports about itself, about once a second. */
struct repl_report {
    char program[REPL_PROGRAM_MAX]; /* its version */
    bool is_current;                /* it trusts its memory */
    uint64_t taken; /* changes of runs that came by this connection and are in memory */
    int64_t lag_ms; /* from its last ask to the beat that answered it */
};

/* The last request with a credential at a follower. */
struct repl_use {
    unsigned char hash[HASH_LEN]; /* of the key or token */
    int64_t used_at;              /* Unix ms */
};

struct repl_uses {
    struct repl_use *list; /* mem_alloc'd when read */
    size_t count;
};

/* A subcommand for the leader, as REPL_COMMAND, and its output, as REPL_ANSWER. The text is
 * sealed (server/peers/leader_commands.h). */
struct repl_command {
    uint64_t number; /* counts up */
    struct bytes *text;
};

/* The sender ends the connection. */
struct repl_end {
    char why[REPL_WHY_MAX];
};

struct repl_frame {
    enum repl_kind kind;
    /* A run or document that was read has values that only a later version knows, and could
     * store. They were left out. */
    bool has_unknown;
    union {
        struct repl_hello hello;
        struct repl_ask ask;
        struct repl_positions positions;
        struct repl_beat beat;
        struct repl_run run; /* REPL_BEFORE, REPL_CHANGE */
        struct repl_document document;
        struct repl_passed passed; /* REPL_PASSED, REPL_OMITTED */
        struct store_position floor;
        struct repl_sum sum;
        struct repl_dropped dropped;
        struct repl_report report;
        struct repl_uses uses;
        struct repl_command command; /* REPL_COMMAND, REPL_ANSWER */
        struct repl_end end;
    };
};

/* Releases what a frame owns that was read. Do not call it for a frame that borrows the
 * texts of a run or a document. Accepts a zeroed frame. */
void repl_frame_finish(struct repl_frame *frame);

/* Returns true if this is the reason of a leader that has handed the lead over. Leaders of each
 * version send it. */
bool repl_end_is_planned(const char *why);

/* Returns the version that both sides speak, the highest one; 0 if they have none in
 * common. */
uint32_t repl_version_common(uint32_t least, uint32_t newest);

/* Gives the run of a change references to the packets that did not travel with it. known is
 * the same run as the follower has it in memory. */
void repl_run_complete(struct repl_run *change, const struct run *known);

/* Gives the run of a change the packets that were left out. stored is the same run as the
 * database has it, maybe after later changes, which these packets outlast. NULL: memory has
 * the change, so it needs none. */
void repl_run_fill(struct repl_run *change, const struct run *stored);

/* Returns true if followers need documents of the kind. The numbers of all others are
 * passed (REPL_PASSED). */
bool repl_document_follows(enum document_kind kind);
