/* Frames are read as they were written, or rejected; gateways of two releases understand
 * each other. */
#include "tests/support/world/unit.h"

#include <math.h>

#include "base/contract/run_columns.h"
#include "base/mem.h"
#include "core/replication/frame_codec.h"
#include "core/replication/pack.h"
#include "tests/support/world/heap_meter.h"
#include "tests/support/world/sim.h"

/* ---- writing and reading ---- */

/* Reads a message that has one frame. */
static struct repl_frame read_one(struct slice message)
{
    struct repl_frame frame, end;
    struct failure why;
    assert_int_equal(repl_read(&message, &frame, &why), OK);
    assert_int_equal(repl_read(&message, &end, &why), OK);
    assert_int_equal(end.kind, REPL_NONE);
    assert_int_equal(message.len, 0);
    return frame;
}

static struct repl_frame read_again(const struct repl_frame *frame)
{
    struct buf out = { 0 };
    repl_write(frame, &out);
    struct repl_frame again = read_one(buf_slice(&out));
    assert_int_equal(again.kind, frame->kind);
    buf_finish(&out);
    return again;
}

static bool is_refused(struct slice message)
{
    struct repl_frame frame;
    struct failure why = { 0 };
    enum err err = repl_read(&message, &frame, &why);
    assert_int_equal(err != OK, why.text[0] != 0);
    repl_frame_finish(&frame);
    return err == ERR_INVALID;
}

/* ---- runs ---- */

static struct bytes *draw_text(struct draws *draws)
{
    static const uint32_t lengths[] = { 1, 4, 40, 300, 70000 };
    bool is_long = chance(draws, 3);
    uint32_t len = draw(draws, lengths[is_long ? 4 : draw(draws, 4)]);
    struct bytes *text = bytes_create_empty(len);
    for (uint32_t i = 0; i < len; i++)
        text->data[i] = (char)draw(draws, 256);
    return text;
}

/* Mostly small numbers, and those at both ends of their range. */
static uint64_t draw_number(struct draws *draws, unsigned bits)
{
    uint64_t most = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
    uint64_t number = (uint64_t)draw(draws, UINT32_MAX) << 32 | draw(draws, UINT32_MAX);
    switch (draw(draws, 4)) {
    case 0: return most;
    case 1: return (most >> 1) + draw(draws, 2);
    default: return (number >> draw(draws, 64)) & most;
    }
}

static void draw_column(struct draws *draws, const struct run_column *column,
                        struct run *run)
{
    void *field = run_column_place(column, run, true);
    switch (column->type) {
    case COLUMN_U8: *(uint8_t *)field = (uint8_t)draw(draws, MACHINE_COUNT); break;
    case COLUMN_U16: *(uint16_t *)field = (uint16_t)draw_number(draws, 16); break;
    case COLUMN_U32: *(uint32_t *)field = (uint32_t)draw_number(draws, 32); break;
    case COLUMN_I32: *(int32_t *)field = (int32_t)draw_number(draws, 32); break;
    case COLUMN_I64: *(int64_t *)field = (int64_t)draw_number(draws, 64); break;
    case COLUMN_U64: *(uint64_t *)field = draw_number(draws, 64); break;
    case COLUMN_REAL: *(double *)field = draw(draws, 1000000) / 7.0; break;
    case COLUMN_TEXT: *(struct bytes **)field = draw_text(draws); break;
    case COLUMN_FLAGS: run_set_flags(run, (int)draw(draws, 64)); break;
    }
}

static struct tag_list *draw_tags(struct draws *draws)
{
    struct slice names[RUN_TAGS_MAX];
    struct bytes *texts[RUN_TAGS_MAX];
    size_t count = draw(draws, RUN_TAGS_MAX + 1);
    for (size_t i = 0; i < count; i++) {
        texts[i] = draw_text(draws);
        names[i] = bytes_slice(texts[i]);
    }
    struct tag_list *tags = tag_list_create(names, count);
    for (size_t i = 0; i < count; i++)
        bytes_unref(texts[i]);
    return tags;
}

