/* judge.h - measures how long a fuzz target computes without checking for time left.
 *
 *   judge_begin ─► … loop_time_left … end of a turn … loop_time_left … ─► judge_end
 *                 └─ a stretch ──┘└─ a stretch ─┘└── a stretch ──┘
 *
 * The sum of all stretches is the cost of an input. Work that grows with the square of the
 * input may check for time left as often as it should, and still delay every client.
 *
 * The linker wraps every loop_time_left, loop_turn and uv_run of a target with judge.c, so
 * the tested code is the code that ships. A target without a loop is one stretch, unless it
 * calls judge_rest between its parts. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Nanoseconds of the thread's CPU time since judge_begin. */
struct judgement {
    int64_t longest_ns; /* the longest stretch */
    int64_t whole_ns;   /* sum of all stretches */
};

/* Begins a new input: all measurements are 0. */
void judge_begin(void);

/* Ends a stretch and begins the next. For work that a target repeats with the same input
 * (whole, cut, byte by byte): the gateway does it once. */
void judge_rest(void);

/* Work between these two calls prepares or cleans up, and does not count. */
void judge_pause(void);
void judge_resume(void);

/* Copies this process while the measurement is paused. Returns true in the copy, which ends
 * itself by judge_leave. Then this returns false, with the result of the copy; what that has
 * measured counts here. Aborts if the copy ends in another way. */
bool judge_in_copy(int *result);
_Noreturn void judge_leave(int result);

struct judgement judge_end(void);

/* Returns true from the first judge_begin on. A target that needs a world then fills it. */
bool judge_measures(void);
