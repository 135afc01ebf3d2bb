/* places.h - how many runs a machine executes at once, by the CPU and memory of their presets;
 * pure.
 *
 *   place_take ─► executes ── place_wait ──► waits: its CPU and memory are free for others
 *                    ▲                         │
 *                    └────── place_resume ◄────┘     place_leave, from either
 *
 * A run that waits keeps its process. So beside the CPU and memory of those that execute, the
 * memory of all counts; when that is full of waiting ones, others start all the same until
 * there are processes_max processes: else parents that wait would keep their children from
 * running. One that goes on takes its place back at once, even when there is none: then
 * nothing new starts until there is. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
    PLACE_MEMORY_LEAST = 256 /* MiB */,
    PLACE_CPU_LEAST = 250 /* thousandths of a core */
};

struct places_options {
    uint64_t cpu;    /* thousandths of a core */
    uint64_t memory; /* MiB */
    unsigned runs;   /* that execute at once, whatever they take; 0: by CPU and memory */
    unsigned processes_max; /* beyond the room, while others wait */
    bool strict;            /* what is larger than the whole is refused */
};

enum place_state { PLACE_NONE, PLACE_EXECUTES, PLACE_WAITS };

struct machine_place {
    uint64_t cpu, memory; /* as in places_options */
    enum place_state state;
};

struct places {
    struct places_options options;
    uint64_t cpu, memory;    /* of those that execute */
    uint64_t waiting_memory; /* of those that wait */
    unsigned executing, waiting;
};

enum place_answer {
    PLACE_TAKEN,
    PLACE_ALONE, /* taken; it is larger than the whole, and nothing else executes with it */
    PLACE_LATER,
    PLACE_NEVER, /* larger than the whole, where that is refused */
};

void places_init(struct places *places, const struct places_options *options);

/* What a machine preset takes: cores and GB. */
struct machine_place place_of(double cores, double gigabytes);

/* Is there a place for the smallest preset? */
bool places_have_room(const struct places *places);

/* What one run more may take, in cores and GB: its machine fits when it takes at most that.
 * False: whatever it takes; while nothing executes, also what is larger than the whole. */
bool places_left(const struct places *places, double *cores, double *gigabytes);

/* The machines of which one run more fits, as bits by enum machine. */
unsigned places_machines(const struct places *places);

enum place_answer place_take(struct places *places, struct machine_place *place);

/* Each is harmless where there is nothing to change. */
void place_wait(struct places *places, struct machine_place *place);
void place_resume(struct places *places, struct machine_place *place);
void place_leave(struct places *places, struct machine_place *place);