static void draw_packets(struct draws *draws, struct run *run)
{
    struct bytes **const packets[] = { &run->payload, &run->metadata, &run->output,
                                       &run->error };
    for (size_t i = 0; i < sizeof(packets) / sizeof(packets[0]); i++)
        if (chance(draws, 500))
            *packets[i] = draw_text(draws);
    if (chance(draws, 500))
        run->metadata_seed =
            chance(draws, 500) ? bytes_ref(run->metadata) : draw_text(draws);
    if (chance(draws, 200))
        run_rare_edit(run)->payload_type = draw_text(draws);
    if (chance(draws, 200))
        run_rare_edit(run)->output_type = draw_text(draws);
}

/* Sets each column in set_per_mille of a thousand draws; a run always has task and queue. */
static struct run draw_run(struct draws *draws, uint32_t set_per_mille)
{
    struct run run = { .id = "run_cabcdefghijklmnopqrst" };
    run.id[4 + draw(draws, 20)] = 0;
    for (int i = 0; i < RUN_COLUMN_COUNT; i++)
        if (chance(draws, set_per_mille))
            draw_column(draws, &run_columns[i], &run);
    if (!run.task)
        run.task = draw_text(draws);
    if (!run.queue)
        run.queue = draw_text(draws);
    run.tags = draw_tags(draws);
    draw_packets(draws, &run);
    return run;
}

static void assert_same_text(const struct bytes *text, const struct bytes *expected)
{
    assert_int_equal(text == NULL, expected == NULL);
    assert_true(slice_equal(bytes_slice(text), bytes_slice(expected)));
}

/* Bytes of a number, by enum column_type. */
static const size_t sizes[] = { 1, 2, 4, 4, 8, 8, 8 };

static void assert_same_column(const struct run_column *column, const struct run *run,
                               const struct run *expected)
{
    const void *field = run_field(run, column->offset);
    const void *other = run_field(expected, column->offset);
    if (column->type == COLUMN_FLAGS)
        assert_int_equal(run_flags(run), run_flags(expected));
    else if (column->type == COLUMN_TEXT)
        assert_same_text(*(struct bytes *const *)field, *(struct bytes *const *)other);
    else
        assert_memory_equal(field, other, sizes[column->type]);
}

static void assert_same_packets(const struct run *run, const struct run *expected,
                                unsigned marks)
{
    bool has_payload = marks & MARK_PAYLOAD, has_output = marks & MARK_OUTPUT;
    bool has_metadata = marks & MARK_METADATA;
    assert_same_text(run->payload, has_payload ? expected->payload : NULL);
    assert_same_text(run->metadata_seed, has_payload ? expected->metadata_seed : NULL);
    assert_same_text(run->metadata, has_metadata ? expected->metadata : NULL);
    assert_same_text(run->output, has_output ? expected->output : NULL);
    assert_same_text(run->error, has_output ? expected->error : NULL);
    assert_same_text(run_rare(run)->payload_type, run_rare(expected)->payload_type);
    assert_same_text(run_rare(run)->output_type, run_rare(expected)->output_type);
}

static void assert_same_run(const struct run *run, const struct run *expected,
                            unsigned marks)
{
    assert_string_equal(run->id, expected->id);
    for (int i = 0; i < RUN_COLUMN_COUNT; i++)
        assert_same_column(&run_columns[i], run, expected);
    assert_int_equal(run->tags == NULL, expected->tags == NULL);
    assert_int_equal(run->tags ? run->tags->count : 0,
                     expected->tags ? expected->tags->count : 0);
    for (uint32_t i = 0; run->tags && i < run->tags->count; i++)
        assert_same_text(run->tags->names[i], expected->tags->names[i]);
    assert_same_packets(run, expected, marks);
}

static void drawn_run_is_read_as_it_was_written(void **state)
{
    struct draws draws = { .state = 43 };
    (void)state;
    for (int i = 0; i < cases_to_draw(3000); i++) {
        struct repl_frame frame = {
            .kind = chance(&draws, 500) ? REPL_BEFORE : REPL_CHANGE,
            .run = { .env = draw(&draws, UINT32_MAX),
                     .seq = draw_number(&draws, 64),
                     .marks = draw(&draws, 64),
                     .run = draw_run(&draws, i % 3 == 0 ? 1000 : 300) },
        };
        struct repl_frame again = read_again(&frame);
        assert_int_equal(again.run.env, frame.run.env);
        assert_int_equal(again.run.seq, frame.run.seq);
        assert_int_equal(again.run.marks, frame.run.marks);
        assert_same_run(&again.run.run, &frame.run.run, frame.run.marks);
        repl_frame_finish(&again);
        repl_frame_finish(&frame);
    }
}

