/* Tokens that clients complete: made, found by key, completed once, timed out, listed. */
#include "tests/support/world/api_scene.h"
#include "tests/support/world/wall.h"

#include <stdio.h>

enum { HOUR = 3600 * 1000, LARGE = 1000 * 1000, BEYOND = 1024 * 1024 };

#define TOKENS "/api/v1/waitpoints/tokens"

static char token[ID_MAX];

static void create(const char *body)
{
    post(body, TOKENS);
    assert_answered(200);
    keep("id", token, sizeof(token));
}

static void complete(const char *body)
{
    post(body, TOKENS "/%s/complete", token);
}

static void look(const char *status)
{
    get(TOKENS "/%s", token);
    assert_answered(200);
    assert_says("status", status);
}

static void fail_next_commit(enum store_status status)
{
    fake_store_fail_with(scene.fake, status);
    *fake_store_fault(scene.fake) = (struct fault){ .countdown = 1 };
}

/* ---- completing ---- */

static void first_output_of_a_token_is_kept_byte_for_byte(void **state)
{
    (void)state;
    create("{\"tags\":\"user:1\"}");
    look("WAITING");
    assert_says("completedAt", NULL);
    complete("{\"data\":{ \"n\":12345678901234567890, \"text\":\"\\u00e9\" }}");
    assert_answered(200);
    assert_says("success", "true");
    complete("{\"data\":2}");
    assert_answered(200);
    look("COMPLETED");
    assert_says("output", "{ \"n\":12345678901234567890, \"text\":\"\\u00e9\" }");
    assert_says("outputType", "application/json");
    assert_says("outputIsError", "false");
    assert_says("tags.0", "user:1");
}

static void a_token_may_be_completed_with_nothing_or_null(void **state)
{
    static const char *const nothing[] = { "", "{}" };
    (void)state;
    for (int i = 0; i < 2; i++) {
        create("{}");
        complete(nothing[i]);
        assert_answered(200);
        look("COMPLETED");
        assert_says("output", NULL);
        assert_says("outputType", NULL);
        assert_says("outputIsError", "false");
    }
    create("{}");
    complete("{\"data\":null}");
    look("COMPLETED");
    assert_says("output", "null");
}

/* Completes the token with a JSON string of that many letters. */
static void complete_with(size_t letters)
{
    struct buf body = { 0 };
    buf_add_text(&body, "{\"data\":\"");
    memset(buf_reserve(&body, letters), 'x', letters);
    body.len += letters;
    buf_add_text(&body, "\"}");
    buf_add_char(&body, '\0');
    complete(body.ptr);
    buf_finish(&body);
}

static void large_output_is_kept_and_too_large_one_rejected(void **state)
{
    (void)state;
    create("{}");
    complete_with(BEYOND);
    assert_answered(413);
    look("WAITING");
    complete_with(LARGE);
    assert_answered(200);
    look("COMPLETED");
    assert_true(scene.body.len > LARGE);
    assert_holds("\"output\":\"\\\"xxx");
}

static void invalid_completion_changes_nothing(void **state)
{
    (void)state;
    create("{}");
    complete("{\"data\":1");
    assert_answered(400);
    complete("{\"data\":1,\"data\":2}");
    assert_answered(400);
    assert_holds("names a member twice");
    with_key(API_KEY_PROD);
    complete("{\"data\":1}");
    assert_answered(404);
    assert_says("error", "Waitpoint not found");
    look("WAITING");
}

static void a_token_whose_timeout_has_passed_stays_timed_out(void **state)
{
    char timeout[40];
    (void)state;
    create("{\"timeout\":\"1h\"}");
    look("WAITING");
    keep("timeoutAt", timeout, sizeof(timeout));
    wall_advance(HOUR);
    look("TIMED_OUT");
    complete("{\"data\":1}");
    assert_answered(200);
    look("TIMED_OUT");
    assert_says("completedAt", timeout);
    assert_says("outputIsError", "true");
    assert_holds("TRIGGER_WAITPOINT_TIMEOUT");
}

static void a_token_completed_in_time_does_not_time_out(void **state)
{
    (void)state;
    create("{\"timeout\":\"1h\"}");
    complete("{\"data\":1}");
    wall_advance(2 * HOUR);
    look("COMPLETED");
    assert_says("output", "1");
}

