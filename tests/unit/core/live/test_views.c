/* Which clients share bytes, and which get a view when all of them want different ones. */
#include "tests/support/world/unit.h"

#include "tests/support/world/calls.h"
#include "tests/support/world/reader.h"

static int create_world(void **state)
{
    *state = world_create(NULL);
    return 0;
}

static int destroy_world(void **state)
{
    world_destroy(*state);
    return 0;
}

static void equal_views_are_shared_and_one_too_many_becomes_a_wider_one(void **state)
{
    struct world *world = *state;
    struct view *views[VIEWS_MAX], wish = view_of(ENCODING_JSON, FIELDS_ALL);
    for (uint32_t i = 0; i <= NARROW_VIEWS_MAX; i++) {
        wish.fields = i ? FIELDS_ALWAYS | i << (FIELD_BATCH_ID + 1) : FIELDS_ALL;
        assert_non_null(views[i] = environment_view(world->env, &wish));
        assert_int_equal(views[i]->users, 1);
    }
    assert_ptr_equal(environment_view(world->env, &wish), views[NARROW_VIEWS_MAX]);
    view_release(views[NARROW_VIEWS_MAX]);

    wish.fields = FIELDS_ALWAYS | 1 << FIELD_ERROR;
    assert_ptr_equal(environment_view(world->env, &wish), views[0]);
    view_release(views[0]);
    for (uint32_t i = 0; i <= NARROW_VIEWS_MAX; i++)
        view_release(views[i]);
    struct view *own = environment_view(world->env, &wish);
    assert_int_equal(own->fields, wish.fields);
    view_release(own);
}

/* A page may choose its fields, and an attacker's page chooses different ones each time. */
static void view_of_all_fields_has_a_slot_whatever_others_leave_out(void **state)
{
    struct world *world = *state;
    struct view *views[64];
    size_t count = 0;
    for (uint32_t i = 1; count < 40; i++) {
        bool is_shape = i & 1;
        struct view wish =
            view_of(is_shape ? ENCODING_SHAPE : ENCODING_MSGPACK,
                    is_shape ? FIELDS_ALL : FIELDS_ALWAYS | i << (FIELD_BATCH_ID + 1));
        wish.skipped = wish.unwanted = is_shape ? i << (FIELD_BATCH_ID + 1) : 0;
        views[count] = environment_view(world->env, &wish);
        assert_non_null(views[count++]);
    }
    static const uint32_t skips[] = { 0, 1 << FIELD_PAYLOAD };
    for (size_t i = 0; i < 2; i++) {
        for (int encoding = ENCODING_JSON; encoding <= ENCODING_SHAPE; encoding++) {
            struct view wish = view_of((enum encoding)encoding, FIELDS_DEFAULT & ~skips[i]);
            wish.skipped = skips[i];
            views[count] = environment_view(world->env, &wish);
            assert_non_null(views[count]);
            assert_int_equal(views[count]->skipped, skips[i]);
            assert_int_equal(views[count]->fields & wish.fields, wish.fields);
            count++;
        }
    }
    while (count)
        view_release(views[--count]);
}

/* Another environment of its project has all views that the project may have. */
static void environment_of_a_full_project_keeps_its_spared_views(void **state)
{
    struct world *world = *state;
    struct quota project = { .used = PROJECT_VIEWS_MAX, .limit = PROJECT_VIEWS_MAX };
    struct view *views[VIEWS_SPARED], wish = view_of(ENCODING_JSON, FIELDS_ALL);
    world->env->project_views = &project;
    for (uint32_t i = 0; i <= NARROW_VIEWS_SPARED; i++) {
        wish.fields = i ? FIELDS_ALWAYS | i << (FIELD_BATCH_ID + 1) : FIELDS_ALL;
        assert_non_null(views[i] = environment_view(world->env, &wish));
        assert_int_equal(views[i]->fields, wish.fields);
    }
    wish.fields = FIELDS_ALWAYS | 1 << FIELD_ERROR;
    assert_ptr_equal(environment_view(world->env, &wish), views[0]);
    view_release(views[0]);
    for (uint32_t i = NARROW_VIEWS_SPARED + 1; i <= VIEWS_SPARED; i++) {
        wish = view_of(ENCODING_JSON, FIELDS_DEFAULT);
        /* By a token: another view cannot be used instead. */
        wish.skipped = i << (FIELD_BATCH_ID + 1);
        wish.fields &= ~wish.skipped;
        struct view *view = environment_view(world->env, &wish);
        if (i < VIEWS_SPARED)
            assert_non_null(views[i] = view);
        else
            assert_null(view);
    }
    assert_int_equal(project.used, PROJECT_VIEWS_MAX + VIEWS_SPARED);
    for (uint32_t i = 0; i < VIEWS_SPARED; i++)
        view_release(views[i]);
    assert_int_equal(project.used, PROJECT_VIEWS_MAX);
    project.used--;
    struct view *own = environment_view(world->env, &wish);
    assert_non_null(own);
    assert_int_equal(project.used, PROJECT_VIEWS_MAX);
    view_release(own);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, create_world, destroy_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(equal_views_are_shared_and_one_too_many_becomes_a_wider_one),
        TEST(view_of_all_fields_has_a_slot_whatever_others_leave_out),
        TEST(environment_of_a_full_project_keeps_its_spared_views),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
