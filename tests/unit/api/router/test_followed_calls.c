/* Calls to a gateway that follows: which it serves, and which wait for the leader's answer. */
#include <uv.h>

#include "accounts/account_draft.h"
#include "accounts/auth/unknown_credentials.h"
#include "api/router/services.h"
#include "core/engine/calls.h"
#include "tests/support/world/api_world.h"
#include "tests/support/world/unit.h"

#define NO_TEXT ((struct slice){ 0 })
#define NEW_KEY "tr_dev_zyxwvutsrqponmlkjihgfedc"

/* A gateway that follows, and its leader. */
struct scene {
    struct api_world world;
    uint64_t asked;
    bool answers;         /* the leader responds, after a millisecond */
    struct change change; /* what the leader has changed */
    struct store_commit commit;
    const char *doubt;
    struct timer timer;
    uint32_t kind;
    struct account_write write;
    char run[ID_MAX]; /* the last one that was triggered */
};

static struct scene scene;

static uint64_t ask(void *owner)
{
    struct loop *loop = engine_loop(scene.world.engine);
    (void)owner;
    scene.asked++;
    if (scene.answers)
        loop_set_timer(loop, &scene.timer, scene.kind, 1);
    return scene.asked;
}

static void answer(void)
{
    certainty_answered(engine_certainty(scene.world.engine), scene.asked);
}

static void on_time(struct timer *timer)
{
    (void)timer;
    answer();
}

static bool is_certain(void *owner)
{
    (void)owner;
    return !scene.doubt;
}

static const char *why_not(void *owner)
{
    (void)owner;
    return scene.doubt;
}

static struct environment *env_of(void)
{
    return engine_environment(scene.world.engine, api_world_account(&scene.world)->number);
}

static void call(enum api_key key, const char *method, const char *target)
{
    api_world_ask(&scene.world, key, method, slice_of(target), NO_TEXT, NO_TEXT, 0);
}

static void trigger(void)
{
    struct buf id = { 0 };
    api_world_ask(&scene.world, API_KEY_DEV, "POST", SLICE("/api/v1/tasks/hello/trigger"),
                  NO_TEXT, SLICE("{\"payload\":1,\"options\":{\"tags\":\"a\"}}"), 0);
    assert_int_equal(scene.world.status, 200);
    assert_true(api_world_text(&scene.world, "id", &id));
    snprintf(scene.run, sizeof(scene.run), "%.*s", SLICE_ARG(buf_slice(&id)));
    buf_finish(&id);
}

static int open_scene(void **state)
{
    scene = (struct scene){ .answers = true };
    api_world_open(&scene.world);
    scene.kind = timers_kind(loop_timers(engine_loop(scene.world.engine)), on_time);
    trigger();
    struct certainty *certainty = engine_certainty(scene.world.engine);
    certainty->ask = ask;
    certainty->is_certain = is_certain;
    struct api_options options = *api_options(scene.world.api);
    options.why_not = why_not;
    api_reload(scene.world.api, &options);
    api_stand_by(scene.world.api, "standby");
    api_follow(scene.world.api);
    *state = &scene;
    return 0;
}

static int close_scene(void **state)
{
    (void)state;
    scene.doubt = NULL;
    api_set_ready(scene.world.api, NULL);
    api_world_close(&scene.world);
    return 0;
}

static bool body_has(const char *text)
{
    return memmem(scene.world.body.ptr, scene.world.body.len, text, strlen(text));
}

static bool answer_has(const char *text)
{
    return memmem(scene.world.net.answer.ptr, scene.world.net.answer.len, text,
                  strlen(text));
}

/* ---- which routes ---- */

static void routes_of_the_leader_are_not_served(void **state)
{
    char target[80];
    (void)state;
    snprintf(target, sizeof(target), "/api/v3/runs/%s", scene.run);
    call(API_KEY_DEV, "GET", target);
    assert_int_equal(scene.world.status, 0); /* held until this gateway leads */
    call(API_KEY_DEV, "POST", "/api/v1/tasks/hello/trigger");
    assert_int_equal(scene.world.status, 0);
    assert_int_equal(scene.asked, 0);
}

