/* places.c - adds up the CPU and memory of runs. */
#include "supervisor/runners/places.h"

#include "runcast/run.h"

enum { THOUSAND = 1000, MIB_OF_GB = 1024 };

void places_init(struct places *places, const struct places_options *options)
{
    *places = (struct places){ .options = *options };
}

struct machine_place place_of(double cores, double gigabytes)
{
    struct machine_place place = { .cpu = (uint64_t)(cores * (double)THOUSAND),
                                   .memory = (uint64_t)(gigabytes * (double)MIB_OF_GB) };
    if (place.cpu < PLACE_CPU_LEAST)
        place.cpu = PLACE_CPU_LEAST;
    if (place.memory < PLACE_MEMORY_LEAST)
        place.memory = PLACE_MEMORY_LEAST;
    return place;
}

static bool is_oversized(const struct places *places, const struct machine_place *place)
{
    return !places->options.runs &&
           (place->cpu > places->options.cpu || place->memory > places->options.memory);
}

/* Returns true if one more process may start while waiting runs fill the memory. */
static bool may_exceed(const struct places *places)
{
    return places->executing + places->waiting < places->options.processes_max;
}

static bool fits(const struct places *places, const struct machine_place *place)
{
    const struct places_options *options = &places->options;
    if (options->runs)
        return places->executing < options->runs &&
               (places->executing + places->waiting < options->runs || may_exceed(places));
    if (is_oversized(places, place))
        return !options->strict && !places->executing &&
               (!places->waiting || may_exceed(places));
    uint64_t memory = places->memory + place->memory;
    return places->cpu + place->cpu <= options->cpu && memory <= options->memory &&
           (memory + places->waiting_memory <= options->memory || may_exceed(places));
}

bool places_have_room(const struct places *places)
{
    struct machine_place least = place_of(0, 0);
    return fits(places, &least);
}

static double left(uint64_t all, uint64_t used, double unit)
{
    return used < all ? (double)(all - used) / unit : 0;
}

bool places_left(const struct places *places, double *cores, double *gigabytes)
{
    uint64_t memory = places->memory + (may_exceed(places) ? 0 : places->waiting_memory);
    *cores = left(places->options.cpu, places->cpu, THOUSAND);
    *gigabytes = left(places->options.memory, memory, MIB_OF_GB);
    return !places->options.runs &&
           (places->executing || (places->waiting && !may_exceed(places)));
}

unsigned places_machines(const struct places *places)
{
    double cores, gigabytes;
    unsigned fit = 0;
    if (!places_have_room(places))
        return 0;
    bool limited = places_left(places, &cores, &gigabytes);
    for (enum machine machine = 0; machine < MACHINE_COUNT; machine++)
        if (!limited ||
            (machine_cpu(machine) <= cores && machine_memory_gb(machine) <= gigabytes))
            fit |= 1u << machine;
    return fit;
}

static void execute(struct places *places, struct machine_place *place)
{
    place->state = PLACE_EXECUTES;
    places->executing++;
    places->cpu += place->cpu;
    places->memory += place->memory;
}

static void stop(struct places *places, struct machine_place *place)
{
    places->executing--;
    places->cpu -= place->cpu;
    places->memory -= place->memory;
}

enum place_answer place_take(struct places *places, struct machine_place *place)
{
    bool alone = is_oversized(places, place);
    if (alone && places->options.strict)
        return PLACE_NEVER;
    if (!fits(places, place))
        return PLACE_LATER;
    execute(places, place);
    return alone ? PLACE_ALONE : PLACE_TAKEN;
}

void place_wait(struct places *places, struct machine_place *place)
{
    if (place->state != PLACE_EXECUTES)
        return;
    stop(places, place);
    place->state = PLACE_WAITS;
    places->waiting++;
    places->waiting_memory += place->memory;
}

static void stop_waiting(struct places *places, const struct machine_place *place)
{
    places->waiting--;
    places->waiting_memory -= place->memory;
}

void place_resume(struct places *places, struct machine_place *place)
{
    if (place->state != PLACE_WAITS)
        return;
    stop_waiting(places, place);
    execute(places, place);
}

void place_leave(struct places *places, struct machine_place *place)
{
    if (place->state == PLACE_EXECUTES)
        stop(places, place);
    else if (place->state == PLACE_WAITS)
        stop_waiting(places, place);
    place->state = PLACE_NONE;
}
