/* reader.h - a subscriber for tests: a feed whose frames are kept and shown as text.
 *
 * A frame is shown as a client sees it:
 *
 *     run_1 v2                               a patch, the run changed
 *     run_1 v2 whole, run_2 v5               two rows, the first replaces the run
 *     rows 1: run_1 v1 whole, more           of subscription 1, which catches up
 *     nothing                                a patch without rows: in sync
 *
 * A filter is written as "tag:a,b", "run:run_1", "batch:batch_1" or "all", optionally
 * followed by a space and "task:hello". */
#pragma once

#include "base/buf.h"
#include "core/live/feed.h"
#include "tests/support/world/world.h"

struct reader {
    struct feed feed;
    struct world *world;
    struct bytes **frames; /* received, not asserted yet */
    size_t count, capacity;
    size_t room;        /* frames that still fit into the socket; SIZE_MAX: any number */
    bool stalled, lost; /* reads nothing; must reconnect */
    unsigned again;     /* how often it was informed that snapshots follow */
    struct list link;   // world::readers
};

/* A view of every field as JSON; no subscription yet. */
struct reader *reader_create(struct world *world);
struct reader *reader_create_with(struct world *world, const struct view *wish);
void reader_destroy(struct reader *reader);

/* A view of these fields, whose frames are the messages themselves. */
struct view view_of(enum encoding encoding, uint32_t fields);

/* Subscribes from a position; 0, 0: a snapshot. No frame arrives before the next turn. */
struct subscription *follow(struct reader *reader, int64_t id, const char *about,
                            uint64_t seq, uint64_t base);
void unlisten(struct reader *reader, int64_t id);

/* Makes a reader with a live subscription 1, whose snapshot was dropped. */
struct reader *subscribe(struct world *world, const char *about);

/* Fills its socket; drain makes room again, and lets the feed continue. */
void stall(struct reader *reader);
void drain(struct reader *reader);

/* Reads that many frames, then stalls again. */
void drain_some(struct reader *reader, size_t frames);

/* Asserts that the frames so far are exactly these, and drops them. */
#define assert_frames(reader, ...)                                                         \
    assert_frames_are(reader, (const char *const[]){ __VA_ARGS__, NULL }, __FILE__,        \
                      __LINE__)
#define assert_no_frames(reader) assert_int_equal((reader)->count, 0)
void assert_frames_are(struct reader *reader, const char *const *expected, const char *file,
                       int line);
void forget_frames(struct reader *reader);

/* Appends a frame as shown above. */
void show_frame(const struct bytes *frame, struct buf *out);

/* Returns the filter of such a text; the caller calls filter_finish. */
struct filter filter_about(const char *about);