static void lists_and_counts_ask_nothing(void **state)
{
    (void)state;
    call(API_KEY_DEV, "GET", "/api/v1/runs");
    assert_int_equal(scene.world.status, 200);
    assert_true(body_has(scene.run));
    call(API_KEY_DEV, "GET", "/api/v1/runs/counts");
    assert_int_equal(scene.world.status, 200);
    assert_int_equal(scene.asked, 0);
}

static void gateway_that_takes_the_lead_serves_everything(void **state)
{
    char target[80];
    (void)state;
    snprintf(target, sizeof(target), "/api/v3/runs/%s", scene.run);
    api_set_ready(scene.world.api, NULL);
    call(API_KEY_DEV, "GET", target);
    assert_int_equal(scene.world.status, 200);
    call(API_KEY_DEV, "GET", "/realtime/v1/runs?tags=a&offset=-1");
    assert_int_equal(scene.world.status, 200);
    assert_int_equal(scene.asked, 0);
}

static void gateway_that_drains_refuses(void **state)
{
    (void)state;
    api_set_ready(scene.world.api, "draining");
    call(API_KEY_DEV, "GET", "/api/v1/runs");
    assert_int_equal(scene.world.status, 503);
    call(API_KEY_DEV, "POST", "/api/v1/tasks/hello/trigger");
    assert_int_equal(scene.world.status, 503);
    api_serve_on(scene.world.api);
    call(API_KEY_DEV, "GET", "/api/v1/runs");
    assert_int_equal(scene.world.status, 200);
    call(API_KEY_DEV, "POST", "/api/v1/tasks/hello/trigger");
    assert_int_equal(scene.world.status, 503);
    api_follow(scene.world.api);
}

/* Sends a request and leaves it open. Frees the head. */
static void send_head(struct buf *head)
{
    net_fuzz_begin(&scene.world.net);
    net_fuzz_send(&scene.world.net, buf_slice(head), 0);
    api_world_settle(&scene.world);
    buf_finish(head);
}

static void begin(const char *target)
{
    struct buf head = { 0 };
    buf_print(&head,
              "GET %s HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer "
              "tr_dev_abcdefghijklmnopqrstuvwx\r\n\r\n",
              target);
    send_head(&head);
}

/* ---- positions ---- */

static void on_changed(struct store_commit *commit, enum store_status status)
{
    (void)commit;
    assert_int_equal(status, STORE_OK);
    engine_apply(scene.world.engine, &scene.change, 1);
    answer();
}

/* The leader has another version of the run, which arrives before the answer. */
static uint64_t ask_for_a_change(void *owner)
{
    uint32_t number = env_of()->number;
    const struct run *stored = fake_store_run(scene.world.fake, number, scene.run);
    struct store *store = engine_store(scene.world.engine);
    (void)owner;
    scene.change =
        (struct change){ .kind = CHANGE_RUN, .env = number, .expected = stored->version };
    run_copy(&scene.change.run, stored);
    scene.change.run.version++;
    scene.commit = (struct store_commit){ .changes = &scene.change,
                                          .change_count = 1,
                                          .done = on_changed,
                                          .now_ms = stored->updated_at };
    store->ops->commit(store, &scene.commit);
    return ++scene.asked;
}

static void let_a_change_arrive(void)
{
    engine_certainty(scene.world.engine)->ask = ask_for_a_change;
}

static void poll_begins_with_what_the_leader_has(void **state)
{
    char position[64];
    (void)state;
    let_a_change_arrive();
    snprintf(position, sizeof(position), "electric-offset: %d_%d",
             (int)env_of()->applied + 1, (int)env_of()->applied + 1);
    api_world_ask(&scene.world, API_KEY_DEV, "GET",
                  SLICE("/realtime/v1/runs?tags=a&offset=-1"),
                  SLICE("x-trigger-electric-version: 1\r\n"), NO_TEXT, 0);
    assert_int_equal(scene.world.status, 200);
    assert_int_equal(scene.asked, 1);
    assert_true(body_has(scene.run));
    assert_true(answer_has(position));
}

