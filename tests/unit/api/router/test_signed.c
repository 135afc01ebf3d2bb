/* Routes for unauthenticated clients: signatures are verified, and long bodies not kept. */
#include "tests/support/world/unit.h"

#include "api/request/quotas.h"
#include "api/router/dispatch.h"

typedef bool rule_fn(const struct route *route);

static void assert_every_route(rule_fn *rule, const char *broken)
{
    size_t count, wrong = 0;
    const struct area *const *areas = api_areas(&count);
    for (size_t i = 0; i < count; i++)
        for (const struct route *route = areas[i]->routes; route->path; route++) {
            if (rule(route))
                continue;
            print_message("%s %s\n", route->path, broken);
            wrong++;
        }
    assert_int_equal(wrong, 0);
}

static bool is_verified_if_signed(const struct route *route)
{
    return !(route->auth & AUTH_SIGNED) == !route->signed_form;
}

/* A form without AUTH_SIGNED would verify nothing; the reverse would admit no client. */
static void every_signed_route_verifies_its_signature(void **state)
{
    (void)state;
    assert_every_route(is_verified_if_signed, "is signed, and nobody verifies it");
}

static bool keeps_little_of_unauthenticated_peers(const struct route *route)
{
    return route->auth || route->body_limit <= UNAUTHENTICATED_BODY_MAX ||
           !quotas_keep_body(route);
}

static void unauthenticated_bodies_are_short_or_discarded(void **state)
{
    (void)state;
    assert_every_route(keeps_little_of_unauthenticated_peers, "keeps what anybody sends");
}

static bool is_used_up_if_not_counted(const struct route *route)
{
    return !route->body_limit || quotas_keep_body(route) || route->on_body;
}

static void uncounted_bodies_are_read_in_pieces(void **state)
{
    (void)state;
    assert_every_route(is_used_up_if_not_counted, "has bodies that no room counts");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_signed_route_verifies_its_signature),
        cmocka_unit_test(unauthenticated_bodies_are_short_or_discarded),
        cmocka_unit_test(uncounted_bodies_are_read_in_pieces),
    };
    return cmocka_run_group_tests_name("signed urls", tests, NULL, NULL);
}
