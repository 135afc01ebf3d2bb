/* left_out.h - a follower reads the packets that were left out of changes.
 *
 *   change without a packet ─► wanted ─► read from the database ─► filled ─► applied, in its order
 *
 * A leader leaves out long packets, and while a follower reads slowly, almost all
 * (source.h). The database has the newest state of the run, maybe after later changes. So only
 * packets that no later change can replace are left out: payloads, but not of delayed runs, whose
 * debounce may replace them; outputs and errors of settled runs; no metadata.
 *
 * Reads of an environment begin in the order of its changes, and environments take turns. At
 * most LEFT_OUT_AHEAD changes are being read or wait, filled, to be applied, LEFT_OUT_OF_ONE of
 * one environment. */
#pragma once

#include "base/list.h"
#include "core/replication/frames.h"

enum { LEFT_OUT_AHEAD = 16, LEFT_OUT_OF_ONE = 8 };

/* A change that lacks packets. Embedded, zeroed; stays at its place until left_out_forget. */
struct left_out_change {
    struct repl_run *change; /* borrowed */
    bool is_before;          /* of REPL_BEFORE, which memory needs whatever its position */
    struct left_out_line *line;
    struct left_out_read *read; /* in progress; NULL: none */
    bool is_begun;              /* counted in left_out::ahead */
    struct list link;           // left_out_line::wanted
};

struct left_out_options {
    struct store *store;
    /* Returns false if memory has the change already, so that its packets are not needed. Not
     * called for left_out_change::is_before. */
    bool (*needs)(void *owner, const struct repl_run *change);
    /* A change was filled. Without a read, this is called inside of the functions below. */
    void (*filled)(void *owner, const struct repl_run *change);
    /* Retention has removed the run meanwhile. The change still lacks its packets. */
    void (*removed)(void *owner, const struct repl_run *change);
    /* The database cannot be read. The change still lacks its packets. */
    void (*failed)(void *owner);
    void *owner;
};

/* The changes of one environment that lack packets. */
struct left_out_line {
    struct left_out *left_out;
    struct list wanted; // left_out_change::link
    bool may_read;      /* left_out_read_on */
    unsigned ahead;     /* changes that are being read, or were filled and not forgotten */
    struct list link;   // left_out::lines; linked while another one may be read
};

struct left_out {
    struct left_out_options options;
    struct list lines; // left_out_line::link; the next one to read first
    unsigned ahead;    /* of all lines */
    unsigned reading;
};

void left_out_init(struct left_out *left_out, const struct left_out_options *options);

/* The line may read. */
void left_out_init_line(struct left_out *left_out, struct left_out_line *line);

/* Reads of the line begin only while this is true: memory has to be up to date for
 * options.needs. */
void left_out_read_on(struct left_out_line *line, bool may_read);

/* The change of wanted, which the caller has set, lacks a packet. filled, removed or failed of
 * the options follows. */
void left_out_add(struct left_out_line *line, struct left_out_change *wanted);

/* Call it once the change is applied or given up. A read that is in progress ends unused.
 * Does nothing if it was not added. */
void left_out_forget(struct left_out_change *wanted);

/* Returns true if no read is in progress. */
static inline bool left_out_is_idle(const struct left_out *left_out)
{
    return !left_out->reading;
}
