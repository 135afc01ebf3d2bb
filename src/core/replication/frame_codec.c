/* frame_codec.c - each kind of frame has a row in one table: its name, what a reader must
 * know, the number of its values, and the functions that write and take them. */
#include "core/replication/frame_codec.h"

#include "base/mem.h"
#include "core/replication/pack.h"
#include "core/replication/run_codec.h"

enum {
    KIND_MOST = 1 << 16,
    END_MOST = REPL_WHY_MAX - 1,
    PROGRAM_MOST = REPL_PROGRAM_MAX - 1,
};

/* take returns false if the frame had something unknown that was left out. */
struct frame_kind {
    const char *name;
    enum repl_needs needs;
    uint32_t values;
    void (*pack)(msgpack_packer *packer, const struct repl_frame *frame);
    bool (*take)(struct cursor *in, struct repl_frame *frame);
};

/* ---- heads ---- */

enum { EPOCH_MOST = sizeof(((struct repl_head *)0)->epoch) - 1 };

static void pack_head(msgpack_packer *packer, const struct repl_head *head)
{
    pack_bytes(packer, slice_of(head->epoch));
    msgpack_pack_uint64(packer, head->term);
}

/* Takes a text that is shorter than its place, and has no zero byte. */
static void take_short(struct cursor *in, char *place, size_t most)
{
    struct slice text = take_bytes(in, most);
    if (!text.ptr || memchr(text.ptr, 0, text.len)) {
        in->failed = true;
        return;
    }
    memcpy(place, text.ptr, text.len);
    place[text.len] = 0;
}

static void take_head(struct cursor *in, struct repl_head *head)
{
    take_short(in, head->epoch, EPOCH_MOST);
    head->term = take_number(in, UINT64_MAX);
}

static void pack_hello(msgpack_packer *packer, const struct repl_frame *frame)
{
    const struct repl_hello *hello = &frame->hello;
    msgpack_pack_uint32(packer, hello->least);
    msgpack_pack_uint32(packer, hello->newest);
    msgpack_pack_uint64(packer, hello->gateway);
    pack_head(packer, &hello->head);
}

static bool take_hello(struct cursor *in, struct repl_frame *frame)
{
    struct repl_hello *hello = &frame->hello;
    hello->least = (uint32_t)take_number(in, UINT32_MAX);
    hello->newest = (uint32_t)take_number(in, UINT32_MAX);
    hello->gateway = take_number(in, UINT64_MAX);
    take_head(in, &hello->head);
    return true;
}

static void pack_beat(msgpack_packer *packer, const struct repl_frame *frame)
{
    pack_head(packer, &frame->beat.head);
    msgpack_pack_uint64(packer, frame->beat.number);
    msgpack_pack_int64(packer, frame->beat.left_ms);
}

static bool take_beat(struct cursor *in, struct repl_frame *frame)
{
    take_head(in, &frame->beat.head);
    frame->beat.number = take_number(in, UINT64_MAX);
    frame->beat.left_ms = take_signed(in, 0, INT32_MAX);
    return true;
}

static void pack_ask(msgpack_packer *packer, const struct repl_frame *frame)
{
    msgpack_pack_uint64(packer, frame->ask.number);
}

static bool take_ask(struct cursor *in, struct repl_frame *frame)
{
    frame->ask.number = take_number(in, UINT64_MAX);
    return true;
}

static void pack_end(msgpack_packer *packer, const struct repl_frame *frame)
{
    pack_bytes(packer, slice_of(frame->end.why));
}

static bool take_end(struct cursor *in, struct repl_frame *frame)
{
    take_short(in, frame->end.why, END_MOST);
    return true;
}

/* ---- positions ---- */

static void pack_positions(msgpack_packer *packer, const struct repl_frame *frame)
{
    const struct repl_positions *positions = &frame->positions;
    assert(positions->count <= REPL_POSITIONS_MAX);
    msgpack_pack_array(packer, 2 * positions->count);
    for (size_t i = 0; i < positions->count; i++) {
        msgpack_pack_uint32(packer, positions->list[i].env);
        msgpack_pack_uint64(packer, positions->list[i].seq);
    }
}

static uint32_t take_env(struct cursor *in)
{
    return (uint32_t)take_number(in, ENV_EVERY - 1);
}

