/* waiting.c - a list of frames, and how much memory they take. */
#include "core/replication/waiting.h"

#include <stdlib.h>

#include "base/mem.h"

void waiting_init(struct waiting_frames *waiting, const struct left_out_options *options)
{
    *waiting = (struct waiting_frames){ 0 };
    list_init(&waiting->frames);
    left_out_init(&waiting->left_out, options);
}

static bool is_of_run(const struct repl_frame *frame)
{
    return frame->kind == REPL_CHANGE || frame->kind == REPL_BEFORE;
}

bool waiting_lacks(const struct repl_frame *frame)
{
    return is_of_run(frame) && frame->run.marks & REPL_LEFT_OUT;
}

static void count(struct waiting_frames *waiting, const struct waiting_frame *one,
                  bool waits)
{
    size_t changes = one->frame.kind == REPL_CHANGE;
    waiting->bytes += waits ? one->bytes : -one->bytes;
    waiting->changes += waits ? changes : -changes;
}

/* A short frame takes more memory than bytes on the wire. */
void waiting_add(struct waiting_frames *waiting, const struct repl_frame *frame,
                 size_t bytes)
{
    struct waiting_frame *one = mem_new(struct waiting_frame);
    *one = (struct waiting_frame){ .frame = *frame, .bytes = bytes + sizeof(*one) };
    list_append(&waiting->frames, &one->link);
    count(waiting, one, true);
    if (!waiting_lacks(frame))
        return;
    one->left_out.change = &one->frame.run;
    one->left_out.is_before = frame->kind == REPL_BEFORE;
    left_out_add(&waiting->left_out, &one->left_out);
}

bool waiting_is_ready(const struct waiting_frames *waiting)
{
    return !list_empty(&waiting->frames) &&
           !waiting_lacks(
               &container_of(waiting->frames.next, struct waiting_frame, link)->frame);
}

struct waiting_frame *waiting_take(struct waiting_frames *waiting)
{
    struct waiting_frame *first =
        container_of(list_take(&waiting->frames), struct waiting_frame, link);
    count(waiting, first, false);
    return first;
}

void waiting_put_back(struct waiting_frames *waiting, struct waiting_frame *first)
{
    list_append(waiting->frames.next, &first->link); /* before the first */
    count(waiting, first, true);
}

void waiting_destroy(struct waiting_frames *waiting, struct waiting_frame *taken)
{
    left_out_forget(&waiting->left_out, &taken->left_out);
    repl_frame_finish(&taken->frame);
    free(taken);
}

void waiting_clear(struct waiting_frames *waiting)
{
    left_out_read_on(&waiting->left_out, false);
    while (!list_empty(&waiting->frames))
        waiting_destroy(waiting, waiting_take(waiting));
}
