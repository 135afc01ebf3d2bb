/* The states of a deployment follow a table, and its document contains its whole row. */
#include "api/deployments/deployment.h"

#include "base/json/members.h"
#include "tests/support/world/unit.h"

/* ---- states ---- */

static void deployment_states_follow_their_table(void **state)
{
    (void)state;
    /* For each state that may be left: its next states, in the order of the enum. */
    static const char *const table[DEPLOYMENT_STATUSES] = {
        [DEPLOYMENT_PENDING] = ".x...xxx",
        [DEPLOYMENT_INSTALLING] = "x.xx.xxx",
        [DEPLOYMENT_BUILDING] = "x..x.xxx",
        [DEPLOYMENT_DEPLOYING] = "x...xxxx",
    };
    for (int from = 0; from < DEPLOYMENT_STATUSES; from++)
        for (int to = 0; to < DEPLOYMENT_STATUSES; to++)
            assert_int_equal(deployment_may_become((enum deployment_status)from,
                                                   (enum deployment_status)to),
                             table[from] && table[from][to] == 'x');
}

static void final_states_are_never_left(void **state)
{
    (void)state;
    for (int from = 0; from < DEPLOYMENT_STATUSES; from++) {
        bool any = false;
        for (int to = 0; to < DEPLOYMENT_STATUSES; to++)
            any |= deployment_may_become((enum deployment_status)from,
                                         (enum deployment_status)to);
        assert_int_equal(any, !deployment_is_final((enum deployment_status)from));
    }
}

static void states_are_found_by_name(void **state)
{
    (void)state;
    enum deployment_status found;
    for (int i = 0; i < DEPLOYMENT_STATUSES; i++) {
        const char *name = deployment_status_name((enum deployment_status)i);
        assert_true(deployment_status_find(slice_of(name), &found));
        assert_int_equal(found, i);
    }
    assert_false(deployment_status_find(SLICE("deployed"), &found));
}

/* ---- documents ---- */

static struct deployment_row whole_row(void)
{
    struct deployment_row row = { .status = DEPLOYMENT_DEPLOYED,
                                  .version = "20261120.3",
                                  .content_hash = "hash",
                                  .request_hash = "aa",
                                  .skip_promotion = true,
                                  .created_at = 1,
                                  .started_at = 2,
                                  .deployed_at = 3,
                                  .ended_at = 4,
                                  .builds = 2,
                                  .archive_bytes = 5,
                                  .version_bytes = 6,
                                  .archive_hash = "bb",
                                  .architecture = "x64",
                                  .libc = "glibc",
                                  .has_index = true,
                                  .promotes = true };
    deployment_row_name(&row, 1700000000000);
    row.external_id = bytes_create(SLICE("ci-\"1\""));
    row.runtime = bytes_create(SLICE("node-22"));
    row.runtime_version = bytes_create(SLICE("22.1.0"));
    row.git = bytes_create(SLICE("{\"n\":12345678901234567890}"));
    row.triggered_via = bytes_create(SLICE("cli:manual"));
    row.request = bytes_create(SLICE("key"));
    row.error = bytes_create(SLICE("{\"name\":\"E\",\"message\":\"m\"}"));
    row.canceled_reason = bytes_create(SLICE("why"));
    return row;
}

static void document_contains_the_whole_row(void **state)
{
    (void)state;
    struct deployment_row row = whole_row(), read;
    struct failure why;
    struct bytes *body = deployment_write(&row);
    assert_int_equal(deployment_read(bytes_slice(body), &read, &why), OK);
    struct bytes *again = deployment_write(&read);
    assert_true(slice_equal(bytes_slice(body), bytes_slice(again)));
    assert_int_equal(read.status, row.status);
    assert_string_equal(read.id, row.id);
    assert_string_equal(read.version, row.version);
    assert_int_equal(read.builds, row.builds);
    assert_int_equal(read.version_bytes, row.version_bytes);
    assert_true(read.promotes && read.has_index && read.skip_promotion);
    assert_true(slice_equal(bytes_slice(read.git), bytes_slice(row.git)));
    assert_true(slice_equal(bytes_slice(read.external_id), bytes_slice(row.external_id)));
    bytes_unref(body);
    bytes_unref(again);
    deployment_row_finish(&read);
    deployment_row_finish(&row);
}

