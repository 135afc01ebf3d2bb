/* Calls in progress at the leader: no caller takes what others need. */
#include "tests/support/world/unit.h"

#include <uv.h>

#include "accounts/lasting.h"
#include "api/router/caller_places.h"
#include "core/engine/calls.h"
#include "tests/support/world/api_world.h"

enum { CALLERS = 40 };

static struct caller_places places;
static struct place_owner *taken[CALLER_PLACES];
static size_t count;

/* A call of a stranger that has not sent all of its request. */
struct sender {
    struct place_owner *owner;
    struct list link;
};

static struct sender senders[CALLER_PLACES_OF_STRANGERS];
static const struct sender *ended;

static void end_sender(struct list *link)
{
    struct sender *sender = container_of(link, struct sender, link);
    list_remove(link);
    ended = sender;
    for (size_t i = 0; i < count; i++)
        if (taken[i] == sender->owner) {
            taken[i] = taken[--count];
            break;
        }
    caller_places_release(&places, sender->owner);
}

static int open_scene(void **state)
{
    (void)state;
    caller_places_init(&places, end_sender);
    count = 0;
    ended = NULL;
    return 0;
}

static int close_scene(void **state)
{
    (void)state;
    while (count)
        caller_places_release(&places, taken[--count]);
    caller_places_finish(&places);
    return 0;
}

static bool keep(struct place_owner *owner)
{
    if (owner)
        taken[count++] = owner;
    return owner;
}

/* The organization has the same id. */
static size_t take_all(const char *id, size_t limit)
{
    size_t got = 0;
    while (keep(caller_places_take(&places, slice_of(id), slice_of(id), limit)))
        got++;
    return got;
}

static size_t take_all_of_stranger(const char *address)
{
    size_t got = 0;
    while (keep(caller_places_take_stranger(&places, slice_of(address), false)))
        got++;
    return got;
}

/* Four addresses have all places of strangers, by calls that have sent nothing yet. */
static void open_senders(void)
{
    for (size_t i = 0; i < CALLER_PLACES_OF_STRANGERS; i++) {
        char address[2] = { (char)('a' + i / CALLER_PLACES_OF_ADDRESS), 0 };
        senders[i].owner = caller_places_take_stranger(&places, slice_of(address), false);
        assert_true(keep(senders[i].owner));
        list_init(&senders[i].link);
        caller_places_note_sender(&places, senders[i].owner, &senders[i].link);
    }
}

static void one_caller_has_its_limit(void **state)
{
    (void)state;
    assert_int_equal(take_all("proj_a", CALLER_PLACES_OF_PROJECT),
                     CALLER_PLACES_OF_PROJECT);
    assert_int_equal(take_all("user_a", CALLER_PLACES_OF_USER), CALLER_PLACES_OF_USER);
    caller_places_release(&places, taken[0]);
    taken[0] = caller_places_take(&places, SLICE("proj_a"), SLICE("proj_a"),
                                  CALLER_PLACES_OF_PROJECT);
    assert_non_null(taken[0]);
}

static void each_of_many_callers_that_take_all_leaves_some(void **state)
{
    char id[16];
    (void)state;
    for (size_t i = 0; i < CALLERS; i++) {
        size_t free = CALLER_PLACES - places.taken;
        snprintf(id, sizeof(id), "proj_%zu", i);
        size_t got = take_all(id, CALLER_PLACES_OF_PROJECT);
        assert_true(got == CALLER_PLACES_OF_PROJECT || got >= free / 2);
        if (i == 3) /* four tenants do not have them all */
            assert_true(places.taken <= CALLER_PLACES - CALLER_PLACES_OF_USER);
        if (i < 6)
            assert_true(got >= 50);
    }
}

