/* A path leads to the right row of the table; paths from before the tree still work. */
#include "tests/support/world/unit.h"

#include "api/request/routes.h"
#include "api/router/dispatch.h"

static const struct route made_up[] = {
    { .method = HTTP_GET_,
      .path = "/api/v1/runs",
      .query = "page?: integer, filter[tag]: X" },
    { .method = HTTP_POST_, .path = "/api/v1/runs" },
    { .method = HTTP_GET_, .path = "/api/v1/runs/{run}" },
    { .method = HTTP_DELETE_, .path = "/api/v1/runs/{run}" },
    { .method = HTTP_POST_, .path = "/api/v1/runs/all" },
    { .method = HTTP_POST_, .path = "/api/v1/runs/{run}/cancel" },
    { .method = HTTP_GET_, .path = "/api/v1/files/{folder}/{name*}" },
    { .method = HTTP_GET_, .path = "/api/v1/files/{folder}/list" },
    { .method = HTTP_GET_, .path = "/" },
    { 0 },
};

static const struct route of_others[] = {
    { .method = HTTP_PUT_, .path = "/api/v1/runs/{run}" },
    { .method = HTTP_PUT_, .path = "/others" },
    { 0 },
};

struct world {
    struct routes *routes;
    struct route_match match;
    struct buf allow;
};

static int make_world(void **state)
{
    static const struct area first = { .tag = "runs", .routes = made_up },
                             second = { .tag = "others", .routes = of_others };
    static const struct area *const areas[] = { &first, &second };
    struct world *world = calloc(1, sizeof(*world));
    world->routes = routes_create(areas, 2);
    *state = world;
    return 0;
}

static int end_world(void **state)
{
    struct world *world = *state;
    routes_destroy(world->routes);
    buf_finish(&world->allow);
    free(world);
    return 0;
}

static struct routed *find_among(struct world *world, enum http_method method,
                                 const char *path, size_t areas)
{
    buf_clear(&world->allow);
    world->match =
        (struct route_match){ .method = method, .areas = areas, .allow = &world->allow };
    return routes_find(world->routes, slice_of(path), &world->match);
}

static struct routed *find(struct world *world, enum http_method method, const char *path)
{
    return find_among(world, method, path, 2);
}

static void assert_param(const struct world *world, size_t index, const char *value)
{
    assert_true(index < world->match.param_count);
    assert_true(slice_is(world->match.params[index], value));
}

static void path_finds_its_route_and_parameters(void **state)
{
    struct world *world = *state;
    assert_ptr_equal(find(world, HTTP_GET_, "/api/v1/runs")->route, &made_up[0]);
    assert_int_equal(world->match.param_count, 0);
    assert_ptr_equal(find(world, HTTP_GET_, "/")->route, &made_up[8]);
    assert_ptr_equal(find(world, HTTP_POST_, "/api/v1/runs/run_1/cancel")->route,
                     &made_up[5]);
    assert_int_equal(world->match.param_count, 1);
    assert_param(world, 0, "run_1");
    assert_ptr_equal(find(world, HTTP_GET_, "/api/v1/runs/a%2Fb")->route, &made_up[2]);
    assert_param(world, 0, "a%2Fb");
}

static void unknown_path_finds_no_route(void **state)
{
    static const char *const paths[] = {
        "",
        "//",
        "api/v1/runs",
        "/api/v1/runs/",
        "/api/v1//runs",
        "/api/v1",
        "/api/v1/runsx",
        "/api/v1/run",
        "/api/v1/runs/run_1/cancel/",
        "/api/v1/runs//cancel",
        "/api/v1/files/a",
        "/api/v1/files/a/",
        "/api/v1/files//a",
        "/API/v1/runs",
    };
    struct world *world = *state;
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        for (int method = 0; method <= HTTP_OTHER_; method++)
            assert_null(find(world, (enum http_method)method, paths[i]));
        assert_int_equal(world->allow.len, 0);
        assert_int_equal(world->match.param_count, 0);
    }
}