static void row_without_optional_values_is_restored(void **state)
{
    (void)state;
    struct deployment_row row = { .version = "20261120.1", .content_hash = "h" }, read;
    struct failure why;
    deployment_row_name(&row, 1700000000000);
    struct bytes *body = deployment_write(&row);
    assert_int_equal(deployment_read(bytes_slice(body), &read, &why), OK);
    assert_int_equal(read.status, DEPLOYMENT_PENDING);
    assert_null(read.external_id);
    assert_null(read.error);
    assert_int_equal(read.archive_bytes, 0);
    bytes_unref(body);
    deployment_row_finish(&read);
}

static void damaged_document_is_rejected(void **state)
{
    (void)state;
    static const char *const damaged[] = {
        "",
        "{",
        "[]",
        "{}",
        "{\"id\":\"deployment_a\",\"version\":\"20261120.1\"}",
        "{\"id\":\"deployment_a\",\"version\":\"20261120.1\",\"status\":\"NONE\"}",
        "{\"id\":\"\",\"version\":\"20261120.1\",\"status\":\"PENDING\"}",
        "{\"id\":\"d\",\"version\":\"20261120.123456789012345678\",\"status\":\"FAILED\"}",
        "{\"id\":\"deployment_\\u0000\",\"version\":\"20261120.1\",\"status\":\"PENDING\"}",
    };
    for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++) {
        struct deployment_row read;
        struct failure why = { 0 };
        assert_int_equal(deployment_read(slice_of(damaged[i]), &read, &why), ERR_INVALID);
        assert_int_equal(why.code, ERR_INVALID);
    }
}

/* ---- ends ---- */

static void failed_deployment_keeps_only_its_error(void **state)
{
    (void)state;
    struct deployment_row row = whole_row();
    deployment_row_end(&row, DEPLOYMENT_CANCELED, NULL, bytes_create(SLICE("again")), 9);
    assert_int_equal(row.status, DEPLOYMENT_CANCELED);
    assert_int_equal(row.ended_at, 9);
    assert_int_equal(row.archive_bytes, 0);
    assert_false(row.has_index);
    assert_null(row.error);
    assert_true(slice_is(bytes_slice(row.canceled_reason), "again"));
    deployment_row_finish(&row);
}

/* Four-byte characters fit evenly into only one of the limits. */
static void errors_are_cut_between_characters(void **state)
{
    (void)state;
    struct buf text = { 0 };
    buf_add_char(&text, 'a');
    while (text.len < 2 * ERROR_STACK_MAX)
        buf_add_text(&text, "\xf0\x9f\x98\x80");
    buf_add_text(&text, "end");
    struct deployment_error error = { .name = buf_slice(&text),
                                      .message = buf_slice(&text),
                                      .stack = buf_slice(&text),
                                      .stderr_text = buf_slice(&text) };
    struct bytes *written = deployment_error_write(&error);
    static const struct {
        const char *member;
        size_t most;
    } members[] = { { "name", ERROR_NAME_MAX },
                    { "message", ERROR_MESSAGE_MAX },
                    { "stack", ERROR_STACK_MAX },
                    { "stderr", ERROR_STDERR_MAX } };
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        struct bytes *value = members_text(bytes_slice(written), members[i].member);
        assert_non_null(value);
        assert_true(value->len <= members[i].most && value->len > members[i].most - 4);
        assert_true(text_is_utf8(bytes_slice(value)));
        bool is_end = value->len > 3 && !memcmp(value->data + value->len - 3, "end", 3);
        assert_int_equal(is_end, !strcmp(members[i].member, "stderr"));
        bytes_unref(value);
    }
    bytes_unref(written);
    buf_finish(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deployment_states_follow_their_table),
        cmocka_unit_test(final_states_are_never_left),
        cmocka_unit_test(states_are_found_by_name),
        cmocka_unit_test(document_contains_the_whole_row),
        cmocka_unit_test(row_without_optional_values_is_restored),
        cmocka_unit_test(damaged_document_is_rejected),
        cmocka_unit_test(failed_deployment_keeps_only_its_error),
        cmocka_unit_test(errors_are_cut_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