static struct run plain_run(void)
{
    return (struct run){ .id = "run_a",
                         .task = bytes_create(SLICE("a-task")),
                         .queue = bytes_create(SLICE("task/a-task")) };
}

static struct repl_frame change_of(struct run run)
{
    return (struct repl_frame){
        .kind = REPL_CHANGE,
        .run = { .env = 3, .seq = 9, .marks = REPL_PACKETS, .run = run }
    };
}

static void metadata_that_did_not_change_stays_one_text_with_its_seed(void **state)
{
    struct repl_frame frame = change_of(plain_run());
    struct run *run = &frame.run.run;
    struct buf once = { 0 };
    (void)state;
    run->metadata = bytes_create_empty(1000);
    run->metadata_seed = bytes_ref(run->metadata);
    struct repl_frame again = read_again(&frame);
    assert_ptr_equal(again.run.run.metadata_seed, again.run.run.metadata);
    repl_write(&frame, &once);
    assert_true(once.len < 1200);
    buf_finish(&once);
    repl_frame_finish(&again);
    repl_frame_finish(&frame);
}

static void change_without_packets_gets_those_of_the_known_run(void **state)
{
    (void)state;
    struct draws draws = { .state = 7 };
    for (unsigned marks = 0; marks < 64; marks++) {
        struct repl_frame frame = change_of(draw_run(&draws, 300));
        struct run known = draw_run(&draws, 300), whole;
        run_copy(&whole, &frame.run.run);
        frame.run.marks = marks;
        struct repl_frame again = read_again(&frame);
        repl_run_complete(&again.run, &known);
        const struct run *run = &again.run.run;
        const struct run *payload = marks & MARK_PAYLOAD ? &whole : &known;
        const struct run *metadata = marks & MARK_METADATA ? &whole : &known;
        const struct run *output = marks & MARK_OUTPUT ? &whole : &known;
        assert_same_text(run->payload, payload->payload);
        assert_same_text(run->metadata_seed, payload->metadata_seed);
        assert_same_text(run->metadata, metadata->metadata);
        assert_same_text(run->output, output->output);
        assert_same_text(run->error, output->error);
        repl_frame_finish(&again);
        repl_frame_finish(&frame);
        run_finish(&known);
        run_finish(&whole);
    }
}

/* ---- other frames ---- */

static const struct repl_head some_head = { "0123456789abcdef", 12 };

static void hello_and_ask_are_read_as_they_were_written(void **state)
{
    (void)state;
    struct repl_frame hello = { .kind = REPL_HELLO,
                                .hello = { 1, 7, UINT64_MAX, some_head } };
    struct repl_frame again = read_again(&hello);
    assert_int_equal(again.hello.least, 1);
    assert_int_equal(again.hello.newest, 7);
    assert_int_equal(again.hello.gateway, UINT64_MAX);
    assert_string_equal(again.hello.head.epoch, some_head.epoch);
    assert_int_equal(again.hello.head.term, 12);
    struct repl_frame ask = { .kind = REPL_ASK, .ask.number = 1 << 20 };
    assert_int_equal(read_again(&ask).ask.number, 1 << 20);
}

static void positions_are_read_as_they_were_written(void **state)
{
    static const size_t counts[] = { 0, 1, 15, 16, REPL_POSITIONS_MAX };
    struct repl_position list[REPL_POSITIONS_MAX];
    (void)state;
    for (uint32_t i = 0; i < REPL_POSITIONS_MAX; i++)
        list[i] = (struct repl_position){ i * 1000, (uint64_t)i << (i % 60) };
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        struct repl_frame frame = { .kind = REPL_POSITIONS,
                                    .positions = { list, counts[i] } };
        struct repl_frame again = read_again(&frame);
        assert_int_equal(again.positions.count, counts[i]);
        for (size_t j = 0; j < counts[i]; j++) {
            assert_int_equal(again.positions.list[j].env, list[j].env);
            assert_int_equal(again.positions.list[j].seq, list[j].seq);
        }
        repl_frame_finish(&again);
    }
}

