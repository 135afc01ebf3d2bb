/* The rate of a link to a follower, and how long others' bytes wait, over a link that the test
 * simulates by the millisecond. */
#include "tests/support/world/unit.h"

#include <stdbool.h>

#include "server/peers/link_rate.h"

enum { SECOND_MS = 1000, LITTLE = 500, LITTLE_EVERY_MS = 100, MARKS = 4096 };

/* A sender that floods, except while too many bytes are unread, and sends a little for others. */
struct line {
    struct link_rate link;
    uint64_t carries, floods; /* bytes a second */
    int64_t way_ms;           /* of an answer */
    int64_t now_ms;
    uint64_t sent, carried;
    struct {
        uint64_t bytes;
        int64_t sent_ms, read_ms; /* read_ms 0: not yet */
        bool is_mark;
    } pieces[MARKS];
    size_t first, count;
    uint64_t omitted;
    int64_t longest_ms; /* until bytes of others were read */
};

static uint64_t unread(const struct line *line)
{
    return line->sent - line->link.read;
}

static void send_piece(struct line *line, uint64_t bytes)
{
    uint64_t before = line->sent;
    size_t place = line->count++ % MARKS;
    assert_true(line->count - line->first < MARKS);
    line->sent += bytes;
    line->pieces[place].bytes = line->sent;
    line->pieces[place].sent_ms = line->now_ms;
    line->pieces[place].read_ms = 0;
    line->pieces[place].is_mark = link_rate_is_due(&line->link, line->sent);
    if (line->pieces[place].is_mark)
        link_rate_mark(&line->link, line->now_ms, before, line->sent);
    link_rate_look(&line->link, line->now_ms);
}

static void read_pieces(struct line *line)
{
    line->carried += line->carries / SECOND_MS;
    if (line->carried > line->sent)
        line->carried = line->sent;
    for (size_t i = line->first; i < line->count; i++) {
        size_t at = i % MARKS;
        if (!line->pieces[at].read_ms && line->pieces[at].bytes <= line->carried)
            line->pieces[at].read_ms = line->now_ms;
    }
}

/* Answers arrive in order. */
static void take_answers(struct line *line)
{
    while (line->first < line->count) {
        size_t at = line->first % MARKS;
        int64_t read_ms = line->pieces[at].read_ms, lag_ms;
        if (!read_ms || line->now_ms < read_ms + line->way_ms)
            return;
        lag_ms = line->now_ms - line->pieces[at].sent_ms;
        if (line->pieces[at].is_mark)
            link_rate_answer(&line->link, line->now_ms, line->pieces[at].bytes,
                             line->pieces[at].sent_ms);
        if (lag_ms > line->longest_ms)
            line->longest_ms = lag_ms;
        line->first++;
    }
}

static void pass(struct line *line, int64_t ms)
{
    for (int64_t end = line->now_ms + ms; line->now_ms < end; line->now_ms++) {
        uint64_t bytes = line->floods / SECOND_MS;
        if (bytes && unread(line) >= link_rate_most(&line->link))
            line->omitted += bytes;
        else if (bytes)
            send_piece(line, bytes);
        if (line->now_ms % LITTLE_EVERY_MS == 0)
            send_piece(line, LITTLE);
        read_pieces(line);
        take_answers(line);
    }
}

/* A little was sent before. */
static struct line begin(uint64_t carries, uint64_t floods, int64_t way_ms)
{
    struct line line = { .carries = carries, .way_ms = way_ms, .now_ms = 1000 * 1000 };
    pass(&line, 2 * SECOND_MS);
    line.floods = floods;
    return line;
}

/* ---- tests ---- */

static void others_wait_for_half_a_second_at_any_rate(void **state)
{
    static const uint64_t rates[] = { 100000, 200000, 1000000, 5000000, 12000000 };
    (void)state;
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        struct line line = begin(rates[i], 20 * 1000 * 1000, 1);
        pass(&line, 10 * SECOND_MS);
        assert_true(line.omitted > 0);
        assert_in_range(link_rate_of(&line.link), rates[i] * 9 / 10, rates[i] * 11 / 10);
        uint64_t carried = line.carried;
        line.longest_ms = 0;
        pass(&line, 10 * SECOND_MS);
        int64_t least_ms = (int64_t)(2 * LINK_LEAST * SECOND_MS / rates[i]);
        assert_in_range(line.longest_ms, 100, least_ms > 500 ? least_ms : 500);
        assert_true(line.carried - carried > rates[i] * 10 * 9 / 10); /* it is in use */
    }
}

