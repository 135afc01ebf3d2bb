/* waiting.h - frames that wait to be applied.
 *
 *   of all:            in_order: [ change of A │ beat │ change of B … ]
 *   of one environment:    held: [ change of A, which lacks a packet │ change of A … ]
 *
 * All wait while memory catches up, and for time slices. Those of one environment also wait for
 * packets that were left out (left_out.h) and for its windows, while those of others are
 * applied. */
#pragma once

#include "core/replication/left_out.h"

struct waiting_frame {
    struct repl_frame frame;
    size_t bytes;  /* in memory */
    int64_t until; /* while it is held: how long memory without it is shown */
    struct left_out_change left_out; /* of a run, while it is held */
    struct list link;                // frame_line::frames
};

struct frame_line {
    struct list frames; // waiting_frame::link
    size_t bytes, changes;
    struct left_out_line left_out;
};

struct waiting_frames {
    struct frame_line in_order;
    size_t bytes, changes; /* of all lines; changes also of frames that were given up */
    struct left_out left_out;
};

void waiting_init(struct waiting_frames *waiting, const struct left_out_options *options);

/* Initializes the line of an environment. */
void waiting_init_line(struct waiting_frames *waiting, struct frame_line *line);

/* Takes ownership of the frame's content, which had that many bytes on the wire. Add the result
 * to a line. */
struct waiting_frame *waiting_create(const struct repl_frame *frame, size_t bytes);

void waiting_add(struct waiting_frames *waiting, struct waiting_frame *one);

/* Adds the frame to the line of its environment. If it lacks packets, they are read. */
void waiting_hold(struct waiting_frames *waiting, struct frame_line *line,
                  struct waiting_frame *one);

static inline bool frame_line_is_empty(const struct frame_line *line)
{
    return list_empty(&line->frames);
}

/* Returns true if no line has a frame. */
static inline bool waiting_is_empty(const struct waiting_frames *waiting)
{
    return !waiting->bytes;
}

/* Returns the first frame, or NULL if the line is empty. */
struct waiting_frame *frame_line_first(const struct frame_line *line);

/* Returns the last frame, or NULL if the line is empty. */
struct waiting_frame *frame_line_last(const struct frame_line *line);

/* Removes and returns the first frame, for waiting_put_back or waiting_destroy. Requires that
 * there is one. */
struct waiting_frame *waiting_take(struct waiting_frames *waiting, struct frame_line *line);

/* Removes and returns the last frame, for waiting_destroy. Requires that there is one. */
struct waiting_frame *waiting_take_last(struct waiting_frames *waiting,
                                        struct frame_line *line);

/* The frame is the first one of its line again. */
void waiting_put_back(struct waiting_frames *waiting, struct frame_line *line,
                      struct waiting_frame *first);

/* Frees a frame that was taken. */
void waiting_destroy(struct waiting_frame *taken);

/* Frees all frames of the line. */
void waiting_clear(struct waiting_frames *waiting, struct frame_line *line);

/* Returns true if the frame lacks a packet, so that it has to wait. */
bool waiting_lacks(const struct repl_frame *frame);