static void callers_that_take_by_turns_have_equal_shares(void **state)
{
    size_t got[4] = { 0 };
    char id[2] = "a";
    (void)state;
    for (bool any = true; any;) {
        any = false;
        for (size_t i = 0; i < 4; i++) {
            id[0] = (char)('a' + i);
            bool takes = keep(caller_places_take(&places, slice_of(id), slice_of(id),
                                                 CALLER_PLACES_OF_PROJECT));
            got[i] += takes;
            any |= takes;
        }
    }
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(got[i], CALLER_PLACES / 5);
    assert_int_equal(CALLER_PLACES - places.taken, CALLER_PLACES / 5);
}

static void many_projects_of_one_organization_have_half(void **state)
{
    char id[16];
    (void)state;
    for (size_t i = 0; i < CALLERS; i++) {
        snprintf(id, sizeof(id), "proj_%zu", i);
        while (keep(caller_places_take(&places, SLICE("org_a"), slice_of(id),
                                       CALLER_PLACES_OF_PROJECT)))
            ;
    }
    assert_int_equal(places.taken, CALLER_PLACES / 2);
    assert_int_equal(take_all("proj_b", CALLER_PLACES_OF_PROJECT),
                     CALLER_PLACES_OF_PROJECT);
}

static void strangers_are_counted_by_address_and_together(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        char address[2] = { (char)('a' + i), 0 };
        assert_int_equal(take_all_of_stranger(address), CALLER_PLACES_OF_ADDRESS);
    }
    assert_int_equal(take_all_of_stranger("e"), 0);
    assert_int_equal(take_all("user_a", CALLER_PLACES_OF_USER), CALLER_PLACES_OF_USER);
}

static void strangers_of_a_hidden_address_have_the_limit_of_all(void **state)
{
    (void)state;
    assert_int_equal(take_all_of_stranger(""), CALLER_PLACES_OF_STRANGERS);
}

static void strangers_leave_places_for_others(void **state)
{
    char id[16];
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        snprintf(id, sizeof(id), "proj_%zu", i);
        take_all(id, CALLER_PLACES_OF_PROJECT);
    }
    size_t free = CALLER_PLACES - places.taken;
    size_t got = take_all_of_stranger("");
    assert_true(got && got <= free / 2);
    assert_true(take_all("proj_b", CALLER_PLACES_OF_PROJECT) >= free / 4);
}

/* It is being removed, so that its project counts as one of its own. */
static void places_are_released_where_they_were_taken(void **state)
{
    (void)state;
    assert_true(keep(caller_places_take(&places, SLICE("org_a"), SLICE("proj_a"), 9)));
    assert_true(keep(caller_places_take(&places, SLICE("proj_a"), SLICE("proj_a"), 9)));
    assert_true(keep(caller_places_take(&places, SLICE("org_a"), SLICE("proj_b"), 9)));
}

static void the_stranger_that_is_silent_longest_makes_room(void **state)
{
    (void)state;
    open_senders();
    caller_places_note_sender(&places, senders[0].owner, &senders[0].link);
    assert_null(ended);
    assert_true(keep(caller_places_take_stranger(&places, SLICE("e"), false)));
    assert_ptr_equal(ended, &senders[1]);
    assert_true(keep(caller_places_take_stranger(&places, SLICE(""), false)));
    assert_ptr_equal(ended, &senders[2]);
    for (size_t i = 0; i < CALLER_PLACES_OF_STRANGERS; i++)
        list_remove(&senders[i].link); /* their requests are complete */
    assert_null(caller_places_take_stranger(&places, SLICE("f"), false));
}

static void an_address_with_too_many_calls_ends_none_of_others(void **state)
{
    (void)state;
    open_senders();
    assert_null(caller_places_take_stranger(&places, SLICE("b"), false));
    assert_null(ended);
}

static void sockets_of_strangers_leave_places_to_their_calls(void **state)
{
    size_t got = 0;
    (void)state;
    while (keep(caller_places_take_stranger(&places, SLICE(""), true)))
        got++;
    assert_int_equal(got, CALLER_PLACES_OF_STRANGERS / 4 * 3);
    assert_int_equal(take_all_of_stranger("a"), CALLER_PLACES_OF_STRANGERS / 4);
    assert_null(caller_places_take_stranger(&places, SLICE("b"), true));
}

