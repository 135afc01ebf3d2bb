/* The table of routes: what strangers send is verified, or thrown away. */
#include "tests/support/world/unit.h"

#include "api/dispatch.h"
#include "api/signed.h"
#include "call/rooms.h"

typedef bool rule_fn(const struct route *route);

static void assert_every_route(rule_fn *rule, const char *broken)
{
    size_t count, wrong = 0;
    const struct route *const *tables = api_routes(&count);
    for (size_t t = 0; t < count; t++)
        for (const struct route *route = tables[t]; route->pattern; route++) {
            if (rule(route))
                continue;
            print_message("%s %s\n", route->pattern, broken);
            wrong++;
        }
    assert_int_equal(wrong, 0);
}

static bool is_verified_if_signed(const struct route *route)
{
    return !(route->auth & AUTH_SIGNED) || signed_has_form(route->pattern);
}

/* Where to write one: src/api/signed.c. */
static void every_signed_url_has_a_form_that_is_verified(void **state)
{
    (void)state;
    assert_every_route(is_verified_if_signed, "is signed, and nobody verifies it");
}

static bool keeps_nothing_of_strangers(const struct route *route)
{
    return route->auth || !route->body_limit || !rooms_keep_body(route);
}

static void what_strangers_send_is_thrown_away(void **state)
{
    (void)state;
    assert_every_route(keeps_nothing_of_strangers, "keeps what anybody sends");
}

static bool is_used_up_if_not_counted(const struct route *route)
{
    return !route->body_limit || rooms_keep_body(route) || route->on_body;
}

static void bodies_that_count_nowhere_are_taken_in_pieces(void **state)
{
    (void)state;
    assert_every_route(is_used_up_if_not_counted, "has bodies that no room counts");
}

static void a_pattern_without_a_form_lets_nobody_in(void **state)
{
    (void)state;
    assert_false(signed_has_form("/api/v1/waitpoints/tokens/:/complete"));
    assert_false(signed_has_form("/signed/:"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_signed_url_has_a_form_that_is_verified),
        cmocka_unit_test(what_strangers_send_is_thrown_away),
        cmocka_unit_test(bodies_that_count_nowhere_are_taken_in_pieces),
        cmocka_unit_test(a_pattern_without_a_form_lets_nobody_in),
    };
    return cmocka_run_group_tests_name("signed urls", tests, NULL, NULL);
}
