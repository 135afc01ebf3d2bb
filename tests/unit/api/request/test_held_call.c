/* held_call: an end that comes before the call is held, with a token that would expire
 * before the wait does. */
#include "tests/support/world/api_scene.h"

#include "accounts/auth/auth.h"
#include "api/request/held_call.h"

enum { TOKEN_MS = 10 * 1000 };

static struct secret key;
static struct query_pair wait_30s = { { "wait", 4 }, { "30s", 3 } };
static struct identity identity;
static struct api_call call;
static struct held_call held;
static unsigned ends;
static enum err ended;

static void on_over(struct held_call *over, enum err status)
{
    (void)over;
    ends++;
    ended = status;
}

/* Begins a call that waits longer than its token is valid. */
static void begin(const char *run)
{
    struct account *account = api_world_account(&scene);
    ends = 0;
    held = (struct held_call){ 0 };
    call = (struct api_call){ .api = scene.api, .account = account };
    call.env = engine_environment(scene.engine, account->number);
    call.query = &wait_30s;
    call.query_count = 1;
    identity = (struct identity){ .account = account, .secret = &key };
    identity.expires_at = loop_wall_ms(engine_loop(scene.engine)) + TOKEN_MS;
    call.identity = &identity;
    list_init(&call.held);
    assert_int_equal(held_call_read(&held, &call), OK);
    held_call_listen(&held, slice_of(run));
}

static void end_that_came_before_the_call_was_held_is_answered(void **state)
{
    (void)state;
    char run[ID_MAX];
    post("{\"options\":{\"delay\":\"1h\"}}", "/api/v1/tasks/hello/trigger");
    keep("id", run, sizeof(run));
    begin(run);
    post("{}", "/api/v2/runs/%s/cancel", run);
    assert_true(held.has_ended);
    assert_int_equal(held_call_hold(&held, on_over), OK);
    api_world_settle(&scene);
    assert_int_equal(ends, 1);
    assert_int_equal(ended, OK);
    held_call_finish(&held);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scene_open, scene_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(end_that_came_before_the_call_was_held_is_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
