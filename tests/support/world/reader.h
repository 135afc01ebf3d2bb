/* reader.h - a subscriber of tests: a feed whose frames are kept and shown.
 *
 * A frame reads as a client sees it:
 *
 *     run_1 v2                               a patch, the run changed
 *     run_1 v2 whole, run_2 v5               two rows, the first replaces the run
 *     rows 1: run_1 v1 whole, more           of subscription 1, which catches up
 *     nothing                                a patch without rows: in sync
 *
 * What it is about: "tag:a,b", "run:run_1", "batch:batch_1", "all", and behind a space
 * "task:hello". */
#pragma once

#include "base/buf.h"
#include "core/live/feed.h"
#include "tests/support/world/world.h"

struct reader {
    struct feed feed;
    struct world *world;
    struct bytes **frames; /* received, not asserted yet */
    size_t count, capacity;
    size_t room;        /* frames that still fit; SIZE_MAX: any number */
    bool stalled, lost; /* takes nothing; was told to come back */
    struct list link;   // world::readers
};

/* Of every field as JSON; no subscription yet. */
struct reader *reader_create(struct world *world);
struct reader *reader_create_with(struct world *world, const struct view *wish);
void reader_destroy(struct reader *reader);

/* A view of these fields, whose frames are the messages themselves. */
struct view view_of(enum encoding encoding, uint32_t fields);

/* Subscribes from a position; 0, 0: a snapshot. Nothing comes before the next turn. */
struct subscription *follow(struct reader *reader, int64_t id, const char *about,
                            uint64_t seq, uint64_t base);
void unlisten(struct reader *reader, int64_t id);

/* A new reader with subscription 1, live, whose snapshot is forgotten. */
struct reader *subscribe(struct world *world, const char *about);

/* Its socket is full; drained again, and then visited. */
void stall(struct reader *reader);
void drain(struct reader *reader);

/* Takes so many frames, then it is stalled. */
void drain_some(struct reader *reader, size_t frames);

/* The frames so far are exactly these; they are forgotten. */
#define assert_frames(reader, ...)                                                         \
    assert_frames_are(reader, (const char *const[]){ __VA_ARGS__, NULL }, __FILE__,        \
                      __LINE__)
#define assert_no_frames(reader) assert_int_equal((reader)->count, 0)
void assert_frames_are(struct reader *reader, const char *const *expected, const char *file,
                       int line);
void forget_frames(struct reader *reader);

/* As shown above, appended. */
void show_frame(const struct bytes *frame, struct buf *out);

/* The filter of such a text; filter_finish. */
struct filter filter_about(const char *about);