static void beat_and_end_are_read_as_they_were_written(void **state)
{
    (void)state;
    struct repl_frame beat = { .kind = REPL_BEAT, .beat = { some_head, 77, 3999 } };
    struct repl_frame again = read_again(&beat);
    assert_string_equal(again.beat.head.epoch, some_head.epoch);
    assert_int_equal(again.beat.head.term, 12);
    assert_int_equal(again.beat.number, 77);
    assert_int_equal(again.beat.left_ms, 3999);
    struct repl_frame end = { .kind = REPL_END };
    memset(end.end.why, 'x', REPL_WHY_MAX - 1);
    assert_string_equal(read_again(&end).end.why, end.end.why);
    end.end.why[0] = 0;
    assert_string_equal(read_again(&end).end.why, "");
}

static void passed_floor_and_sum_are_read_as_they_were_written(void **state)
{
    (void)state;
    struct repl_frame passed = { .kind = REPL_PASSED, .passed = { 4, 10, 12 } };
    struct repl_frame floor = { .kind = REPL_FLOOR,
                                .floor = { 4, 100, 90, 1700000000000, -5 } };
    struct repl_frame sum = { .kind = REPL_SUM, .sum = { 4, 11, 3, UINT64_MAX } };
    struct repl_frame again = read_again(&passed);
    assert_int_equal(again.passed.env, 4);
    assert_int_equal(again.passed.from, 10);
    assert_int_equal(again.passed.to, 12);
    passed.kind = REPL_OMITTED;
    again = read_again(&passed);
    assert_int_equal(again.kind, REPL_OMITTED);
    assert_int_equal(again.passed.to, 12);
    again = read_again(&floor);
    assert_int_equal(again.floor.env, 4);
    assert_int_equal(again.floor.seq, 100);
    assert_int_equal(again.floor.purged, 90);
    assert_int_equal(again.floor.floor, 1700000000000);
    assert_int_equal(again.floor.stored, -5);
    again = read_again(&sum);
    assert_int_equal(again.sum.env, 4);
    assert_int_equal(again.sum.seq, 11);
    assert_int_equal(again.sum.count, 3);
    assert_int_equal(again.sum.sum, UINT64_MAX);
    again = read_again(&(struct repl_frame){ .kind = REPL_DROPPED, .dropped.env = 4 });
    assert_int_equal(again.kind, REPL_DROPPED);
    assert_int_equal(again.dropped.env, 4);
}

static struct repl_frame some_document(struct bytes *body)
{
    return (struct repl_frame){
        .kind = REPL_DOCUMENT,
        .document = { .seq = 5,
                      .document = { .kind = DOC_KEY,
                                    .version = 3,
                                    .name = bytes_create(SLICE("a key")),
                                    .body = body,
                                    .stale_at = 1700000000000 } },
    };
}

static void document_is_read_as_it_was_written(void **state)
{
    (void)state;
    struct repl_frame frame = some_document(bytes_create(SLICE("{}")));
    struct repl_frame again = read_again(&frame);
    const struct document *document = &again.document.document;
    assert_int_equal(again.document.seq, 5);
    assert_int_equal(document->kind, DOC_KEY);
    assert_int_equal(document->env, ENV_INSTALLATION);
    assert_int_equal(document->version, 3);
    assert_same_text(document->name, frame.document.document.name);
    assert_same_text(document->body, frame.document.document.body);
    assert_int_equal(document->stale_at, 1700000000000);
    repl_frame_finish(&again);
    bytes_clear(&frame.document.document.body);
    again = read_again(&frame);
    assert_null(again.document.document.body); /* it was deleted */
    repl_frame_finish(&again);
    repl_frame_finish(&frame);
}