/* Nothing was measured yet. */
static void first_flood_is_bounded(void **state)
{
    struct line line = begin(200 * 1000, 20 * 1000 * 1000, 1);
    (void)state;
    pass(&line, 10 * SECOND_MS);
    assert_in_range(line.longest_ms, 1000, LINK_ASSUMED / 4 / 200 + 1000);
}

static void link_that_carries_everything_is_never_full(void **state)
{
    (void)state;
    for (int64_t way_ms = 1; way_ms < 300; way_ms *= 3) {
        struct line line = begin(100 * 1000 * 1000, 500 * 1000, way_ms);
        pass(&line, 2 * SECOND_MS);
        line.floods = 1500 * 1000;
        pass(&line, 10 * SECOND_MS);
        assert_int_equal(line.omitted, 0);
    }
}

/* Gives the link some time to be measured again. */
static void expect_nothing_omitted(struct line *line)
{
    pass(line, 5 * SECOND_MS);
    line->omitted = 0;
    pass(line, 5 * SECOND_MS);
    assert_int_equal(line->omitted, 0);
}

static void link_becomes_slower_and_faster(void **state)
{
    struct line line = begin(50 * 1000 * 1000, 10 * 1000 * 1000, 1);
    (void)state;
    pass(&line, 5 * SECOND_MS);
    assert_int_equal(line.omitted, 0);
    line.carries = 300 * 1000;
    pass(&line, 5 * SECOND_MS);
    pass(&line, 10 * SECOND_MS);
    assert_true(line.omitted > 0);
    line.longest_ms = 0;
    pass(&line, 5 * SECOND_MS);
    assert_in_range(line.longest_ms, 100, 500);
    line.carries = 50 * 1000 * 1000;
    expect_nothing_omitted(&line);
}

static void follower_that_reads_nothing_is_full(void **state)
{
    struct line line = begin(0, 1000 * 1000, 1);
    (void)state;
    pass(&line, 5 * SECOND_MS);
    assert_int_equal(link_rate_of(&line.link), LINK_SLOWEST);
    assert_int_equal(link_rate_most(&line.link), LINK_LEAST);
    assert_true(unread(&line) < LINK_ASSUMED / 2);
    line.carries = 50 * 1000 * 1000;
    line.floods = 5 * 1000 * 1000;
    expect_nothing_omitted(&line);
}

static void wrong_answers_change_nothing(void **state)
{
    static const int64_t wrong[] = { INT64_MIN, -1, 13, INT64_MAX };
    struct link_rate link = { 0 };
    (void)state;
    link_rate_answer(&link, 5, 10, 4);
    assert_int_equal(link.read, 0);
    link_rate_mark(&link, 10, 0, LINK_MARK);
    link_rate_answer(&link, 11, LINK_MARK + 1, 10);
    assert_int_equal(link.read, 0);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        link_rate_answer(&link, 12, LINK_MARK, wrong[i]);
        assert_int_equal(link.read, 0);
        assert_int_equal(link.least_ms, 0);
    }
    link_rate_answer(&link, 12, LINK_MARK, 10);
    assert_int_equal(link.read, LINK_MARK);
    link_rate_answer(&link, 13, 100, 12);
    assert_int_equal(link.read, LINK_MARK);
    assert_int_equal(link.least_ms, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(others_wait_for_half_a_second_at_any_rate),
        cmocka_unit_test(first_flood_is_bounded),
        cmocka_unit_test(link_that_carries_everything_is_never_full),
        cmocka_unit_test(link_becomes_slower_and_faster),
        cmocka_unit_test(follower_that_reads_nothing_is_full),
        cmocka_unit_test(wrong_answers_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