static void poll_from(uint64_t seen, uint64_t base)
{
    char target[160];
    snprintf(target, sizeof(target), "/realtime/v1/runs?tags=a&offset=%d_%d&handle=%s-t-0",
             (int)seen, (int)base, engine_store(scene.world.engine)->epoch);
    api_world_ask(&scene.world, API_KEY_DEV, "GET", slice_of(target),
                  SLICE("x-trigger-electric-version: 1\r\n"), NO_TEXT, 0);
    assert_int_equal(scene.world.status, 200);
}

static void poll_at(uint64_t seq)
{
    poll_from(seq, seq);
}

static void poll_from_a_known_position_asks_nothing(void **state)
{
    (void)state;
    poll_at(env_of()->applied);
    assert_int_equal(scene.asked, 0);
    assert_false(body_has(scene.run));
}

static void poll_from_a_higher_position_waits_until_it_is_applied(void **state)
{
    (void)state;
    let_a_change_arrive();
    poll_at(env_of()->applied + 1);
    assert_int_equal(scene.asked, 1);
    assert_false(body_has(scene.run)); /* nothing has changed since */
}

/* The gateway that sent the position may have had more than this one. */
static void poll_within_a_walk_waits_for_what_the_leader_has(void **state)
{
    (void)state;
    let_a_change_arrive();
    poll_from(env_of()->applied, env_of()->applied - 1);
    assert_int_equal(scene.asked, 1);
    assert_true(body_has(scene.run));
}

static void position_above_the_leaders_is_of_another_history(void **state)
{
    (void)state;
    poll_at(env_of()->applied + 9);
    assert_int_equal(scene.asked, 1);
    assert_true(body_has(scene.run)); /* a snapshot */
}

static void poll_waits_while_memory_is_late(void **state)
{
    char target[160];
    (void)state;
    snprintf(target, sizeof(target), "/realtime/v1/runs?tags=a&offset=%d_%d&handle=%s-t-0",
             (int)env_of()->applied, (int)env_of()->applied,
             engine_store(scene.world.engine)->epoch);
    env_of()->reaches.shown_until = INT64_MIN;
    begin(target);
    assert_int_equal(scene.world.net.answer.len, 0);
    env_of()->reaches.shown_until = INT64_MAX;
    certainty_return(engine_certainty(scene.world.engine));
    api_world_settle(&scene.world);
    assert_true(answer_has("HTTP/1.1 200"));
    net_fuzz_end(&scene.world.net);
}

static void event_stream_begins_with_what_the_leader_has(void **state)
{
    (void)state;
    call(API_KEY_DEV, "GET", "/realtime/v1/events?tags=a");
    assert_int_equal(scene.world.status, 200);
    assert_int_equal(scene.asked, 1);
    assert_true(answer_has(scene.run));
}

/* ---- credentials ---- */

static void call_with(const char *credential, const char *target)
{
    char header[120];
    snprintf(header, sizeof(header), "Authorization: Bearer %s\r\n", credential);
    api_world_ask(&scene.world, API_KEY_NONE, "GET", slice_of(target), slice_of(header),
                  NO_TEXT, 0);
}

static void unknown_key_is_refused_after_a_question(void **state)
{
    (void)state;
    call_with(NEW_KEY, "/api/v1/runs");
    assert_int_equal(scene.world.status, 401);
    assert_int_equal(scene.asked, 1);
    call_with("tr_dev_zyxwvutsrqponmlkjihgfedd", "/realtime/v1/events?all=1");
    assert_int_equal(scene.world.status, 401);
    assert_int_equal(scene.asked, 2);
}