static void frames_of_one_message_are_read_in_order(void **state)
{
    (void)state;
    struct buf out = { 0 };
    struct repl_frame frame = change_of(plain_run()), again;
    struct failure why;
    for (uint64_t seq = 1; seq <= 3; seq++) {
        frame.run.seq = seq;
        repl_write(&frame, &out);
    }
    struct slice rest = buf_slice(&out);
    for (uint64_t seq = 1; seq <= 3; seq++) {
        assert_int_equal(repl_read(&rest, &again, &why), OK);
        assert_int_equal(again.run.seq, seq);
        repl_frame_finish(&again);
    }
    assert_int_equal(repl_read(&rest, &again, &why), OK);
    assert_int_equal(again.kind, REPL_NONE);
    buf_finish(&out);
    repl_frame_finish(&frame);
}

/* ---- hostile messages ---- */

static void every_shorter_message_is_rejected(void **state)
{
    (void)state;
    struct draws draws = { .state = 1 };
    struct repl_frame frames[] = { change_of(draw_run(&draws, 1000)),
                                   some_document(bytes_create(SLICE("{}"))) };
    for (size_t i = 0; i < 2; i++) {
        struct buf out = { 0 };
        repl_write(&frames[i], &out);
        size_t step = out.len < 4000 ? 1 : out.len / 2000;
        for (size_t len = 1; len < out.len; len += step) {
            char *cut = mem_alloc(len); /* ASan sees a read beyond its end */
            memcpy(cut, out.ptr, len);
            assert_true(is_refused((struct slice){ cut, len }));
            free(cut);
        }
        buf_finish(&out);
        repl_frame_finish(&frames[i]);
    }
}

static void changed_bytes_are_rejected_or_read(void **state)
{
    struct draws draws = { .state = 2 };
    (void)state;
    for (int i = 0; i < cases_to_draw(6000); i++) {
        struct buf out = { 0 };
        struct repl_frame frame = change_of(draw_run(&draws, 200));
        repl_write(&frame, &out);
        for (uint32_t changes = draw(&draws, 4); changes < 5; changes++)
            out.ptr[draw(&draws, (uint32_t)out.len)] = (char)draw(&draws, 256);
        is_refused(buf_slice(&out));
        buf_finish(&out);
        repl_frame_finish(&frame);
    }
}

/* A message of some bytes in hexadecimal. */
static struct slice message_of(const char *hex, char bytes[64])
{
    size_t len = strlen(hex) / 2;
    for (size_t i = 0; i < len; i++) {
        char digits[3] = { hex[2 * i], hex[2 * i + 1], 0 };
        bytes[i] = (char)strtol(digits, NULL, 16);
    }
    return (struct slice){ bytes, len };
}

static void claimed_lengths_beyond_the_message_are_rejected(void **state)
{
    static const char *const messages[] = {
        "c0",                     /* no array */
        "90",                     /* without a kind */
        "9103",                   /* without needs */
        "ddffffffff0301",         /* a frame of 2^32-1 values */
        "930301ddffffffff",       /* positions, 2^32-1 numbers */
        "930301dc07d200",         /* 1001 of them, as an array */
        "930301930102",           /* and too short */
        "93030193010203",         /* an odd number */
        "990601030900c6ffffffff", /* a change: an id of 4 GiB */
        "9906010309"
        "00c405", /* an id that is cut off */
        "990601030900a1"
        "78"
        "ddffffffff",                   /* tags */
        "990601030900a17890dfffffffff", /* columns */
        "93fe00dfffffffff",             /* a kind that is negative */
        "937f00dfffffffff",             /* an unknown kind, a map to skip */
        "937f00c9ffffffff00",           /* and an extension */
        "937f00c1",                     /* a byte that msgpack does not use */
    };
    (void)state;
    for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
        char bytes[64];
        heap_meter_begin();
        if (!is_refused(message_of(messages[i], bytes)))
            fail_msg("%s was read", messages[i]);
        assert_true(heap_meter_peak() < 64 * 1024);
    }
}

static void too_many_positions_are_rejected(void **state)
{
    (void)state;
    struct buf out = { 0 };
    msgpack_packer packer = pack_to(&out);
    msgpack_pack_array(&packer, 3);
    msgpack_pack_int(&packer, REPL_POSITIONS);
    msgpack_pack_int(&packer, REPL_NEEDS_KIND);
    msgpack_pack_array(&packer, 2 * (REPL_POSITIONS_MAX + 1));
    for (int i = 0; i < 2 * (REPL_POSITIONS_MAX + 1); i++)
        msgpack_pack_int(&packer, 1);
    assert_true(is_refused(buf_slice(&out)));
    buf_finish(&out);
}