static void users_are_not_among_the_senders(void **state)
{
    struct list link;
    (void)state;
    struct place_owner *user =
        caller_places_take(&places, SLICE("org"), SLICE("user"), CALLER_PLACES_OF_USER);
    assert_true(keep(user));
    list_init(&link);
    caller_places_note_sender(&places, user, &link);
    assert_true(list_empty(&link));
}

/* ---- callers ---- */

#define PERSONAL_TOKEN "tr_pat_abcdefghijklmnopqrstuvwxyz0123456789abcd"

static struct api_world world;
static char id[LASTING_ID_LEN + 1], code[LASTING_CODE_LEN + 1];
static bool is_written;

static int64_t now_of(void)
{
    return loop_wall_ms(engine_loop(world.engine));
}

static enum err decide(struct account_write *write, struct accounts *accounts,
                       struct draft *draft)
{
    const struct secret *token = accounts_secret(accounts, SLICE(PERSONAL_TOKEN), now_of());
    (void)write;
    lasting_generate_id(id);
    lasting_generate_code(id, code);
    struct lasting lasting = lasting_with_code(code);
    draft_lasting(draft, token, NULL, id, &lasting, now_of() + 3600 * 1000);
    return OK;
}

static void on_written(struct account_write *write, enum err status)
{
    (void)write;
    assert_int_equal(status, OK);
    is_written = true;
}

static struct place_owner *take_for(const char *name, const char *value)
{
    struct http_header header = { slice_of(name), slice_of(value) };
    struct exchange x = { .headers = &header, .header_count = 1, .peer = "192.0.2.1" };
    struct api_call call = { .api = world.api, .x = &x };
    struct place_owner *owner = caller_places_take_for(&places, &call);
    identity_unref(call.identity);
    assert_true(keep(owner));
    return owner;
}

static struct place_owner *take_for_cookie(const char *text)
{
    char value[256];
    snprintf(value, sizeof(value), "a=b; __Secure-runcast-%s=%s",
             engine_store(world.engine)->epoch, text);
    return take_for("Cookie", value);
}

static void users_are_known_by_their_token_or_their_cookie(void **state)
{
    struct account_write write = { .decide = decide, .done = on_written };
    char wrong[sizeof(code)];
    (void)state;
    api_world_open(&world);
    account_write_begin(world.writer, &write);
    while (!is_written)
        uv_run(&world.net.world.uv, UV_RUN_ONCE);
    struct place_owner *user = take_for("Authorization", "Bearer " PERSONAL_TOKEN);
    assert_true(place_owner_is_known(user));
    assert_ptr_equal(take_for_cookie(code), user);
    lasting_generate_code(id, wrong);
    struct place_owner *stranger = take_for_cookie(wrong);
    assert_false(place_owner_is_known(stranger));
    assert_ptr_equal(take_for_cookie(id), stranger);
    assert_ptr_equal(take_for("Authorization", "Bearer unknown"), stranger);
    assert_ptr_not_equal(take_for("Authorization", api_world_account(&world)->secret_key),
                         user);
    api_world_close(&world);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_caller_has_its_limit),
        TEST(each_of_many_callers_that_take_all_leaves_some),
        TEST(callers_that_take_by_turns_have_equal_shares),
        TEST(many_projects_of_one_organization_have_half),
        TEST(strangers_are_counted_by_address_and_together),
        TEST(strangers_of_a_hidden_address_have_the_limit_of_all),
        TEST(strangers_leave_places_for_others),
        TEST(places_are_released_where_they_were_taken),
        TEST(the_stranger_that_is_silent_longest_makes_room),
        TEST(an_address_with_too_many_calls_ends_none_of_others),
        TEST(sockets_of_strangers_leave_places_to_their_calls),
        TEST(users_are_not_among_the_senders),
        TEST(users_are_known_by_their_token_or_their_cookie),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