static void repeated_unknown_key_asks_a_few_times(void **state)
{
    (void)state;
    int64_t began = loop_now_ms(engine_loop(scene.world.engine)), windows;
    for (int i = 0; i < 20; i++) {
        call_with(NEW_KEY, "/api/v1/runs");
        assert_int_equal(scene.world.status, 401);
    }
    windows = (loop_now_ms(engine_loop(scene.world.engine)) - began) / 1000 + 1;
    assert_in_range(scene.asked, UNKNOWN_CREDENTIAL_TRIES,
                    windows * UNKNOWN_CREDENTIAL_TRIES);
}

static void call_without_a_credential_asks_nothing(void **state)
{
    (void)state;
    call(API_KEY_NONE, "GET", "/api/v1/runs");
    assert_int_equal(scene.world.status, 401);
    call(API_KEY_NONE, "GET", "/realtime/v1/events?all=1");
    assert_int_equal(scene.world.status, 401);
    assert_int_equal(scene.asked, 0);
}

static enum err decide_key(struct account_write *write, struct accounts *accounts,
                           struct draft *draft)
{
    (void)write;
    (void)accounts;
    draft_key(draft, api_world_account(&scene.world), SLICE("new"), NEW_KEY, 0);
    return OK;
}

static void on_key(struct account_write *write, enum err status)
{
    (void)write;
    assert_int_equal(status, OK);
    answer();
}

/* The answer follows when the key has arrived. */
static uint64_t ask_for_a_key(void *owner)
{
    (void)owner;
    scene.write = (struct account_write){ .decide = decide_key, .done = on_key };
    account_write_begin(scene.world.writer, &scene.write);
    return ++scene.asked;
}

static void new_key_is_accepted_when_it_arrives(void **state)
{
    (void)state;
    engine_certainty(scene.world.engine)->ask = ask_for_a_key;
    call_with(NEW_KEY, "/api/v1/runs");
    assert_int_equal(scene.world.status, 200);
    assert_int_equal(scene.asked, 1);
}

static void new_key_in_the_query_is_accepted_when_it_arrives(void **state)
{
    (void)state;
    engine_certainty(scene.world.engine)->ask = ask_for_a_key;
    call(API_KEY_NONE, "GET", "/realtime/v1/events?tags=a&token=" NEW_KEY);
    assert_int_equal(scene.world.status, 200);
    assert_true(answer_has(scene.run));
    assert_int_equal(scene.asked, 1); /* it is for the position as well */
}

static void unknown_branch_is_refused_after_a_question(void **state)
{
    (void)state;
    api_world_ask(&scene.world, (enum api_key)ENVIRONMENT_PREVIEW, "GET",
                  SLICE("/api/v1/runs"), SLICE("x-trigger-branch: new\r\n"), NO_TEXT, 0);
    assert_int_equal(scene.world.status, 401);
    assert_int_equal(scene.asked, 1);
}

/* ---- doubt ---- */

static void call_in_doubt_is_held(void **state)
{
    (void)state;
    scene.doubt = "the leader does not answer";
    call(API_KEY_DEV, "GET", "/api/v1/runs");
    assert_int_equal(scene.world.status, 0);
    call(API_KEY_DEV, "GET", "/realtime/v1/runs?tags=a&offset=-1");
    assert_int_equal(scene.world.status, 0);
    call(API_KEY_DEV, "GET", "/realtime/v1/events?tags=a");
    assert_int_equal(scene.world.status, 0);
    call_with(NEW_KEY, "/api/v1/runs");
    assert_int_equal(scene.world.status, 0);
    assert_int_equal(scene.asked, 0);
}

static void held_call_enters_after_the_doubt(void **state)
{
    (void)state;
    scene.doubt = "the leader does not answer";
    begin("/realtime/v1/runs?tags=a&offset=-1");
    assert_int_equal(scene.world.net.answer.len, 0);
    scene.doubt = NULL;
    api_end_doubt(scene.world.api);
    api_world_settle(&scene.world);
    assert_true(answer_has("HTTP/1.1 200"));
    assert_true(answer_has(scene.run));
    net_fuzz_end(&scene.world.net);
}

