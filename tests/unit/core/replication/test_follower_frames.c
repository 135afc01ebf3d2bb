/* Frames that only followers send, and the responses to their commands: read as they were
 * written, or rejected. */
#include "tests/support/world/unit.h"

#include "core/replication/frame_codec.h"
#include "core/replication/pack.h"

static struct repl_frame read_again(const struct repl_frame *frame)
{
    struct buf out = { 0 };
    struct repl_frame again;
    struct failure why;
    repl_write(frame, &out);
    struct slice message = buf_slice(&out);
    assert_int_equal(repl_read(&message, &again, &why), OK);
    assert_int_equal(message.len, 0);
    assert_int_equal(again.kind, frame->kind);
    buf_finish(&out);
    return again;
}

static bool is_refused(struct slice message)
{
    struct repl_frame frame;
    struct failure why;
    return repl_read(&message, &frame, &why) == ERR_INVALID;
}

static void frames_for_operators_are_read_as_they_were_written(void **state)
{
    struct repl_use list[2] = { { .hash = { 1, 2 }, .used_at = 1700000000000 },
                                { .hash = { 255 }, .used_at = 0 } };
    struct repl_frame report = { .kind = REPL_REPORT,
                                 .report = { "1.2.3-rc.1", true, UINT64_MAX, 12 } };
    struct repl_frame uses = { .kind = REPL_USES, .uses = { list, 2 } };
    (void)state;
    struct repl_frame again = read_again(&report);
    assert_string_equal(again.report.program, "1.2.3-rc.1");
    assert_true(again.report.is_current);
    assert_int_equal(again.report.taken, UINT64_MAX);
    assert_int_equal(again.report.lag_ms, 12);
    again = read_again(&uses);
    assert_int_equal(again.uses.count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_memory_equal(again.uses.list[i].hash, list[i].hash, HASH_LEN);
        assert_int_equal(again.uses.list[i].used_at, list[i].used_at);
    }
    repl_frame_finish(&again);
    static const enum repl_kind kinds[] = { REPL_COMMAND, REPL_ANSWER };
    for (size_t i = 0; i < 2; i++) {
        struct repl_frame command = { .kind = kinds[i],
                                      .command = { 7, bytes_create(SLICE("sealed")) } };
        again = read_again(&command);
        assert_int_equal(again.command.number, 7);
        assert_true(slice_is(bytes_slice(again.command.text), "sealed"));
        repl_frame_finish(&again);
        repl_frame_finish(&command);
    }
}

/* A leader of version 1 skips the frame, but cuts a follower whose message is longer. */
static void most_uses_of_a_frame_are_short_enough_for_any_leader(void **state)
{
    enum { MESSAGE_MAX = 1024 - 16 /* its MAC */ };
    struct repl_use list[REPL_USES_MAX] = { 0 };
    struct repl_frame uses = { .kind = REPL_USES, .uses = { list, REPL_USES_MAX } };
    struct buf out = { 0 };
    (void)state;
    for (size_t i = 0; i < REPL_USES_MAX; i++)
        list[i].used_at = INT64_MAX;
    repl_write(&uses, &out);
    assert_true(out.len <= MESSAGE_MAX);
    buf_finish(&out);
}

/* A list of hashes of which one is too short. */
static void malformed_uses_are_rejected(void **state)
{
    (void)state;
    struct buf out = { 0 };
    msgpack_packer packer = pack_to(&out);
    msgpack_pack_array(&packer, 3);
    msgpack_pack_int(&packer, REPL_USES);
    msgpack_pack_int(&packer, REPL_NEEDS_NOTHING);
    msgpack_pack_array(&packer, 2);
    pack_bytes(&packer, SLICE("a short hash"));
    msgpack_pack_int64(&packer, 5);
    assert_true(is_refused(buf_slice(&out)));
    buf_finish(&out);
}

static void impossible_reports_and_commands_are_rejected(void **state)
{
    const struct repl_frame frames[] = {
        { .kind = REPL_REPORT, .report.lag_ms = -1 },
        { .kind = REPL_COMMAND, .command.number = 1 },
    };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct buf out = { 0 };
        repl_write(&frames[i], &out);
        assert_true(is_refused(buf_slice(&out)));
        buf_finish(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_for_operators_are_read_as_they_were_written),
        cmocka_unit_test(most_uses_of_a_frame_are_short_enough_for_any_leader),
        cmocka_unit_test(malformed_uses_are_rejected),
        cmocka_unit_test(impossible_reports_and_commands_are_rejected),
    };
    return cmocka_run_group_tests_name("follower_frames", tests, NULL, NULL);
}