static void failed_completion_can_be_retried(void **state)
{
    static const enum store_status failures[] = { STORE_FAILED, STORE_NO_SPACE };
    (void)state;
    for (int i = 0; i < 2; i++) {
        create("{}");
        fail_next_commit(failures[i]);
        complete("{\"data\":1}");
        assert_answered(503);
        look("WAITING");
        complete("{\"data\":2}");
        assert_answered(200);
        look("COMPLETED");
        assert_says("output", "2");
    }
}

static void unreadable_token_is_neither_shown_nor_completed(void **state)
{
    (void)state;
    create("{}");
    *fake_store_load_fault(scene.fake) = (struct fault){ .countdown = 1, .repeat = 1 };
    complete("{\"data\":1}");
    assert_answered(503);
    get(TOKENS "/%s", token);
    assert_answered(503);
    look("WAITING");
}

/* ---- by its URL ---- */

static const char *path_of(const char *url)
{
    const char *path = strstr(url, "/api/");
    assert_non_null(path);
    return path;
}

static void callback_url_completes_only_its_token(void **state)
{
    char url[512], other[512], forged[512];
    (void)state;
    create("{}");
    keep("url", other, sizeof(other));
    create("{}");
    keep("url", url, sizeof(url));
    snprintf(forged, sizeof(forged), TOKENS "/%s/callback%s", token,
             strrchr(other, '/') - strlen(api_world_account(&scene)->id) - 1);
    with_key(API_KEY_NONE);
    post("1", "%s", forged);
    assert_answered(403);
    with_key(API_KEY_NONE);
    post(" {\"from\":\"a webhook\"} ", "%s", path_of(url));
    assert_answered(200);
    look("COMPLETED");
    assert_says("output", "{\"from\":\"a webhook\"}");
    assert_says("url", url);
    with_key(API_KEY_NONE);
    post("", "%s", path_of(other));
    assert_answered(200);
}

/* ---- keys ---- */

static void key_returns_its_token_until_it_expires(void **state)
{
    static const char keyed[] = "{\"idempotencyKey\":\"k\",\"idempotencyKeyTTL\":\"1h\"}";
    char first[ID_MAX];
    (void)state;
    create(keyed);
    assert_says("isCached", "false");
    memcpy(first, token, sizeof(first));
    create(keyed);
    assert_says("isCached", "true");
    assert_string_equal(token, first);
    with_key(API_KEY_PROD);
    post(keyed, TOKENS);
    assert_says("isCached", "false");
    complete("{\"data\":1}");
    create(keyed);
    assert_string_equal(token, first);
    wall_advance(HOUR);
    create(keyed);
    assert_says("isCached", "false");
    assert_string_not_equal(token, first);
    look("WAITING");
    assert_says("idempotencyKey", "k");
}

static void failed_token_leaves_its_key_free(void **state)
{
    (void)state;
    fail_next_commit(STORE_FAILED);
    post("{\"idempotencyKey\":\"k\"}", TOKENS);
    assert_answered(503);
    create("{\"idempotencyKey\":\"k\"}");
    assert_says("isCached", "false");
    *fake_store_load_fault(scene.fake) = (struct fault){ .countdown = 1 };
    post("{\"idempotencyKey\":\"k\"}", TOKENS);
    assert_answered(503);
    create("{\"idempotencyKey\":\"k\"}");
    assert_says("isCached", "true");
}

static void repeated_request_makes_one_token(void **state)
{
    char first[ID_MAX];
    (void)state;
    for (int i = 0; i < 2; i++) {
        with_headers("x-trigger-request-idempotency-key: r\r\n");
        create("{}");
        assert_says("isCached", "false");
        if (!i)
            memcpy(first, token, sizeof(first));
    }
    assert_string_equal(token, first);
}