static void call_whose_question_has_no_answer_waits(void **state)
{
    (void)state;
    scene.answers = false;
    begin("/realtime/v1/runs?tags=a&offset=-1");
    assert_int_equal(scene.asked, 1);
    assert_int_equal(scene.world.net.answer.len, 0);
    net_fuzz_end(&scene.world.net); /* its client leaves */
    begin("/realtime/v1/runs?tags=a&offset=-1");
    scene.doubt = "the leader does not answer";
    api_begin_doubt(scene.world.api);
    certainty_answered(engine_certainty(scene.world.engine), 2);
    api_world_settle(&scene.world);
    assert_int_equal(scene.world.net.answer.len, 0);
    scene.doubt = NULL;
    api_end_doubt(scene.world.api);
    api_world_settle(&scene.world);
    assert_true(answer_has("HTTP/1.1 200"));
    net_fuzz_end(&scene.world.net);
}

static void waiting_call_ends_when_the_gateway_takes_the_lead(void **state)
{
    (void)state;
    scene.answers = false;
    begin("/realtime/v1/runs?tags=a&offset=-1");
    api_set_ready(scene.world.api, NULL);
    api_world_settle(&scene.world);
    assert_true(answer_has("HTTP/1.1 200"));
    net_fuzz_end(&scene.world.net);
}

/* ---- sockets ---- */

#define DEV_KEY "tr_dev_abcdefghijklmnopqrstuvwx"

/* Sends a message of the client; its mask is 0. */
static void say(const char *text)
{
    struct buf frame = { 0 };
    size_t len = strlen(text);
    buf_add_char(&frame, (char)0x81);
    assert_in_range(len, 1, 125);
    buf_add_char(&frame, (char)(0x80 | len));
    buf_add(&frame, (struct slice){ "\0\0\0\0", 4 });
    buf_add_text(&frame, text);
    net_fuzz_send(&scene.world.net, buf_slice(&frame), 0);
    buf_finish(&frame);
    api_world_settle(&scene.world);
}

static void open_socket(const char *query)
{
    struct buf head = { 0 };
    buf_print(&head,
              "GET /realtime/v1/ws%s HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n"
              "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
              "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
              query);
    send_head(&head);
}

static void close_socket(void)
{
    net_fuzz_end(&scene.world.net);
    api_world_settle(&scene.world);
}

static void hello(const char *token)
{
    char text[160];
    snprintf(text, sizeof(text), "{\"op\":\"hello\",\"token\":\"%s\"}", token);
    say(text);
}

static void subscription_begins_with_what_the_leader_has(void **state)
{
    (void)state;
    scene.answers = false;
    open_socket("");
    hello(DEV_KEY);
    assert_true(answer_has("welcome"));
    assert_int_equal(scene.asked, 0);
    say("{\"op\":\"sub\",\"id\":1,\"tags\":[\"a\"]}");
    say("{\"op\":\"watch\",\"id\":2,\"limit\":5}");
    assert_true(scene.asked > 0);
    assert_false(answer_has("\"ok\""));
    answer();
    api_world_settle(&scene.world);
    assert_true(answer_has("\"ok\""));
    assert_true(answer_has(scene.run));
    close_socket();
}

static void resume_above_memory_waits_until_it_is_applied(void **state)
{
    char text[160];
    (void)state;
    let_a_change_arrive();
    open_socket("?token=" DEV_KEY);
    snprintf(text, sizeof(text),
             "{\"op\":\"sub\",\"id\":1,\"tags\":[\"a\"],\"from\":[\"%s\",%d,%d]}",
             engine_store(scene.world.engine)->epoch, (int)env_of()->applied + 1,
             (int)env_of()->applied + 1);
    say(text);
    assert_true(answer_has("resume"));
    assert_false(answer_has(scene.run));
    close_socket();
}