/* Skipping does not recurse, so that depth costs nothing. */
static void deeply_nested_unknown_value_is_skipped(void **state)
{
    enum { DEPTH = 1 << 20 };
    struct buf out = { 0 };
    (void)state;
    buf_add(&out, (struct slice){ "\x93\x7f\x00", 3 });
    memset(buf_reserve(&out, DEPTH), 0x91, DEPTH);
    out.len += DEPTH;
    assert_true(is_refused(buf_slice(&out)));
    buf_add_char(&out, 1);
    assert_int_equal(read_one(buf_slice(&out)).kind, REPL_NONE);
    buf_finish(&out);
}

/* ---- impossible values ---- */

enum { FRAME_VALUES = 9 };

/* Begins a change as the codec writes it, up to its tags. */
static msgpack_packer begin_change(struct buf *out, unsigned needs, size_t values)
{
    msgpack_packer packer = pack_to(out);
    msgpack_pack_array(&packer, values);
    msgpack_pack_int(&packer, REPL_CHANGE);
    msgpack_pack_uint32(&packer, needs);
    msgpack_pack_int(&packer, 3);
    msgpack_pack_int(&packer, 9);
    msgpack_pack_int(&packer, REPL_PACKETS);
    pack_bytes(&packer, SLICE("run_a"));
    msgpack_pack_array(&packer, 0);
    return packer;
}

static int column_named(const char *name)
{
    for (int i = 0; i < RUN_COLUMN_COUNT; i++)
        if (!strcmp(run_columns[i].name, name))
            return i;
    fail_msg("no column %s", name);
    return -1;
}

/* Adds a map of columns, with one more than task and queue to follow. */
static void begin_columns(msgpack_packer *packer)
{
    msgpack_pack_map(packer, 3);
    msgpack_pack_int(packer, column_named("task"));
    pack_bytes(packer, SLICE("a-task"));
    msgpack_pack_int(packer, column_named("queue"));
    pack_bytes(packer, SLICE("task/a-task"));
}

static bool refuses_number(const char *column, int64_t number)
{
    struct buf out = { 0 };
    msgpack_packer packer = begin_change(&out, REPL_NEEDS_KIND, FRAME_VALUES);
    begin_columns(&packer);
    msgpack_pack_int(&packer, column_named(column));
    msgpack_pack_int64(&packer, number);
    msgpack_pack_map(&packer, 0);
    bool refused = is_refused(buf_slice(&out));
    buf_finish(&out);
    return refused;
}

static void number_that_no_run_has_is_rejected(void **state)
{
    (void)state;
    assert_false(refuses_number("status", RUN_STATUS_COUNT - 1));
    assert_true(refuses_number("status", RUN_STATUS_COUNT));
    assert_true(refuses_number("status", 256));
    assert_true(refuses_number("execution", EXECUTION_COUNT));
    assert_true(refuses_number("machine", MACHINE_COUNT));
    assert_false(refuses_number("attempt", UINT16_MAX));
    assert_true(refuses_number("attempt", UINT16_MAX + 1));
    assert_true(refuses_number("attempt", -1));
    assert_false(refuses_number("usage_ms", UINT32_MAX));
    assert_true(refuses_number("usage_ms", (int64_t)UINT32_MAX + 1));
    assert_false(refuses_number("priority_ms", INT32_MIN));
    assert_true(refuses_number("priority_ms", (int64_t)INT32_MIN - 1));
    assert_true(refuses_number("rev", -1));
    assert_true(refuses_number("cost_cents", 1)); /* not a double */
    assert_true(refuses_number("batch", 1));      /* not a text */
}

