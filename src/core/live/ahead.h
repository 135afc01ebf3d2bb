/* ahead.h - sends the busiest runs before a walk's position reaches them.
 *
 *   place:   41   44   57  │  60   66   71   72   73
 *   run:      d    -    b  │   a    -    c    -    r         r changed at 66, 72 and 73
 *                        seen                      └── sent ahead: it changes again before
 *                                                      the walk reaches it
 *
 * A walk goes through the runs of a topic in the order of their last change (order.h). A
 * run that changes all the time is always at the end of that order, and the walk might
 * never reach it. So every eighth frame of a walk takes runs from the end: first those that
 * change most often (among equals, the one that has waited longest), then the newest. While
 * more of these busy runs wait than fit into a frame, they get every second frame. A run
 * that changes between any two frames is thus sent at least once in 16 frames, along with
 * up to three others of its kind even if each of them fills a frame. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct feed;
struct run;
struct subscription;

/* After frames that moved the walk to `seen`, the newest change in memory was `applied`. */
struct walk_step {
    uint64_t seen, applied;
};

/* The row of a run at this rev was sent in the walk's frame of this number. */
struct sent_ahead {
    uint64_t rev;
    uint32_t frame;
};

/* The record of one walk. NULL: nothing yet, as for most feeds. */
struct ahead {
    struct sent_ahead *sent; /* the newest such row of each run, by rev */
    struct walk_step *steps; /* tell which rows the walk sent in order */
    uint32_t count, step_count;
    uint32_t frames; /* sent by this walk so far */
    bool crowded;    /* not all busy runs fit into the last frame sent ahead */
};

/* Forgets everything, at the end of a walk, and sets *place to NULL. */
void ahead_forget(struct ahead **place);

/* Notes that the walk reached `seen` with rows that reflect every change up to
 * `applied`. */
void ahead_note_step(struct ahead **place, uint64_t seen, uint64_t applied);

/* Returns true if the row of this rev was sent ahead. */
bool ahead_has(const struct ahead *ahead, uint64_t rev);

/* Counts a frame of the live subscriptions, or of one that catches up. If it was the turn
 * of runs from the end, sends them and returns true; the walk's position does not move. */
bool ahead_visit_live(struct feed *feed);
bool ahead_visit(struct feed *feed, struct subscription *sub);

/* Counts the versions of the run that a live client skips: those between the newest one
 * that it was sent and this one. Rows sent whole are not counted. */
void ahead_count_conflated(const struct feed *feed, const struct run *run);
