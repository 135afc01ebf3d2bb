/* places: how many runs execute at once, and what waiting runs leave to others. */
#include "runcast/run.h"
#include "supervisor/runners/places.h"
#include "tests/support/world/unit.h"

enum { GB = 1024, CORE = 1000 };

static struct places make(uint64_t cores, uint64_t gigabytes, unsigned processes_max)
{
    struct places places;
    struct places_options options = { .cpu = cores * CORE,
                                      .memory = gigabytes * GB,
                                      .processes_max = processes_max };
    places_init(&places, &options);
    return places;
}

static void run_takes_cpu_and_memory_of_its_machine(void **state)
{
    (void)state;
    struct places places = make(2, 4, 0);
    struct machine_place small = place_of(0.5, 0.5), medium = place_of(1, 2),
                         other = place_of(1, 2);
    double cores, gigabytes;
    assert_int_equal(place_take(&places, &small), PLACE_TAKEN);
    assert_int_equal(place_take(&places, &medium), PLACE_TAKEN);
    assert_int_equal(place_take(&places, &other), PLACE_LATER);
    assert_true(places_have_room(&places));
    assert_true(places_left(&places, &cores, &gigabytes));
    assert_true(cores == 0.5 && gigabytes == 1.5);
    assert_int_equal(places_machines(&places), 1 << MACHINE_MICRO | 1 << MACHINE_SMALL_1X);
    place_leave(&places, &small);
    assert_int_equal(place_take(&places, &other), PLACE_TAKEN);
    assert_false(places_have_room(&places));
    place_leave(&places, &medium);
    place_leave(&places, &other);
    place_leave(&places, &other);
    assert_int_equal(places.cpu + places.memory + places.executing, 0);
}

static void run_takes_at_least_what_a_process_needs(void **state)
{
    (void)state;
    struct places places = make(8, 1, 0);
    struct machine_place all[5];
    for (int i = 0; i < 4; i++) {
        all[i] = place_of(0.01, 0.01);
        assert_int_equal(place_take(&places, &all[i]), PLACE_TAKEN);
    }
    all[4] = place_of(0.01, 0.01);
    assert_int_equal(place_take(&places, &all[4]), PLACE_LATER);
}

static void waiting_run_frees_its_place_and_takes_it_back(void **state)
{
    (void)state;
    struct places places = make(1, 1, 0);
    struct machine_place parent = place_of(1, 0.5), child = place_of(1, 0.5);
    assert_int_equal(place_take(&places, &parent), PLACE_TAKEN);
    assert_int_equal(place_take(&places, &child), PLACE_LATER);
    place_wait(&places, &parent);
    place_wait(&places, &parent);
    assert_int_equal(place_take(&places, &child), PLACE_TAKEN);
    place_resume(&places, &parent);
    place_resume(&places, &parent);
    assert_int_equal(places.executing, 2);
    assert_false(places_have_room(&places));
    place_leave(&places, &child);
    assert_false(places_have_room(&places));
    place_leave(&places, &parent);
    assert_true(places_have_room(&places));
}

static void waiting_runs_that_fill_memory_do_not_block_others(void **state)
{
    (void)state;
    struct places places = make(4, 1, 5);
    struct machine_place waiting[5], next = place_of(0.5, 0.5);
    for (int i = 0; i < 5; i++) {
        waiting[i] = place_of(0.5, 0.5);
        assert_int_equal(place_take(&places, &waiting[i]), PLACE_TAKEN);
        place_wait(&places, &waiting[i]);
    }
    assert_int_equal(place_take(&places, &next), PLACE_LATER);
    place_leave(&places, &waiting[0]);
    assert_int_equal(place_take(&places, &next), PLACE_TAKEN);
}

static void run_larger_than_the_machine_executes_alone(void **state)
{
    (void)state;
    struct places places = make(2, 2, 10);
    struct machine_place small = place_of(0.5, 0.5), large = place_of(8, 16);
    assert_int_equal(place_take(&places, &small), PLACE_TAKEN);
    assert_int_equal(place_take(&places, &large), PLACE_LATER);
    place_leave(&places, &small);
    assert_int_equal(place_take(&places, &large), PLACE_ALONE);
    assert_int_equal(place_take(&places, &small), PLACE_LATER);
    place_wait(&places, &large);
    assert_int_equal(place_take(&places, &small), PLACE_TAKEN);
    place_leave(&places, &small);
    place_leave(&places, &large);
    places.options.strict = true;
    assert_int_equal(place_take(&places, &large), PLACE_NEVER);
}

static void fixed_limit_counts_executing_runs(void **state)
{
    (void)state;
    struct places places;
    struct places_options options = { .runs = 2, .processes_max = 3 };
    struct machine_place all[4];
    places_init(&places, &options);
    for (int i = 0; i < 4; i++)
        all[i] = place_of(8, 16);
    assert_int_equal(place_take(&places, &all[0]), PLACE_TAKEN);
    assert_int_equal(place_take(&places, &all[1]), PLACE_TAKEN);
    assert_int_equal(place_take(&places, &all[2]), PLACE_LATER);
    place_wait(&places, &all[0]);
    assert_int_equal(place_take(&places, &all[2]), PLACE_TAKEN);
    place_wait(&places, &all[1]);
    assert_int_equal(place_take(&places, &all[3]), PLACE_LATER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run_takes_cpu_and_memory_of_its_machine),
        cmocka_unit_test(run_takes_at_least_what_a_process_needs),
        cmocka_unit_test(waiting_run_frees_its_place_and_takes_it_back),
        cmocka_unit_test(waiting_runs_that_fill_memory_do_not_block_others),
        cmocka_unit_test(run_larger_than_the_machine_executes_alone),
        cmocka_unit_test(fixed_limit_counts_executing_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