static bool refuses_real(double real)
{
    struct buf out = { 0 };
    msgpack_packer packer = begin_change(&out, REPL_NEEDS_KIND, FRAME_VALUES);
    begin_columns(&packer);
    msgpack_pack_int(&packer, column_named("cost_cents"));
    msgpack_pack_double(&packer, real);
    msgpack_pack_map(&packer, 0);
    bool refused = is_refused(buf_slice(&out));
    buf_finish(&out);
    return refused;
}

static void cost_that_is_not_finite_is_rejected(void **state)
{
    (void)state;
    assert_false(refuses_real(0.5));
    assert_true(refuses_real(NAN));
    assert_true(refuses_real(INFINITY));
}

static bool refuses(struct repl_frame frame)
{
    struct buf out = { 0 };
    repl_write(&frame, &out);
    bool refused = is_refused(buf_slice(&out));
    buf_finish(&out);
    repl_frame_finish(&frame);
    return refused;
}

static struct repl_frame change_with_tags(size_t count)
{
    struct slice names[2 * RUN_TAGS_MAX + 1];
    struct repl_frame frame = change_of(plain_run());
    for (size_t i = 0; i < count; i++)
        names[i] = SLICE("a");
    frame.run.run.tags = tag_list_create(names, count);
    return frame;
}

static void run_without_id_task_or_queue_is_rejected(void **state)
{
    (void)state;
    struct repl_frame frame = change_of(plain_run());
    assert_false(refuses(frame));
    frame = change_of(plain_run());
    frame.run.run.id[0] = 0;
    assert_true(refuses(frame));
    frame = change_of(plain_run());
    bytes_clear(&frame.run.run.task);
    assert_true(refuses(frame));
    frame = change_of(plain_run());
    bytes_clear(&frame.run.run.queue);
    assert_true(refuses(frame));
}

static void other_impossible_frames_are_rejected(void **state)
{
    (void)state;
    assert_false(refuses(change_with_tags(2 * RUN_TAGS_MAX)));
    assert_true(refuses(change_with_tags(2 * RUN_TAGS_MAX + 1)));
    struct repl_frame frame = change_of(plain_run());
    frame.run.env = ENV_EVERY;
    assert_true(refuses(frame));
    frame = (struct repl_frame){ .kind = REPL_PASSED, .passed = { 1, 3, 2 } };
    assert_true(refuses(frame));
    frame = (struct repl_frame){ .kind = REPL_BEAT, .beat = { some_head, 1, -1 } };
    assert_true(refuses(frame));
    frame = some_document(NULL);
    bytes_clear(&frame.document.document.name);
    assert_true(refuses(frame));
}

/* A second text in the place of the first one would not be released. */
static void column_that_is_repeated_is_rejected(void **state)
{
    (void)state;
    struct buf out = { 0 };
    msgpack_packer packer = begin_change(&out, REPL_NEEDS_KIND, FRAME_VALUES);
    begin_columns(&packer);
    msgpack_pack_int(&packer, column_named("task"));
    pack_bytes(&packer, SLICE("another"));
    msgpack_pack_map(&packer, 0);
    assert_true(is_refused(buf_slice(&out)));
    buf_finish(&out);
}

/* ---- other versions ---- */

/* Writes a change with a column, a packet and a value that this version does not know. */
static void write_later_change(struct buf *out, unsigned needs)
{
    msgpack_packer packer = begin_change(out, needs, FRAME_VALUES + 1);
    begin_columns(&packer);
    msgpack_pack_int(&packer, RUN_COLUMN_COUNT + 5);
    msgpack_pack_map(&packer, 1);
    pack_bytes(&packer, SLICE("nested"));
    msgpack_pack_double(&packer, 1);
    msgpack_pack_map(&packer, 2);
    msgpack_pack_int(&packer, 1000);
    pack_bytes(&packer, SLICE("a later packet"));
    msgpack_pack_int(&packer, 0);
    pack_bytes(&packer, SLICE("the payload"));
    msgpack_pack_array(&packer, 1);
    msgpack_pack_nil(&packer);
}

