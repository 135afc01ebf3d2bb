/* ahead.h - rows that a walk sends before its position comes to them.
 *
 *   place:   41   44   57  │  60   66   71   72   73
 *   run:      d    -    b  │   a    -    c    -    r         r changed at 66, 72 and 73
 *                        seen                      └── goes ahead: it moves on before
 *                                                      the walk is there
 *
 * A run that changes all the time is always at the end of the orders, and a walk may never
 * come there. So every eighth frame of a walk takes runs from the end: first those that
 * change most often, and of these the one that has waited longest; then the newest. While
 * more of them wait than a frame holds, every second frame is for them. So a run that
 * changes between any two frames is in one of any sixteen, beside up to three others of its
 * kind even if each fills a frame. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct feed;
struct run;
struct subscription;

/* Frames of a walk brought its position to seen while the newest change was `applied`. */
struct walk_step {
    uint64_t seen, applied;
};

/* A row was sent in the walk's frame of this number. */
struct sent_ahead {
    uint64_t rev;
    uint32_t frame;
};

/* What one walk remembers of its frames. NULL: nothing yet, and most feeds walk nowhere. */
struct ahead {
    struct sent_ahead *sent; /* of each run the newest row, by rev */
    struct walk_step *steps; /* what the walk sent in order is found from them */
    uint32_t count, step_count;
    uint32_t frames; /* of this walk so far */
    bool crowded;    /* what never rests did not fit in the last frame ahead */
};

/* The walk has ended: nothing is remembered, and the place is NULL. */
void ahead_forget(struct ahead **place);

/* The walk came to seen with rows that know of every change up to `applied`. */
void ahead_note_step(struct ahead **place, uint64_t seen, uint64_t applied);

/* The row of this rev was sent ahead. */
bool ahead_has(const struct ahead *ahead, uint64_t rev);

/* Counts a frame of the live subscriptions, or of one that catches up. True: its turn was to
 * go ahead, and it was sent; the position stays. */
bool ahead_visit_live(struct feed *feed);
bool ahead_visit(struct feed *feed, struct subscription *sub);

/* Intermediate versions that a live client misses: those between the newest that was sent
 * and this one. Whole rows are not judged. */
void ahead_count_conflated(const struct feed *feed, const struct run *run);
