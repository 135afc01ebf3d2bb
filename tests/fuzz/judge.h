/* judge.h - how long a fuzz target computes without asking whether time is left.
 *
 *   judge_begin ─► … loop_time_left … end of a turn … loop_time_left … ─► judge_end
 *                 └─ a stretch ──┘└─ a stretch ─┘└── a stretch ──┘
 *
 * All stretches together are what the input costs: work that grows with the square of the
 * input asks for time left as often as it should, and still keeps everybody waiting.
 *
 * The linker leads every loop_time_left, loop_turn and uv_run of a target through judge.c,
 * so the code under test is what ships. A target without a loop is one stretch, unless it
 * says with judge_rest that it begins with something else. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Nanoseconds of thread CPU time since judge_begin. */
struct judgement {
    int64_t longest_ns; /* stretch */
    int64_t whole_ns;   /* all stretches */
};

/* A new input: nothing was measured yet. */
void judge_begin(void);

/* The stretch ends, and the next one begins. For what a target does again and again with
 * the same input (whole, cut, byte by byte): the gateway does it once. */
void judge_rest(void);

/* What comes in between prepares the input's way, or tidies up, and does not count. */
void judge_pause(void);
void judge_resume(void);

struct judgement judge_end(void);

/* Since the first judge_begin: somebody measures. A target that has a world to prepare then
 * makes it a full one. */
bool judge_measures(void);