static void unknown_values_are_left_out_unless_the_frame_needs_them(void **state)
{
    (void)state;
    struct buf out = { 0 };
    write_later_change(&out, REPL_NEEDS_KIND);
    struct repl_frame frame = read_one(buf_slice(&out));
    assert_int_equal(frame.kind, REPL_CHANGE);
    assert_true(frame.has_unknown);
    assert_true(slice_is(bytes_slice(frame.run.run.payload), "the payload"));
    assert_true(slice_is(bytes_slice(frame.run.run.queue), "task/a-task"));
    repl_frame_finish(&frame);
    buf_clear(&out);
    write_later_change(&out, REPL_NEEDS_ALL);
    assert_true(is_refused(buf_slice(&out)));
    buf_finish(&out);
}

static void write_later_frame(struct buf *out, unsigned kind, unsigned needs)
{
    msgpack_packer packer = pack_to(out);
    msgpack_pack_array(&packer, 3);
    msgpack_pack_uint32(&packer, kind);
    msgpack_pack_uint32(&packer, needs);
    pack_bytes(&packer, SLICE("anything"));
}

static void unknown_kind_is_skipped_unless_the_frame_needs_it(void **state)
{
    (void)state;
    static const unsigned kinds[] = { REPL_NONE, REPL_KINDS, 1000 };
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct repl_frame ask = { .kind = REPL_ASK, .ask.number = 8 };
        struct buf out = { 0 };
        write_later_frame(&out, kinds[i], REPL_NEEDS_NOTHING);
        repl_write(&ask, &out);
        assert_int_equal(read_one(buf_slice(&out)).ask.number, 8);
        buf_clear(&out);
        write_later_frame(&out, kinds[i], REPL_NEEDS_KIND);
        assert_true(is_refused(buf_slice(&out)));
        buf_clear(&out);
        write_later_frame(&out, kinds[i], REPL_NEEDS_ALL);
        assert_true(is_refused(buf_slice(&out)));
        buf_finish(&out);
    }
}

static void document_of_an_unknown_kind_is_a_number_that_passed(void **state)
{
    (void)state;
    struct repl_frame frame = some_document(bytes_create(SLICE("{}")));
    frame.document.env = 6;
    frame.document.document.kind = DOC_KINDS;
    struct buf out = { 0 };
    repl_write(&frame, &out);
    struct repl_frame again = read_one(buf_slice(&out));
    assert_int_equal(again.kind, REPL_PASSED);
    assert_true(again.has_unknown);
    assert_int_equal(again.passed.env, 6);
    assert_int_equal(again.passed.from, 5);
    assert_int_equal(again.passed.to, 5);
    buf_finish(&out);
    repl_frame_finish(&frame);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drawn_run_is_read_as_it_was_written),
        cmocka_unit_test(metadata_that_did_not_change_stays_one_text_with_its_seed),
        cmocka_unit_test(change_without_packets_gets_those_of_the_known_run),
        cmocka_unit_test(hello_and_ask_are_read_as_they_were_written),
        cmocka_unit_test(positions_are_read_as_they_were_written),
        cmocka_unit_test(beat_and_end_are_read_as_they_were_written),
        cmocka_unit_test(passed_floor_and_sum_are_read_as_they_were_written),
        cmocka_unit_test(document_is_read_as_it_was_written),
        cmocka_unit_test(frames_of_one_message_are_read_in_order),
        cmocka_unit_test(every_shorter_message_is_rejected),
        cmocka_unit_test(changed_bytes_are_rejected_or_read),
        cmocka_unit_test(claimed_lengths_beyond_the_message_are_rejected),
        cmocka_unit_test(too_many_positions_are_rejected),
        cmocka_unit_test(deeply_nested_unknown_value_is_skipped),
        cmocka_unit_test(number_that_no_run_has_is_rejected),
        cmocka_unit_test(cost_that_is_not_finite_is_rejected),
        cmocka_unit_test(run_without_id_task_or_queue_is_rejected),
        cmocka_unit_test(other_impossible_frames_are_rejected),
        cmocka_unit_test(column_that_is_repeated_is_rejected),
        cmocka_unit_test(unknown_values_are_left_out_unless_the_frame_needs_them),
        cmocka_unit_test(unknown_kind_is_skipped_unless_the_frame_needs_it),
        cmocka_unit_test(document_of_an_unknown_kind_is_a_number_that_passed),
    };
    return cmocka_run_group_tests_name("frame_codec", tests, NULL, NULL);
}
