/* places.h - limits the runs on a machine by the CPU and memory of their presets; pure.
 *
 *   place_take ─► executes ── place_wait ──► waits: its CPU and memory are free for others
 *                    ▲                         │
 *                    └────── place_resume ◄────┘     place_leave, from either
 *
 * A place is the CPU and memory that one run takes. A waiting run keeps its process, so the
 * memory of all runs is limited, not only the CPU and memory of executing ones. When
 * waiting runs fill the memory, others still start until there are processes_max processes;
 * otherwise waiting parents would keep their children from running. A run that resumes
 * takes its place back at once, even if that exceeds the limits; then nothing new starts
 * until there is room again. */
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
    /* max executing runs, whatever they take; 0: limited by CPU and memory */
    unsigned runs;
    unsigned processes_max; /* max processes, even if waiting runs fill the memory */
    bool strict;            /* rejects runs larger than the whole machine */
};

enum place_state { PLACE_NONE, PLACE_EXECUTES, PLACE_WAITS };

struct machine_place {
    uint64_t cpu, memory; /* units as in places_options */
    enum place_state state;
};

struct places {
    struct places_options options;
    uint64_t cpu, memory;    /* of executing runs */
    uint64_t waiting_memory; /* of waiting runs */
    unsigned executing, waiting;
};

enum place_answer {
    PLACE_TAKEN,
    /* Taken by a run larger than the whole machine; nothing else executes alongside it. */
    PLACE_ALONE,
    PLACE_LATER,
    PLACE_NEVER, /* larger than the whole machine, and strict */
};

void places_init(struct places *places, const struct places_options *options);

/* Makes the place of a run with this many cores and GB. */
struct machine_place place_of(double cores, double gigabytes);

/* Returns true if the smallest preset fits. */
bool places_have_room(const struct places *places);

/* Sets the cores and GB that are left for one more run.
 *
 * Returns false if there is no limit, because only the number of runs is limited, or
 * because nothing executes, so that even a run larger than the machine may start. */
bool places_left(const struct places *places, double *cores, double *gigabytes);

/* Returns the machine presets that have room for one more run, as bits by enum machine. */
unsigned places_machines(const struct places *places);

enum place_answer place_take(struct places *places, struct machine_place *place);

/* Each does nothing if the place is not in the matching state. */
void place_wait(struct places *places, struct machine_place *place);
void place_resume(struct places *places, struct machine_place *place);
void place_leave(struct places *places, struct machine_place *place);