static bool take_positions(struct cursor *in, struct repl_frame *frame)
{
    struct repl_positions *positions = &frame->positions;
    size_t numbers = take_array(in, 2 * REPL_POSITIONS_MAX);
    in->failed |= numbers % 2;
    if (in->failed)
        return true;
    positions->count = numbers / 2;
    positions->list = mem_alloc(positions->count * sizeof(positions->list[0]));
    for (size_t i = 0; i < positions->count; i++) {
        positions->list[i].env = take_env(in);
        positions->list[i].seq = take_number(in, UINT64_MAX);
    }
    return true;
}

static void pack_passed(msgpack_packer *packer, const struct repl_frame *frame)
{
    msgpack_pack_uint32(packer, frame->passed.env);
    msgpack_pack_uint64(packer, frame->passed.from);
    msgpack_pack_uint64(packer, frame->passed.to);
}

static bool take_passed(struct cursor *in, struct repl_frame *frame)
{
    struct repl_passed *passed = &frame->passed;
    passed->env = take_env(in);
    passed->from = take_number(in, UINT64_MAX);
    passed->to = take_number(in, UINT64_MAX);
    in->failed |= passed->from > passed->to;
    return true;
}

static void pack_floor(msgpack_packer *packer, const struct repl_frame *frame)
{
    const struct store_position *floor = &frame->floor;
    msgpack_pack_uint32(packer, floor->env);
    msgpack_pack_uint64(packer, floor->seq);
    msgpack_pack_uint64(packer, floor->purged);
    msgpack_pack_int64(packer, floor->floor);
    msgpack_pack_int64(packer, floor->stored);
}

static bool take_floor(struct cursor *in, struct repl_frame *frame)
{
    struct store_position *floor = &frame->floor;
    floor->env = take_env(in);
    floor->seq = take_number(in, UINT64_MAX);
    floor->purged = take_number(in, UINT64_MAX);
    floor->floor = take_signed(in, INT64_MIN, INT64_MAX);
    floor->stored = take_signed(in, INT64_MIN, INT64_MAX);
    return true;
}

static void pack_sum(msgpack_packer *packer, const struct repl_frame *frame)
{
    msgpack_pack_uint32(packer, frame->sum.env);
    msgpack_pack_uint64(packer, frame->sum.seq);
    msgpack_pack_uint64(packer, frame->sum.count);
    msgpack_pack_uint64(packer, frame->sum.sum);
}

static bool take_sum(struct cursor *in, struct repl_frame *frame)
{
    struct repl_sum *sum = &frame->sum;
    sum->env = take_env(in);
    sum->seq = take_number(in, UINT64_MAX);
    sum->count = take_number(in, UINT64_MAX);
    sum->sum = take_number(in, UINT64_MAX);
    return true;
}

static void pack_dropped(msgpack_packer *packer, const struct repl_frame *frame)
{
    msgpack_pack_uint32(packer, frame->dropped.env);
}

static bool take_dropped(struct cursor *in, struct repl_frame *frame)
{
    frame->dropped.env = take_env(in);
    return true;
}

/* ---- reports ---- */

static void pack_report(msgpack_packer *packer, const struct repl_frame *frame)
{
    const struct repl_report *report = &frame->report;
    pack_bytes(packer, slice_of(report->program));
    msgpack_pack_uint32(packer, report->is_current);
    msgpack_pack_uint64(packer, report->taken);
    msgpack_pack_int64(packer, report->lag_ms);
}

static bool take_report(struct cursor *in, struct repl_frame *frame)
{
    struct repl_report *report = &frame->report;
    take_short(in, report->program, PROGRAM_MOST);
    report->is_current = take_number(in, 1);
    report->taken = take_number(in, UINT64_MAX);
    report->lag_ms = take_signed(in, 0, INT64_MAX);
    return true;
}

static void pack_uses(msgpack_packer *packer, const struct repl_frame *frame)
{
    const struct repl_uses *uses = &frame->uses;
    assert(uses->count <= REPL_USES_MAX);
    msgpack_pack_array(packer, 2 * uses->count);
    for (size_t i = 0; i < uses->count; i++) {
        pack_bytes(packer, (struct slice){ (const char *)uses->list[i].hash, HASH_LEN });
        msgpack_pack_int64(packer, uses->list[i].used_at);
    }
}

static void take_use(struct cursor *in, struct repl_use *use)
{
    struct slice hash = take_bytes(in, HASH_LEN);
    in->failed |= hash.len != HASH_LEN;
    if (!in->failed)
        memcpy(use->hash, hash.ptr, HASH_LEN);
    use->used_at = take_signed(in, 0, INT64_MAX);
}

