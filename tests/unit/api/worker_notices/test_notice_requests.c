/* The requests of a worker's socket are queued in order, up to a limit. */
#include "tests/support/world/unit.h"

#include "api/worker_notices/notice_requests.h"

#define ID "run_aaaaaaaaaaaaaaaaaaaaa"

static bool add(struct notice_requests *requests, const char *event, struct buf *ids)
{
    struct buf text = { 0 };
    struct socket_packet packet;
    buf_print(&text, "42/worker,[\"%s\",{\"version\":\"1\",\"runFriendlyIds\":[%.*s]}]",
              event, SLICE_ARG(buf_slice(ids)));
    assert_int_equal(socket_packet_read(buf_slice(&text), &packet), OK);
    bool fits = notice_requests_add(requests, &packet);
    buf_finish(&text);
    buf_finish(ids);
    return fits;
}

static void requests_are_taken_in_order(void **state)
{
    (void)state;
    struct notice_requests requests = { 0 };
    struct notice_request request;
    struct buf ids = { 0 };
    buf_add_text(&ids, "\"" ID "\",\"" ID "b\"");
    assert_true(add(&requests, "run:subscribe", &ids));
    buf_add_text(&ids, "\"" ID "\"");
    assert_true(add(&requests, "run:unsubscribe", &ids));
    static const struct {
        bool subscribe;
        const char *id;
    } expected[] = { { true, ID }, { true, ID "b" }, { false, ID } };
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        assert_true(notice_requests_take(&requests, &request));
        assert_int_equal(request.subscribe, expected[i].subscribe);
        assert_string_equal(request.id, expected[i].id);
    }
    assert_false(notice_requests_take(&requests, &request));
    notice_requests_finish(&requests);
}

static void invalid_run_id_is_not_looked_up(void **state)
{
    (void)state;
    struct notice_requests requests = { 0 };
    struct buf ids = { 0 };
    for (int i = 0; i < 15000; i++)
        buf_add_text(&ids, i ? ",\"a\"" : "\"a\"");
    assert_true(add(&requests, "run:subscribe", &ids));
    assert_true(notice_requests_are_empty(&requests));
    notice_requests_finish(&requests);
}

static void only_run_ids_are_read_from_an_event(void **state)
{
    static const struct {
        const char *text;
        const char *id; /* the one that is accepted; NULL: none */
    } cases[] = {
        { "42/w,7[\"run:unsubscribe\",{\"runFriendlyIds\":[\"" ID "\"]}]", ID },
        { "42[\"run:subscr\\u0069be\",{\"runFriendlyIds\":[\"" ID "\"]}]", ID },
        { "42[\"run:subscribe\",{\"runFriendlyIds\":[1,null,\"\",[\"" ID
          "\"],\"\\u0072un_aaaaaaaaaaaaaaaaaaaaa\",\"" ID "c\"]}]",
          ID "c" },
        { "42[\"run:subscribe\",{\"runFriendlyIds\":[]}]", NULL },
        { "42[\"run:subscribe\",{\"runFriendlyIds\":\"" ID "\"}]", NULL },
        { "42[\"run:subscribe\",[\"" ID "\"]]", NULL },
        { "42[\"run:subscribe\"]", NULL },
        { "42[\"run:sing\",{\"runFriendlyIds\":[\"" ID "\"]}]", NULL },
        { "40/w,{\"runFriendlyIds\":[\"" ID "\"]}", NULL },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct notice_requests requests = { 0 };
        struct notice_request request;
        struct socket_packet packet;
        assert_int_equal(socket_packet_read(slice_of(cases[i].text), &packet), OK);
        assert_true(notice_requests_add(&requests, &packet));
        assert_int_equal(notice_requests_take(&requests, &request), cases[i].id != NULL);
        if (cases[i].id)
            assert_string_equal(request.id, cases[i].id);
        assert_false(notice_requests_take(&requests, &request));
        notice_requests_finish(&requests);
    }
}

static void too_many_pending_requests_are_rejected(void **state)
{
    (void)state;
    struct notice_requests requests = { 0 };
    struct notice_request request;
    for (int round = 0; round < 2;
         round++) { /* requests that were taken free their slots */
        struct buf ids = { 0 };
        for (int i = 0; i < NOTICE_REQUESTS_MAX; i++)
            buf_add_text(&ids, i ? ",\"" ID "\"" : "\"" ID "\"");
        assert_true(add(&requests, "run:subscribe", &ids));
        buf_add_text(&ids, "\"" ID "\"");
        assert_false(add(&requests, "run:subscribe", &ids));
        for (int i = 0; i < NOTICE_REQUESTS_MAX; i++)
            assert_true(notice_requests_take(&requests, &request));
        assert_true(notice_requests_are_empty(&requests));
    }
    notice_requests_finish(&requests);
}

static void queue_that_is_never_empty_does_not_grow(void **state)
{
    (void)state;
    struct notice_requests requests = { 0 };
    struct notice_request request;
    struct buf ids = { 0 };
    buf_add_text(&ids, "\"" ID "\"");
    assert_true(add(&requests, "run:subscribe", &ids));
    for (int round = 0; round < 1000; round++) {
        buf_add_text(&ids, "\"" ID "\"");
        assert_true(add(&requests, "run:subscribe", &ids));
        assert_true(notice_requests_take(&requests, &request));
        assert_false(notice_requests_are_empty(&requests));
    }
    assert_in_range(requests.queue.len, sizeof(request), 4 * sizeof(request));
    notice_requests_finish(&requests);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_taken_in_order),
        cmocka_unit_test(invalid_run_id_is_not_looked_up),
        cmocka_unit_test(only_run_ids_are_read_from_an_event),
        cmocka_unit_test(too_many_pending_requests_are_rejected),
        cmocka_unit_test(queue_that_is_never_empty_does_not_grow),
    };
    return cmocka_run_group_tests_name("notice wishes", tests, NULL, NULL);
}
