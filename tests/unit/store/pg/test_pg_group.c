/* Commits become the arrays that the SQL function takes, compared byte by byte. Its result
 * becomes their statuses, positions and numbers. */
#include "store/pg/pg_group.h"

#include <stdio.h>

#include "tests/support/contract/store_contract.h"

static const struct pg_types types = {
    .request = 1001, .claim = 1003, .document = 1005, .run = 1007
};

static struct pg_group group;
static struct list commits;

static int set_up(void **state)
{
    (void)state;
    pg_group_init(&group);
    list_init(&commits);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pg_group_finish(&group);
    return 0;
}

static uint64_t term_of(const void *owner, uint32_t env)
{
    (void)owner;
    return env + 100;
}

static void add(struct store_commit *req)
{
    list_append(&commits, &req->link);
}

static void encode(void)
{
    pg_group_encode(&group, &commits, &types, term_of, NULL);
}

/* ---- values ---- */

static void assert_hex(struct slice value, const char *expected)
{
    char hex[512];
    size_t len = 0;
    for (size_t i = 0; i < value.len && len < sizeof(hex) - 2; i++)
        len += (size_t)snprintf(hex + len, sizeof(hex) - len, "%02x",
                                (unsigned char)value.ptr[i]);
    hex[len] = '\0';
    assert_string_equal(hex, expected);
}

static void numbers_and_bytes_are_put_in_binary(void **state)
{
    (void)state;
    struct pg_array array = { 0 };
    pg_array_begin(&array, PG_INT4);
    assert_hex(pg_array_end(&array), "000000000000000000000017");
    pg_array_begin(&array, PG_INT4);
    pg_put_int4(&array, -2);
    assert_hex(pg_array_end(&array), "0000000100000000000000170000000100000001"
                                     "00000004fffffffe");
    pg_array_begin(&array, PG_BYTEA);
    pg_put_bytes(&array, (struct slice){ "\0\xff", 2 });
    pg_put_bytes(&array, (struct slice){ "", 0 });
    pg_put_bytes(&array, (struct slice){ 0 });
    assert_hex(pg_array_end(&array), "0000000100000000000000110000000300000001"
                                     "0000000200ff"
                                     "00000000"
                                     "ffffffff");
    pg_array_finish(&array);
}

static void composite_contains_its_field_types(void **state)
{
    (void)state;
    struct pg_array array = { 0 };
    pg_array_begin(&array, 1003);
    pg_row_begin(&array);
    pg_put_int2(&array, 7);
    pg_put_bool(&array, true);
    pg_put_real(&array, 1.0);
    pg_put_byteas(&array, NULL, 0);
    pg_row_end(&array);
    assert_hex(pg_array_end(&array), "0000000100000000000003eb0000000100000001"
                                     "0000002f00000004"
                                     "00000015000000020007"
                                     "000000100000000101"
                                     "000002bd000000083ff0000000000000"
                                     "000003e9ffffffff");
    pg_array_finish(&array);
}

static void parameters_copy_numbers_and_borrow_bytes(void **state)
{
    (void)state;
    struct pg_params params = { 0 };
    for (int i = 0; i < 40; i++)
        pg_param_int8(&params, i);
    pg_param_text(&params, NULL);
    pg_param_bytes(&params, SLICE("a\0b"));
    assert_int_equal(params.count, 42);
    for (size_t i = 0; i < 40; i++) {
        struct slice value = { pg_param_value(&params, i), params.items[i].len };
        int64_t number;
        assert_true(pg_take_int8(&value, &number));
        assert_int_equal(number, i);
    }
    assert_null(pg_param_value(&params, 40));
    assert_int_equal(params.items[41].len, 3);
    assert_memory_equal(pg_param_value(&params, 41), "a\0b", 3);
    pg_params_finish(&params);
}

/* ---- groups ---- */

static void environments_are_sent_once_in_order(void **state)
{
    (void)state;
    struct change first[] = { new_document(9, DOC_QUEUE, "q", "x"),
                              new_document(3, DOC_QUEUE, "q", "x") };
    struct change second = new_document(9, DOC_QUEUE, "r", "x");
    struct store_commit reqs[] = { { .changes = first, .change_count = 2 },
                                   { .changes = &second, .change_count = 1 } };
    add(&reqs[0]);
    add(&reqs[1]);
    encode();
    assert_hex(pg_array_end(&group.envs), "0000000100000000000000170000000200000001"
                                          "0000000400000003"
                                          "0000000400000009");
    assert_hex(pg_array_end(&group.terms), "0000000100000000000000140000000200000001"
                                           "000000080000000000000067"
                                           "00000008000000000000006d");
    assert_int_equal(group.request_count, 2);
    assert_int_equal(group.documents.count, 3);
    change_finish(&first[0]);
    change_finish(&first[1]);
    change_finish(&second);
}

static void add_answer(struct buf *answer, int requests, int heads, int tasks)
{
    buf_add_char(answer, 'a');
    pg_add_int4(answer, requests);
    pg_add_int4(answer, heads);
    pg_add_int4(answer, tasks);
}

