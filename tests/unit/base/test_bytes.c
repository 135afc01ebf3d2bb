/* Bytes are copied once, counted, and freed with the last reference. */
#include "tests/support/world/unit.h"

#include <stdio.h>

#include "base/bytes.h"

static void bytes_are_a_terminated_copy(void **state)
{
    (void)state;
    char text[] = "abc";
    struct bytes *bytes = bytes_create(slice_of(text));
    text[0] = 'x';
    assert_true(slice_is(bytes_slice(bytes), "abc"));
    assert_string_equal(bytes->data, "abc");
    bytes_unref(bytes);
}

static void absent_and_empty_bytes_differ(void **state)
{
    (void)state;
    assert_null(bytes_create((struct slice){ 0 }));
    assert_null(bytes_create_shared((struct slice){ 0 }));
    assert_null(bytes_slice(NULL).ptr);
    assert_null(bytes_ref(NULL));
    bytes_unref(NULL);

    struct bytes *empty = bytes_create(SLICE(""));
    assert_non_null(empty);
    assert_int_equal(bytes_slice(empty).len, 0);
    assert_non_null(bytes_slice(empty).ptr);
    bytes_unref(empty);
}

static void empty_bytes_can_be_filled_before_sharing(void **state)
{
    (void)state;
    struct bytes *bytes = bytes_create_empty(3);
    memcpy(bytes->data, "abc", 3);
    assert_string_equal(bytes->data, "abc");
    bytes_unref(bytes);
}

static void the_last_reference_frees(void **state)
{
    (void)state;
    struct bytes *bytes = bytes_create(SLICE("a"));
    assert_ptr_equal(bytes_ref(bytes), bytes);
    bytes_unref(bytes);
    assert_int_equal(bytes->refs, 1);
    bytes_unref(bytes);
}

static void setting_a_place_takes_a_reference_and_drops_the_old_one(void **state)
{
    (void)state;
    struct bytes *a = bytes_create(SLICE("a")), *b = bytes_create(SLICE("b"));
    struct bytes *place = NULL;
    bytes_set(&place, a);
    assert_int_equal(a->refs, 2);
    bytes_set(&place, place); /* to itself */
    assert_int_equal(a->refs, 2);
    bytes_set(&place, b);
    assert_int_equal(a->refs, 1);
    assert_int_equal(b->refs, 2);
    bytes_clear(&place);
    assert_null(place);
    assert_int_equal(b->refs, 1);
    bytes_unref(a);
    bytes_unref(b);
}

static void repeated_name_is_stored_once(void **state)
{
    (void)state;
    struct bytes *first = bytes_create_shared(SLICE("send-mail"));
    struct bytes *second = bytes_create_shared(SLICE("send-mail"));
    assert_ptr_equal(first, second);
    bytes_forget_shared();
    assert_int_equal(first->refs, 2);
    assert_string_equal(first->data, "send-mail");
    bytes_unref(first);
    bytes_unref(second);
}

static void long_text_is_not_cached(void **state)
{
    (void)state;
    char text[1000];
    memset(text, 'a', sizeof(text));
    struct bytes *bytes = bytes_create_shared((struct slice){ text, sizeof(text) });
    assert_int_equal(bytes->refs, 1);
    bytes_unref(bytes);
}

/* There are more names than the cache has slots: a name that is still referenced stays
 * whole. */
static void referenced_names_survive_eviction_from_the_cache(void **state)
{
    (void)state;
    enum { COUNT = 20000 };
    static struct bytes *held[COUNT];
    char name[24];
    for (int i = 0; i < COUNT; i++) {
        snprintf(name, sizeof(name), "tag-%d", i);
        held[i] = bytes_create_shared(slice_of(name));
    }
    for (int i = 0; i < COUNT; i++) {
        snprintf(name, sizeof(name), "tag-%d", i);
        assert_string_equal(held[i]->data, name);
        bytes_unref(held[i]);
    }
    bytes_forget_shared();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_a_terminated_copy),
        cmocka_unit_test(absent_and_empty_bytes_differ),
        cmocka_unit_test(empty_bytes_can_be_filled_before_sharing),
        cmocka_unit_test(the_last_reference_frees),
        cmocka_unit_test(setting_a_place_takes_a_reference_and_drops_the_old_one),
        cmocka_unit_test(repeated_name_is_stored_once),
        cmocka_unit_test(long_text_is_not_cached),
        cmocka_unit_test(referenced_names_survive_eviction_from_the_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
