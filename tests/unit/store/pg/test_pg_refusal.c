/* Which remedy each error of PostgreSQL has. */
#include "store/pg/sql/pg_refusal.h"

#include "tests/support/world/unit.h"

/* A class of errors has one remedy, and some of its members have another. */
static void error_code_has_its_own_remedy_or_that_of_its_class(void **state)
{
    (void)state;
    assert_int_equal(pg_remedy_of("53300"), PG_REPEAT);     /* too_many_connections */
    assert_int_equal(pg_remedy_of("53100"), PG_NO_SPACE);   /* disk_full */
    assert_int_equal(pg_remedy_of("53400"), PG_ONE_BY_ONE); /* e.g. temp_file_limit */
    assert_int_equal(pg_remedy_of("57P01"), PG_REPEAT);     /* admin_shutdown */
    assert_int_equal(pg_remedy_of("57014"), PG_STOPPED);    /* query_canceled */
    assert_int_equal(pg_remedy_of("23505"), PG_ONE_BY_ONE); /* unique_violation */
    assert_int_equal(pg_remedy_of("42501"), PG_REFUSED);    /* insufficient_privilege */
    assert_int_equal(pg_remedy_of(NULL), PG_REPEAT);        /* lost connection */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(error_code_has_its_own_remedy_or_that_of_its_class),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
