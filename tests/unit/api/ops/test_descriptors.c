/* Counts open descriptors, whichever way the kernel offers. */
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "api/ops/descriptors.h"
#include "tests/support/world/unit.h"

enum { MORE = 700, ASKS = 3 };

static int64_t count(void)
{
    struct loop *loop = loop_create(NULL);
    struct timeslice timeslice = loop_timeslice(loop);
    struct descriptors descriptors;
    descriptors_begin(&descriptors);
    while (!descriptors_count_some(&descriptors, &timeslice))
        loop_turn(loop, 1);
    loop_destroy(loop);
    return descriptors.count;
}

/* Counts as before Linux 6.2: entry by entry, some in each turn. */
static int64_t count_entries(int *turns)
{
    struct loop *loop = loop_create(NULL);
    struct descriptors descriptors = { .folder = open("/proc/self/fd", O_RDONLY) };
    loop_set_budget(loop, ASKS);
    assert_true(descriptors.folder >= 0);
    for (*turns = 1;; ++*turns) {
        struct timeslice timeslice = loop_timeslice(loop);
        if (descriptors_count_some(&descriptors, &timeslice))
            break;
        loop_turn(loop, 1);
    }
    loop_destroy(loop);
    return descriptors.count;
}

static void opened_descriptors_are_counted(void **state)
{
    int opened[MORE], turns;
    int64_t before = count();
    (void)state;
    assert_int_equal(count_entries(&turns), before);
    assert_int_equal(turns, 1);
    for (int i = 0; i < MORE; i++)
        assert_true((opened[i] = dup(0)) >= 0);
    assert_int_equal(count(), before + MORE);
    assert_int_equal(count_entries(&turns), before + MORE);
    assert_true(turns > 1);
    for (int i = 0; i < MORE; i++)
        close(opened[i]);
    assert_int_equal(count(), before);
}

static void limit_is_that_of_the_process(void **state)
{
    struct rlimit limit;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = 123;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(descriptors_limit(), 123);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opened_descriptors_are_counted),
        cmocka_unit_test(limit_is_that_of_the_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