static bool take_uses(struct cursor *in, struct repl_frame *frame)
{
    struct repl_uses *uses = &frame->uses;
    size_t values = take_array(in, 2 * REPL_USES_MAX);
    in->failed |= values % 2;
    if (in->failed)
        return true;
    uses->count = values / 2;
    uses->list = mem_alloc(uses->count * sizeof(uses->list[0]));
    for (size_t i = 0; i < uses->count; i++)
        take_use(in, &uses->list[i]);
    return true;
}

static void pack_command(msgpack_packer *packer, const struct repl_frame *frame)
{
    msgpack_pack_uint64(packer, frame->command.number);
    pack_bytes(packer, bytes_slice(frame->command.text));
}

static bool take_command(struct cursor *in, struct repl_frame *frame)
{
    frame->command.number = take_number(in, UINT64_MAX);
    frame->command.text = take_copy(in);
    in->failed |= !frame->command.text;
    return true;
}

/* ---- changes ---- */

static void pack_run(msgpack_packer *packer, const struct repl_frame *frame)
{
    msgpack_pack_uint32(packer, frame->run.env);
    msgpack_pack_uint64(packer, frame->run.seq);
    msgpack_pack_uint32(packer, frame->run.marks);
    run_pack(&frame->run, packer);
}

static bool take_run(struct cursor *in, struct repl_frame *frame)
{
    frame->run.env = take_env(in);
    frame->run.seq = take_number(in, UINT64_MAX);
    frame->run.marks = (unsigned)take_number(in, UINT16_MAX);
    return run_take(in, &frame->run);
}

static void pack_document(msgpack_packer *packer, const struct repl_frame *frame)
{
    const struct document *document = &frame->document.document;
    msgpack_pack_uint32(packer, frame->document.env);
    msgpack_pack_uint64(packer, frame->document.seq);
    msgpack_pack_uint32(packer, document->kind);
    msgpack_pack_uint32(packer, document->version);
    pack_bytes(packer, bytes_slice(document->name));
    pack_bytes(packer, bytes_slice(document->body));
    msgpack_pack_int64(packer, document->stale_at);
}

/* Makes a document of an unknown kind a number that is not needed. */
static void pass(struct repl_frame *frame)
{
    struct repl_document *document = &frame->document;
    struct repl_passed passed = { document->env, document->seq, document->seq };
    document_finish(&document->document);
    frame->kind = REPL_PASSED;
    frame->passed = passed;
}

static bool take_document(struct cursor *in, struct repl_frame *frame)
{
    struct document *document = &frame->document.document;
    frame->document.env = document->env = take_env(in);
    frame->document.seq = take_number(in, UINT64_MAX);
    uint64_t kind = take_number(in, UINT16_MAX);
    document->version = (uint32_t)take_number(in, UINT32_MAX);
    document->name = take_copy(in);
    document->body = take_copy(in);
    document->stale_at = take_signed(in, INT64_MIN, INT64_MAX);
    in->failed |= !document->name;
    if (kind < DOC_KINDS)
        document->kind = (enum document_kind)kind;
    else if (!in->failed)
        pass(frame);
    return kind < DOC_KINDS;
}

/* ---- frames ---- */

