/* waiting.c - lists of frames, and how much memory they take. */
#include "core/replication/waiting.h"

#include <stdlib.h>

#include "base/mem.h"

void waiting_init_line(struct waiting_frames *waiting, struct frame_line *line)
{
    list_init(&line->frames);
    left_out_init_line(&waiting->left_out, &line->left_out);
}

void waiting_init(struct waiting_frames *waiting, const struct left_out_options *options)
{
    *waiting = (struct waiting_frames){ 0 };
    left_out_init(&waiting->left_out, options);
    waiting_init_line(waiting, &waiting->in_order);
}

static bool is_of_run(const struct repl_frame *frame)
{
    return frame->kind == REPL_CHANGE || frame->kind == REPL_BEFORE;
}

bool waiting_lacks(const struct repl_frame *frame)
{
    return is_of_run(frame) && frame->run.marks & REPL_LEFT_OUT;
}

static void count(struct waiting_frames *waiting, struct frame_line *line,
                  const struct waiting_frame *one, bool waits)
{
    size_t changes = one->frame.kind == REPL_CHANGE;
    size_t bytes = waits ? one->bytes : -one->bytes;
    changes = waits ? changes : -changes;
    line->bytes += bytes;
    line->changes += changes;
    waiting->bytes += bytes;
    waiting->changes += changes;
}

/* A short frame takes more memory than bytes on the wire. */
struct waiting_frame *waiting_create(const struct repl_frame *frame, size_t bytes)
{
    struct waiting_frame *one = mem_new(struct waiting_frame);
    *one = (struct waiting_frame){ .frame = *frame, .bytes = bytes + sizeof(*one) };
    return one;
}

static void append(struct waiting_frames *waiting, struct frame_line *line,
                   struct waiting_frame *one)
{
    list_append(&line->frames, &one->link);
    count(waiting, line, one, true);
}

void waiting_add(struct waiting_frames *waiting, struct waiting_frame *one)
{
    append(waiting, &waiting->in_order, one);
}

void waiting_hold(struct waiting_frames *waiting, struct frame_line *line,
                  struct waiting_frame *one)
{
    append(waiting, line, one);
    if (!waiting_lacks(&one->frame))
        return;
    one->left_out.change = &one->frame.run;
    one->left_out.is_before = one->frame.kind == REPL_BEFORE;
    left_out_add(&line->left_out, &one->left_out);
}

struct waiting_frame *frame_line_first(const struct frame_line *line)
{
    return list_empty(&line->frames)
               ? NULL
               : container_of(line->frames.next, struct waiting_frame, link);
}

struct waiting_frame *waiting_take(struct waiting_frames *waiting, struct frame_line *line)
{
    struct waiting_frame *first =
        container_of(list_take(&line->frames), struct waiting_frame, link);
    count(waiting, line, first, false);
    return first;
}

struct waiting_frame *frame_line_last(const struct frame_line *line)
{
    return list_empty(&line->frames)
               ? NULL
               : container_of(line->frames.prev, struct waiting_frame, link);
}

struct waiting_frame *waiting_take_last(struct waiting_frames *waiting,
                                        struct frame_line *line)
{
    struct waiting_frame *last = frame_line_last(line);
    list_remove(&last->link);
    count(waiting, line, last, false);
    return last;
}

void waiting_put_back(struct waiting_frames *waiting, struct frame_line *line,
                      struct waiting_frame *first)
{
    list_append(line->frames.next, &first->link); /* before the first */
    count(waiting, line, first, true);
}

void waiting_destroy(struct waiting_frame *taken)
{
    left_out_forget(&taken->left_out);
    repl_frame_finish(&taken->frame);
    free(taken);
}

void waiting_clear(struct waiting_frames *waiting, struct frame_line *line)
{
    left_out_read_on(&line->left_out, false);
    while (!list_empty(&line->frames))
        waiting_destroy(waiting_take(waiting, line));
    left_out_read_on(&line->left_out, true);
}