static void messages_after_a_new_token_wait_with_it(void **state)
{
    (void)state;
    scene.answers = false;
    open_socket("");
    hello(NEW_KEY);
    say("{\"op\":\"sub\",\"id\":1,\"tags\":[\"a\"]}");
    assert_int_equal(scene.asked, 1);
    assert_false(answer_has("welcome"));
    scene.answers = true;
    scene.write = (struct account_write){ .decide = decide_key, .done = on_key };
    account_write_begin(scene.world.writer, &scene.write);
    for (int i = 0; i < 5 && !answer_has(scene.run); i++)
        api_world_settle(&scene.world);
    assert_true(answer_has("welcome"));
    close_socket();
}

static void unknown_token_of_a_socket_is_refused_after_a_question(void **state)
{
    (void)state;
    open_socket("");
    hello(NEW_KEY);
    assert_true(answer_has("Invalid API key"));
    close_socket();
    assert_int_equal(scene.asked, 1);
    open_socket("?token=" NEW_KEY);
    assert_true(answer_has("HTTP/1.1 401"));
    close_socket();
    assert_int_equal(scene.asked, 2);
}

static void unknown_token_of_auth_changes_nothing(void **state)
{
    (void)state;
    open_socket("?token=" DEV_KEY);
    say("{\"op\":\"auth\",\"token\":\"" NEW_KEY "\"}");
    assert_true(answer_has("bad_token"));
    assert_int_equal(scene.asked, 1);
    say("{\"op\":\"sub\",\"id\":1,\"tags\":[\"a\"]}");
    assert_true(answer_has(scene.run));
    close_socket();
}

static void socket_that_closes_does_not_wait_any_more(void **state)
{
    (void)state;
    scene.answers = false;
    open_socket("");
    hello(NEW_KEY);
    say("{\"op\":\"sub\",\"id\":1,\"tags\":[\"a\"]}");
    close_socket();
    open_socket("?token=" DEV_KEY);
    say("{\"op\":\"sub\",\"id\":1,\"tags\":[\"a\"]}");
    close_socket();
    answer();
    api_world_settle(&scene.world);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, open_scene, close_scene)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(routes_of_the_leader_are_not_served),
        CASE(lists_and_counts_ask_nothing),
        CASE(gateway_that_takes_the_lead_serves_everything),
        CASE(gateway_that_drains_refuses),
        CASE(poll_begins_with_what_the_leader_has),
        CASE(poll_from_a_known_position_asks_nothing),
        CASE(poll_from_a_higher_position_waits_until_it_is_applied),
        CASE(poll_within_a_walk_waits_for_what_the_leader_has),
        CASE(position_above_the_leaders_is_of_another_history),
        CASE(poll_waits_while_memory_is_late),
        CASE(event_stream_begins_with_what_the_leader_has),
        CASE(unknown_key_is_refused_after_a_question),
        CASE(repeated_unknown_key_asks_a_few_times),
        CASE(call_without_a_credential_asks_nothing),
        CASE(new_key_is_accepted_when_it_arrives),
        CASE(new_key_in_the_query_is_accepted_when_it_arrives),
        CASE(unknown_branch_is_refused_after_a_question),
        CASE(call_in_doubt_is_held),
        CASE(held_call_enters_after_the_doubt),
        CASE(call_whose_question_has_no_answer_waits),
        CASE(waiting_call_ends_when_the_gateway_takes_the_lead),
        CASE(subscription_begins_with_what_the_leader_has),
        CASE(resume_above_memory_waits_until_it_is_applied),
        CASE(messages_after_a_new_token_wait_with_it),
        CASE(unknown_token_of_a_socket_is_refused_after_a_question),
        CASE(unknown_token_of_auth_changes_nothing),
        CASE(socket_that_closes_does_not_wait_any_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
