/* waiting.h - frames that wait to be applied, in their order.
 *
 * They wait while memory catches up, for time slices, and for packets that were left out
 * (left_out.h). */
#pragma once

#include "core/replication/left_out.h"

struct waiting_frame {
    struct repl_frame frame;
    size_t bytes;                    /* in memory */
    struct left_out_change left_out; /* of a run */
    struct list link;                // waiting::frames
};

struct waiting_frames {
    struct list frames;    // waiting_frame::link
    size_t bytes, changes; /* of all of them */
    struct left_out left_out;
};

void waiting_init(struct waiting_frames *waiting, const struct left_out_options *options);

/* Takes ownership of the frame's content, which had that many bytes on the wire. */
void waiting_add(struct waiting_frames *waiting, const struct repl_frame *frame,
                 size_t bytes);

static inline bool waiting_is_empty(const struct waiting_frames *waiting)
{
    return list_empty(&waiting->frames);
}

/* Returns true if there is a frame, and the first one lacks no packet. */
bool waiting_is_ready(const struct waiting_frames *waiting);

/* Removes and returns the first frame, for waiting_put_back or waiting_destroy. Requires
 * waiting_is_ready. */
struct waiting_frame *waiting_take(struct waiting_frames *waiting);

/* The frame is the first one again. */
void waiting_put_back(struct waiting_frames *waiting, struct waiting_frame *first);

/* Frees a frame that was taken. */
void waiting_destroy(struct waiting_frames *waiting, struct waiting_frame *taken);

/* Frees all frames. */
void waiting_clear(struct waiting_frames *waiting);

/* Returns true if the frame lacks a packet, so that it has to wait. */
bool waiting_lacks(const struct repl_frame *frame);