/* Only commits that were written count. */
static void positions_and_numbers_are_counted_from_the_answer(void **state)
{
    (void)state;
    struct change changes[] = { new_run(ENV_A, 1, "a"), new_run(ENV_A, 2, "a"),
                                new_run(ENV_A, 3, "b"), new_run(ENV_A, 4, "a") };
    struct store_commit reqs[4];
    for (int i = 0; i < 4; i++) {
        reqs[i] = (struct store_commit){ .changes = &changes[i], .change_count = 1 };
        add(&reqs[i]);
    }
    encode();
    struct buf answer = { 0 };
    add_answer(&answer, 4, 1, 2);
    pg_add_int8(&answer, 41);
    pg_add_int8(&answer, -5);
    pg_add_int8(&answer, 6);
    pg_add_int8(&answer, 0);
    buf_add_text(&answer, "oloo");
    assert_int_equal(pg_group_decode(&group, buf_slice(&answer), &commits), PG_ANSWERED);
    static const struct {
        enum store_status status;
        uint64_t seq;
        uint32_t number;
    } expected[] = {
        { STORE_OK, 42, 7 }, { STORE_LOST, 0, 0 }, { STORE_OK, 43, 1 }, { STORE_OK, 44, 8 }
    };
    for (int i = 0; i < 4; i++) {
        assert_int_equal(reqs[i].status, expected[i].status);
        assert_int_equal(changes[i].seq, expected[i].seq);
        assert_int_equal(changes[i].run.number, expected[i].number);
        assert_int_equal(changes[i].run.rev, expected[i].seq);
        change_finish(&changes[i]);
    }
    assert_int_equal(group.heads[0].grown, -5);
    buf_finish(&answer);
}

static void owners_of_taken_claims_are_read(void **state)
{
    (void)state;
    struct bytes *key = text_bytes("key");
    struct claim claims[] = {
        { .env = ENV_A, .key = key, .owner = "run_1", .kind = CLAIM_REQUEST },
        { .env = ENV_A, .key = key, .owner = "run_1", .kind = CLAIM_BATCH },
    };
    struct store_commit reqs[] = { { .claims = claims, .claim_count = 2 }, { 0 } };
    add(&reqs[0]);
    add(&reqs[1]);
    encode();
    struct buf answer = { 0 };
    add_answer(&answer, 2, 1, 0);
    pg_add_int8(&answer, 0);
    pg_add_int8(&answer, 0);
    buf_add_char(&answer, 't');
    pg_add_int4(&answer, -1);
    pg_add_int4(&answer, 5);
    buf_add_text(&answer, "run_9m");
    assert_int_equal(pg_group_decode(&group, buf_slice(&answer), &commits), PG_ANSWERED);
    assert_int_equal(reqs[0].status, STORE_TAKEN);
    assert_false(claims[0].taken);
    assert_true(claims[1].taken);
    assert_string_equal(claims[1].owner, "run_9");
    assert_int_equal(reqs[1].status, STORE_MOVED);
    buf_finish(&answer);
    bytes_unref(key);
}

/* Every shorter length, and every other first letter. */
static void malformed_answer_is_rejected(void **state)
{
    (void)state;
    struct change change = new_run(ENV_A, 1, "a");
    struct store_commit req = { .changes = &change, .change_count = 1 };
    add(&req);
    encode();
    struct buf answer = { 0 };
    add_answer(&answer, 1, 1, 1);
    for (int i = 0; i < 3; i++)
        pg_add_int8(&answer, 1);
    buf_add_char(&answer, 'o');
    struct slice whole = buf_slice(&answer);
    for (size_t len = 0; len < whole.len; len++)
        assert_int_equal(
            pg_group_decode(&group, (struct slice){ whole.ptr, len }, &commits),
            PG_GARBLED);
    assert_int_equal(pg_group_decode(&group, SLICE("g"), &commits), PG_GONE);
    assert_int_equal(pg_group_decode(&group, SLICE("o"), &commits), PG_STRAY);
    assert_int_equal(pg_group_decode(&group, SLICE("x"), &commits), PG_GARBLED);
    assert_int_equal(pg_group_decode(&group, whole, &commits), PG_ANSWERED);
    buf_clear(&answer);
    add_answer(&answer, 0, 0, 0);
    assert_int_equal(pg_group_decode(&group, buf_slice(&answer), &commits), PG_VOIDED);
    buf_finish(&answer);
    change_finish(&change);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(numbers_and_bytes_are_put_in_binary),
        cmocka_unit_test(composite_contains_its_field_types),
        cmocka_unit_test(parameters_copy_numbers_and_borrow_bytes),
        CASE(environments_are_sent_once_in_order),
        CASE(positions_and_numbers_are_counted_from_the_answer),
        CASE(owners_of_taken_claims_are_read),
        CASE(malformed_answer_is_rejected),
    };
    return cmocka_run_group_tests_name("groups for PostgreSQL", cases, NULL, NULL);
}
