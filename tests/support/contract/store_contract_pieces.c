/* store_contract_pieces.c - what every driver must do: bodies of documents, piece by
 * piece. */
#include "base/mem.h"
#include "tests/support/contract/store_contract_cases.h"

struct waiting_piece {
    struct store_piece req;
    bool answered;
    enum store_status status;
};

static void on_piece(struct store_read *read, enum store_status status)
{
    struct waiting_piece *waiting = container_of(read, struct waiting_piece, req.read);
    waiting->status = status;
    waiting->answered = true;
}

/* Reads from the packet "p" in the first environment; returns the request with its
 * results. */
static struct store_piece read_piece(struct store_world *world, struct store_piece req,
                                     enum store_status expected)
{
    struct waiting_piece waiting = { .req = req };
    struct bytes *name = text_bytes("p");
    waiting.req.read = (struct store_read){ READ_PIECE, ENV_A, on_piece };
    waiting.req.kind = DOC_PACKET;
    waiting.req.name = name;
    world->store->ops->read(world->store, &waiting.req.read);
    assert_false(waiting.answered);
    while (!waiting.answered)
        world->turn(world);
    bytes_unref(name);
    assert_int_equal(waiting.status, expected);
    return waiting.req;
}

static char letter(size_t at)
{
    return (char)(at * 31 % 251);
}

static void assert_piece(struct store_world *world, struct store_piece req, size_t start,
                         size_t len)
{
    struct store_piece got = read_piece(world, req, STORE_OK);
    assert_non_null(got.piece);
    assert_int_equal(got.piece->len, len);
    for (size_t i = 0; i < len; i++)
        assert_int_equal(got.piece->data[i], letter(start + i));
    bytes_unref(got.piece);
}

static struct change letters(size_t len)
{
    struct change change = new_document(ENV_A, DOC_PACKET, "p", "");
    bytes_unref(change.document.body);
    change.document.body = bytes_create_empty(len);
    for (size_t i = 0; i < len; i++)
        change.document.body->data[i] = letter(i);
    return change;
}

static void a_body_comes_in_the_pieces_that_are_asked_for(void **state)
{
    struct store_world *world = *state;
    const size_t len = 300000;
    assert_int_equal(commit_one(world, letters(len)), STORE_OK);
    struct store_piece first =
        read_piece(world, (struct store_piece){ .limit = 10 }, STORE_OK);
    assert_int_equal(first.total, len);
    assert_true(first.seq > 0);
    bytes_unref(first.piece);
    assert_piece(world, (struct store_piece){ .limit = len }, 0, len);
    assert_piece(world, (struct store_piece){ .limit = len + 1 }, 0, len);
    assert_piece(world, (struct store_piece){ .limit = 4096, .seq = first.seq }, 0, 4096);
    assert_piece(world, (struct store_piece){ .offset = 4095, .limit = 100000 }, 4095,
                 100000);
    assert_piece(world, (struct store_piece){ .offset = len - 1, .limit = 100 }, len - 1,
                 1);
    assert_piece(world, (struct store_piece){ .offset = len, .limit = 100 }, 0, 0);
    assert_piece(world, (struct store_piece){ .last = true, .limit = 1 }, len - 1, 1);
    assert_piece(world, (struct store_piece){ .last = true, .limit = 129 }, len - 129, 129);
    assert_piece(world, (struct store_piece){ .last = true, .limit = len }, 0, len);
    assert_piece(world, (struct store_piece){ .last = true, .limit = 2 * len }, 0, len);
}

static void an_empty_body_has_an_empty_piece(void **state)
{
    struct store_world *world = *state;
    assert_int_equal(commit_one(world, letters(0)), STORE_OK);
    assert_piece(world, (struct store_piece){ .limit = 10 }, 0, 0);
    assert_piece(world, (struct store_piece){ .last = true, .limit = 10 }, 0, 0);
}

static void expect_lost(struct store_world *world, uint64_t seq, enum store_status status)
{
    struct store_piece got =
        read_piece(world, (struct store_piece){ .limit = 10, .seq = seq }, status);
    assert_null(got.piece);
}

/* The version alone would not show the replacement: it is 1 again. */
static void a_piece_is_of_the_body_that_was_meant(void **state)
{
    struct store_world *world = *state;
    struct change change = letters(100);
    expect_lost(world, 0, STORE_MISSING);
    assert_int_equal(commit(world, &change, 1, NULL, 0), STORE_OK);
    struct store_piece first =
        read_piece(world, (struct store_piece){ .limit = 10 }, STORE_OK);
    bytes_unref(first.piece);

    change.expected = 1;
    assert_int_equal(commit(world, &change, 1, NULL, 0), STORE_OK);
    expect_lost(world, first.seq, STORE_LOST);
    struct store_piece second =
        read_piece(world, (struct store_piece){ .limit = 10 }, STORE_OK);
    assert_true(second.seq > first.seq);
    bytes_unref(second.piece);

    bytes_clear(&change.document.body);
    change.expected = 2;
    assert_int_equal(commit(world, &change, 1, NULL, 0), STORE_OK);
    expect_lost(world, second.seq, STORE_MISSING);
    change_finish(&change);
    assert_int_equal(commit_one(world, letters(100)), STORE_OK);
    expect_lost(world, second.seq, STORE_LOST);
    expect_lost(world, first.seq, STORE_LOST);
}

const struct CMUnitTest store_piece_cases[] = {
    cmocka_unit_test(a_body_comes_in_the_pieces_that_are_asked_for),
    cmocka_unit_test(an_empty_body_has_an_empty_piece),
    cmocka_unit_test(a_piece_is_of_the_body_that_was_meant),
};
const size_t store_piece_case_count =
    sizeof(store_piece_cases) / sizeof(store_piece_cases[0]);