static void literal_segment_wins_over_a_parameter_unless_its_method_is_missing(void **state)
{
    struct world *world = *state;
    assert_ptr_equal(find(world, HTTP_POST_, "/api/v1/runs/all")->route, &made_up[4]);
    assert_int_equal(world->match.param_count, 0);
    assert_ptr_equal(find(world, HTTP_GET_, "/api/v1/runs/all")->route, &made_up[2]);
    assert_param(world, 0, "all");
    assert_null(find(world, HTTP_PATCH_, "/api/v1/runs/all"));
    assert_true(slice_is(buf_slice(&world->allow), "POST, GET, DELETE, PUT"));
}

static void wildcard_route_is_tried_last(void **state)
{
    struct world *world = *state;
    assert_ptr_equal(find(world, HTTP_GET_, "/api/v1/files/a/list")->route, &made_up[7]);
    assert_int_equal(world->match.param_count, 1);
    assert_ptr_equal(find(world, HTTP_GET_, "/api/v1/files/a/list/b//")->route,
                     &made_up[6]);
    assert_int_equal(world->match.param_count, 2);
    assert_param(world, 0, "a");
    assert_param(world, 1, "list/b//");
}

static void only_the_given_areas_are_searched(void **state)
{
    struct world *world = *state;
    assert_ptr_equal(find(world, HTTP_PUT_, "/others")->route, &of_others[1]);
    assert_null(find_among(world, HTTP_PUT_, "/others", 1));
    assert_null(find_among(world, HTTP_PUT_, "/api/v1/runs/x", 1));
    assert_true(slice_is(buf_slice(&world->allow), "GET, DELETE"));
}

static void route_lists_its_query_parameters(void **state)
{
    struct world *world = *state;
    const struct routed *row = find(world, HTTP_GET_, "/api/v1/runs");
    assert_int_equal(row->query_count, 2);
    assert_true(slice_is(row->query[0], "page"));
    assert_true(slice_is(row->query[1], "filter[tag]"));
    assert_int_equal(find(world, HTTP_POST_, "/api/v1/runs")->query_count, 0);
}

/* Replaces each parameter by a value that does not occur as a word of a path. */
static void write_path(const char *pattern, struct buf *path)
{
    buf_clear(path);
    for (const char *at = pattern; *at; at++) {
        if (*at == '{') {
            buf_add_text(path, "some~value");
            at = strchr(at, '}');
        } else {
            buf_add_char(path, *at);
        }
    }
}

/* If two rows had the same path and method, the second would never be called. */
static void every_route_is_found_by_its_own_path(void **state)
{
    (void)state;
    size_t count, areas, missing = 0;
    const struct area *const *all = api_areas(&areas);
    struct routes *routes = routes_create(all, areas);
    struct routed *rows = routes_all(routes, &count);
    struct buf path = { 0 }, allow = { 0 };
    for (size_t i = 0; i < count; i++) {
        struct route_match match = { .method = rows[i].route->method,
                                     .areas = areas,
                                     .allow = &allow };
        write_path(rows[i].route->path, &path);
        if (routes_find(routes, buf_slice(&path), &match) == &rows[i])
            continue;
        print_message("%s %s leads elsewhere\n", http_method_name(rows[i].route->method),
                      rows[i].route->path);
        missing++;
    }
    assert_int_equal(missing, 0);
    assert_true(count > 100);
    buf_finish(&path);
    buf_finish(&allow);
    routes_destroy(routes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(path_finds_its_route_and_parameters),
        cmocka_unit_test(unknown_path_finds_no_route),
        cmocka_unit_test(
            literal_segment_wins_over_a_parameter_unless_its_method_is_missing),
        cmocka_unit_test(wildcard_route_is_tried_last),
        cmocka_unit_test(only_the_given_areas_are_searched),
        cmocka_unit_test(route_lists_its_query_parameters),
        cmocka_unit_test(every_route_is_found_by_its_own_path),
    };
    return cmocka_run_group_tests(tests, make_world, end_world);
}
