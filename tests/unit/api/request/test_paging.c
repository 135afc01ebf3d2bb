/* The page that a query requests: defaults, limits, and values that are not numbers. */
#include "tests/support/world/unit.h"

#include "api/request/paging.h"

/* Reads a query with one parameter. */
static const char *read(const char *name, const char *value, struct numbered_page *page)
{
    struct query_pair pair = { slice_of(name), slice_of(value) };
    struct api_call call = { .query = &pair, .query_count = 1 };
    *page = (struct numbered_page){ .number = 1, .size = 20 };
    const char *wrong = paging_read(&call, page);
    ignored_finish(&call.ignored);
    return wrong;
}

static void page_size_is_as_requested_up_to_a_limit(void **state)
{
    (void)state;
    struct numbered_page page;
    assert_null(read("other", "x", &page));
    assert_int_equal(paging_first(&page), 0);
    assert_int_equal(paging_end(&page), 20);
    assert_null(read("page", "3", &page));
    assert_int_equal(paging_first(&page), 40);
    assert_null(read("perPage", "101", &page));
    assert_int_equal(page.size, PAGE_SIZE_MAX);
    assert_null(read("page", "18446744073709551615", &page));
    assert_true(paging_first(&page) > UINT32_MAX &&
                paging_end(&page) > paging_first(&page));
}

static void invalid_page_number_is_rejected_by_name(void **state)
{
    (void)state;
    static const char *const values[] = { "", "0", "-1", "1.5", "x", " 1" };
    struct numbered_page page;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        assert_string_equal(read("page", values[i], &page), "page");
        assert_string_equal(read("perPage", values[i], &page), "perPage");
    }
}

static void last_page_may_be_partial(void **state)
{
    (void)state;
    const struct numbered_page page = { .number = 2, .size = 20 };
    struct buf out = { 0 };
    paging_add(&out, &page, 41);
    assert_true(
        slice_is(buf_slice(&out),
                 "\"pagination\":{\"currentPage\":2,\"totalPages\":3,\"count\":41}"));
    buf_finish(&out);
}

static void page_size_with_a_cursor_is_limited(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t size; /* 0: rejected */
    } cases[] = { { "", 25 },   { "1", 1 }, { "100", 100 },
                  { "101", 0 }, { "0", 0 }, { "x", 0 } };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct query_pair pair = { SLICE("page[size]"), slice_of(cases[i].text) };
        struct api_call call = { .query = &pair, .query_count = 1 };
        uint64_t size = 25;
        enum err err = paging_read_size(&call, PAGE_SIZE_MAX, &size);
        assert_int_equal(err, cases[i].size ? OK : ERR_INVALID);
        if (!err)
            assert_int_equal(size, cases[i].size);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(page_size_is_as_requested_up_to_a_limit),
        cmocka_unit_test(invalid_page_number_is_rejected_by_name),
        cmocka_unit_test(last_page_may_be_partial),
        cmocka_unit_test(page_size_with_a_cursor_is_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
