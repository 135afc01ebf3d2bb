/* Rules of the frames that do not depend on their encoding. */
#include "tests/support/world/unit.h"

#include "core/replication/frames.h"

static void both_sides_speak_the_highest_common_version(void **state)
{
    (void)state;
    assert_int_equal(repl_version_common(REPL_VERSION, REPL_VERSION), REPL_VERSION);
    assert_int_equal(repl_version_common(0, UINT32_MAX), REPL_VERSION);
    assert_int_equal(repl_version_common(REPL_VERSION + 1, REPL_VERSION + 2), 0);
    assert_int_equal(repl_version_common(0, REPL_VERSION_LEAST - 1), 0);
    assert_int_equal(repl_version_common(3, 2), 0);
}

static void followers_need_the_documents_of_accounts(void **state)
{
    (void)state;
    assert_true(repl_document_follows(DOC_KEY));
    assert_true(repl_document_follows(DOC_ENVIRONMENT));
    assert_false(repl_document_follows(DOC_TRACE_PIECE));
    assert_false(repl_document_follows(DOC_PACKET));
}

static void end_is_planned_if_the_lead_was_handed_over(void **state)
{
    (void)state;
    assert_true(repl_end_is_planned("the lead was handed over"));
    assert_true(repl_end_is_planned("the lead was handed over to another gateway"));
    assert_false(repl_end_is_planned("the lead was lost"));
    assert_false(repl_end_is_planned("the connection ended"));
    assert_false(repl_end_is_planned(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_sides_speak_the_highest_common_version),
        cmocka_unit_test(followers_need_the_documents_of_accounts),
        cmocka_unit_test(end_is_planned_if_the_lead_was_handed_over),
    };
    return cmocka_run_group_tests_name("frames", tests, NULL, NULL);
}