static void invalid_token_body_is_rejected(void **state)
{
    static const struct {
        const char *body, *error;
    } wrong[] = {
        { "{\"timeout\":\"soon\"}", "timeout: must be a duration" },
        { "{\"timeout\":true}", "timeout: must be a string" },
        { "{\"tags\":[1]}", "tags: must be" },
        { "{\"tags\":{}}", "tags: must be" },
        { "{\"tags\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\",\"10\",\"11\"]"
          "}",
          "tags: at most 10" },
        { "{\"idempotencyKey\":1}", "idempotencyKey: must be a string" },
        { "{", "" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        post(wrong[i].body, TOKENS);
        assert_answered(400);
        assert_holds(wrong[i].error);
    }
    get(TOKENS);
    assert_says("data", "[]");
}

/* ---- lists ---- */

static void list_says(const char *query, const char *first, const char *second)
{
    get(TOKENS "?%s", query);
    assert_answered(200);
    assert_says("data.0.id", first);
    assert_says("data.1.id", second);
    assert_says("data.2", NULL);
}

static void tokens_are_listed_by_status_key_tag_and_age(void **state)
{
    char waiting[ID_MAX], late[ID_MAX];
    (void)state;
    create("{\"tags\":[\"a\",\"b\"],\"idempotencyKey\":\"k\"}");
    memcpy(waiting, token, sizeof(waiting));
    wall_advance(1);
    create("{\"timeout\":\"2000-01-01\",\"tags\":\"b\"}");
    memcpy(late, token, sizeof(late));
    wall_advance(HOUR);
    create("{}");
    complete("{\"data\":1}");
    list_says("filter[status]=WAITING", waiting, NULL);
    list_says("filter[status]=TIMED_OUT", late, NULL);
    list_says("filter[status]=COMPLETED,%20WAITING", token, waiting);
    list_says("filter[idempotencyKey]=k", waiting, NULL);
    list_says("filter[tags]=a", waiting, NULL);
    list_says("filter[tags]=nobody,b", late, waiting);
    list_says("filter[createdAt][period]=30m", token, NULL);
    list_says("filter[createdAt][from]=1&filter[tags]=b", late, waiting);
    list_says("filter[createdAt][to]=1", NULL, NULL);
    with_key(API_KEY_PROD);
    list_says("page[size]=100", NULL, NULL);
}

static void pages_link_to_each_other(void **state)
{
    char ids[3][ID_MAX], edge[ID_MAX];
    (void)state;
    for (int i = 0; i < 3; i++) {
        create("{}");
        memcpy(ids[i], token, sizeof(token));
        wall_advance(1);
    }
    list_says("page[size]=2", ids[2], ids[1]);
    assert_says("pagination.previous", NULL);
    keep("pagination.next", edge, sizeof(edge));
    get(TOKENS "?page[size]=2&page[after]=%s", edge);
    assert_says("data.0.id", ids[0]);
    assert_says("data.1", NULL);
    assert_says("pagination.next", NULL);
    keep("pagination.previous", edge, sizeof(edge));
    get(TOKENS "?page[size]=2&page[before]=%s", edge);
    assert_says("data.0.id", ids[2]);
    assert_says("data.1.id", ids[1]);
    assert_says("pagination.previous", NULL);
}

static void invalid_list_query_is_rejected(void **state)
{
    static const char *const wrong[] = { "filter[status]=NOTHING",
                                         "page[size]=0",
                                         "page[size]=101",
                                         "page[size]=x",
                                         "filter[createdAt][from]=soon",
                                         "filter[createdAt][to]=soon",
                                         "filter[createdAt][period]=soon" };
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        get(TOKENS "?%s", wrong[i]);
        assert_answered(400);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scene_open, scene_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(first_output_of_a_token_is_kept_byte_for_byte),
        TEST(a_token_may_be_completed_with_nothing_or_null),
        TEST(large_output_is_kept_and_too_large_one_rejected),
        TEST(invalid_completion_changes_nothing),
        TEST(a_token_whose_timeout_has_passed_stays_timed_out),
        TEST(a_token_completed_in_time_does_not_time_out),
        TEST(failed_completion_can_be_retried),
        TEST(unreadable_token_is_neither_shown_nor_completed),
        TEST(callback_url_completes_only_its_token),
        TEST(key_returns_its_token_until_it_expires),
        TEST(failed_token_leaves_its_key_free),
        TEST(repeated_request_makes_one_token),
        TEST(invalid_token_body_is_rejected),
        TEST(tokens_are_listed_by_status_key_tag_and_age),
        TEST(pages_link_to_each_other),
        TEST(invalid_list_query_is_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