static const struct frame_kind kinds[REPL_KINDS] = {
    [REPL_HELLO] = { "hello", REPL_NEEDS_KIND, 5, pack_hello, take_hello },
    [REPL_ASK] = { "ask", REPL_NEEDS_KIND, 1, pack_ask, take_ask },
    [REPL_POSITIONS] = { "positions", REPL_NEEDS_KIND, 1, pack_positions, take_positions },
    [REPL_BEAT] = { "beat", REPL_NEEDS_KIND, 4, pack_beat, take_beat },
    [REPL_BEFORE] = { "before", REPL_NEEDS_KIND, 3 + RUN_CODEC_VALUES, pack_run, take_run },
    [REPL_CHANGE] = { "change", REPL_NEEDS_KIND, 3 + RUN_CODEC_VALUES, pack_run, take_run },
    [REPL_DOCUMENT] = { "document", REPL_NEEDS_KIND, 7, pack_document, take_document },
    [REPL_PASSED] = { "passed", REPL_NEEDS_KIND, 3, pack_passed, take_passed },
    [REPL_FLOOR] = { "floor", REPL_NEEDS_KIND, 5, pack_floor, take_floor },
    [REPL_SUM] = { "sum", REPL_NEEDS_NOTHING, 4, pack_sum, take_sum },
    [REPL_END] = { "end", REPL_NEEDS_KIND, 1, pack_end, take_end },
    [REPL_DROPPED] = { "dropped", REPL_NEEDS_NOTHING, 1, pack_dropped, take_dropped },
    [REPL_REPORT] = { "report", REPL_NEEDS_NOTHING, 4, pack_report, take_report },
    [REPL_USES] = { "uses", REPL_NEEDS_NOTHING, 1, pack_uses, take_uses },
    [REPL_COMMAND] = { "command", REPL_NEEDS_NOTHING, 2, pack_command, take_command },
    [REPL_ANSWER] = { "answer", REPL_NEEDS_NOTHING, 2, pack_command, take_command },
    [REPL_OMITTED] = { "omitted", REPL_NEEDS_KIND, 3, pack_passed, take_passed },
};

enum { HEAD_VALUES = 2 };

void repl_write(const struct repl_frame *frame, struct buf *out)
{
    const struct frame_kind *kind = &kinds[frame->kind];
    msgpack_packer packer = pack_to(out);
    assert(kind->pack);
    msgpack_pack_array(&packer, HEAD_VALUES + kind->values);
    msgpack_pack_int(&packer, frame->kind);
    msgpack_pack_uint32(&packer, kind->needs);
    kind->pack(&packer, frame);
}

/* ---- reading ---- */

/* The head of a frame that is being read. */
struct head {
    size_t values; /* after the head */
    uint64_t kind;
    uint64_t needs;
};

static struct head take_frame_head(struct cursor *in)
{
    struct head head = { .values = take_array(in, UINT16_MAX) };
    head.kind = take_number(in, KIND_MOST);
    head.needs = take_number(in, REPL_NEEDS_ALL);
    in->failed |= head.values < HEAD_VALUES;
    head.values -= HEAD_VALUES;
    return head;
}

static void skip(struct cursor *in, size_t values)
{
    while (values-- && !in->failed)
        take_any(in);
}

static const struct frame_kind *known_kind(const struct head *head)
{
    return head->kind < REPL_KINDS && kinds[head->kind].take ? &kinds[head->kind] : NULL;
}

/* Takes a frame of a known kind. */
static enum err take_known(struct cursor *in, const struct head *head,
                           struct repl_frame *frame, struct failure *why)
{
    const struct frame_kind *kind = known_kind(head);
    bool all_known = head->values == kind->values;
    bool is_stored = kind->take == take_run || kind->take == take_document;
    frame->kind = (enum repl_kind)head->kind;
    in->failed |= head->values < kind->values;
    if (!in->failed) {
        all_known &= kind->take(in, frame);
        skip(in, head->values - kind->values);
        frame->has_unknown = is_stored && !all_known;
    }
    if (in->failed)
        return explain(why, ERR_INVALID, "invalid frame \"%s\"", kind->name);
    if (!all_known && head->needs == REPL_NEEDS_ALL)
        return explain(why, ERR_INVALID,
                       "a frame \"%s\" has values that only a later version knows",
                       kind->name);
    return OK;
}

/* Takes one frame; skips it if its kind is unknown. */
static enum err take_frame(struct cursor *in, struct repl_frame *frame, struct failure *why)
{
    struct head head = take_frame_head(in);
    if (in->failed)
        return explain(why, ERR_INVALID, "invalid frame");
    if (known_kind(&head))
        return take_known(in, &head, frame, why);
    if (head.needs)
        return explain(why, ERR_INVALID, "only a later version knows frames of kind %u",
                       (unsigned)head.kind);
    skip(in, head.values);
    return in->failed ? explain(why, ERR_INVALID, "invalid frame") : OK;
}

enum err repl_read(struct slice *message, struct repl_frame *frame, struct failure *why)
{
    struct cursor in = cursor_over(*message);
    enum err err = OK;
    *frame = (struct repl_frame){ .kind = REPL_NONE };
    while (!err && frame->kind == REPL_NONE && cursor_left(&in))
        err = take_frame(&in, frame, why);
    if (err)
        repl_frame_finish(frame);
    *message = slice_from(*message, message->len - cursor_left(&in));
    return err;
}
