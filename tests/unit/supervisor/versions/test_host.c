/* host: which program executes a version. */
#include "supervisor/versions/host.h"

#include <stdlib.h>

#include "tests/support/world/unit.h"

static void the_program_of_a_runtime_is_found(void **state)
{
    static const struct {
        const char *programs, *runtime, *program;
    } cases[] = {
        { "", "node", "node" },
        { "", "node-22", "node" },
        { "22=/opt/22 24=/opt/24", "node-24", "/opt/24" },
        { "22=/opt/22,24=/opt/24", "node-22", "/opt/22" },
        { "22=/opt/22", "node", "node" },
        { "22=relative", "node-22", "node" },
        { "bun=/opt/bun", "bun", "/opt/bun" },
        { "bun=/opt/bun", "bun-1.4", NULL },
        { "", "bun", NULL },
        { " ,, =,x", "node", "node" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *program = NULL;
        struct failure why = { 0 };
        enum err refused =
            host_program(cases[i].programs, slice_of(cases[i].runtime), &program, &why);
        assert_int_equal(refused, cases[i].program ? OK : ERR_RULE);
        if (cases[i].program)
            assert_string_equal(program, cases[i].program);
        free(program);
    }
}

static void machine_reports_cores_memory_architecture_and_libc(void **state)
{
    (void)state;
    assert_true(host_cores() >= 1);
    assert_true(host_memory() > 1 << 20);
    assert_true(*host_architecture() && *host_libc());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_program_of_a_runtime_is_found),
        cmocka_unit_test(machine_reports_cores_memory_architecture_and_libc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
