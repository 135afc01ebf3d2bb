/* run_codec.c - writes the fields of a run by their table, and reads them back. */
#include "core/replication/run_codec.h"

#include "base/contract/run_columns.h"

/* Packets, and their content types. The index is the number on the wire: append, never
 * reorder. marks: a packet travels only if these are set; 0: always. */
static const struct sent_packet {
    size_t offset;
    unsigned marks;
} packets[] = {
    { offsetof(struct run, payload), MARK_PAYLOAD },
    { rare_offset(payload_type), 0 },
    { offsetof(struct run, metadata), MARK_METADATA },
    { offsetof(struct run, metadata_seed), MARK_PAYLOAD },
    { offsetof(struct run, output), MARK_OUTPUT },
    { rare_offset(output_type), 0 },
    { offsetof(struct run, error), MARK_OUTPUT },
};

enum { PACKETS = sizeof(packets) / sizeof(packets[0]), TAGS_MOST = 2 * RUN_TAGS_MAX };

static const size_t seed_offset = offsetof(struct run, metadata_seed);

/* ---- writing ---- */

static uint64_t unsigned_of(const struct run_column *column, const struct run *run)
{
    const void *field = run_field(run, column->offset);
    switch (column->type) {
    case COLUMN_U8: return *(const uint8_t *)field;
    case COLUMN_U16: return *(const uint16_t *)field;
    case COLUMN_U32: return *(const uint32_t *)field;
    case COLUMN_U64: return *(const uint64_t *)field;
    default: return (uint64_t)run_flags(run);
    }
}

static bool pack_unsigned(msgpack_packer *packer, int index, uint64_t number)
{
    if (!number)
        return false;
    msgpack_pack_int(packer, index);
    msgpack_pack_uint64(packer, number);
    return true;
}

static bool pack_signed(msgpack_packer *packer, int index, int64_t number)
{
    if (!number)
        return false;
    msgpack_pack_int(packer, index);
    msgpack_pack_int64(packer, number);
    return true;
}

static bool pack_real(msgpack_packer *packer, int index, double real)
{
    if (real == 0)
        return false;
    msgpack_pack_int(packer, index);
    msgpack_pack_double(packer, real);
    return true;
}

static bool pack_text(msgpack_packer *packer, int index, const struct bytes *text)
{
    if (!text)
        return false;
    msgpack_pack_int(packer, index);
    pack_bytes(packer, bytes_slice(text));
    return true;
}

/* Returns false if the column is not set. */
static bool pack_column(msgpack_packer *packer, int index, const struct run *run)
{
    const struct run_column *column = &run_columns[index];
    const void *field = run_field(run, column->offset);
    switch (column->type) {
    case COLUMN_I32: return pack_signed(packer, index, *(const int32_t *)field);
    case COLUMN_I64: return pack_signed(packer, index, *(const int64_t *)field);
    case COLUMN_REAL: return pack_real(packer, index, *(const double *)field);
    case COLUMN_TEXT: return pack_text(packer, index, *(struct bytes *const *)field);
    default: return pack_unsigned(packer, index, unsigned_of(column, run));
    }
}

static bool travels(const struct sent_packet *packet, const struct repl_run *run)
{
    return (packet->marks & run->marks) == packet->marks;
}

/* Metadata and its seed are one text until metadata changes: it is sent once. */
static bool is_same_text(const struct sent_packet *packet, const struct repl_run *run)
{
    return packet->offset == seed_offset && run->marks & MARK_METADATA &&
           run->run.metadata && run->run.metadata == run->run.metadata_seed;
}

static bool pack_packet(msgpack_packer *packer, int index, const struct repl_run *run)
{
    const struct sent_packet *packet = &packets[index];
    if (!travels(packet, run))
        return false;
    if (!is_same_text(packet, run))
        return pack_text(packer, index,
                         *(struct bytes *const *)run_field(&run->run, packet->offset));
    msgpack_pack_int(packer, index);
    msgpack_pack_true(packer);
    return true;
}

static void pack_tags(msgpack_packer *packer, const struct tag_list *tags)
{
    uint32_t count = tags ? tags->count : 0;
    msgpack_pack_array(packer, count);
    for (uint32_t i = 0; i < count; i++)
        pack_bytes(packer, bytes_slice(tags->names[i]));
}

void run_pack(const struct repl_run *run, msgpack_packer *packer)
{
    pack_bytes(packer, slice_of(run->run.id));
    pack_tags(packer, run->run.tags);
    size_t place = pack_map_begin(packer), pairs = 0;
    for (int i = 0; i < RUN_COLUMN_COUNT; i++)
        pairs += pack_column(packer, i, &run->run);
    pack_map_end(packer, place, pairs);
    place = pack_map_begin(packer);
    pairs = 0;
    for (int i = 0; i < PACKETS; i++)
        pairs += pack_packet(packer, i, run);
    pack_map_end(packer, place, pairs);
}

/* ---- reading ---- */

static void take_id(struct cursor *in, char id[RUN_ID_MAX])
{
    struct slice text = take_bytes(in, RUN_ID_MAX - 1);
    if (!text.len || memchr(text.ptr, 0, text.len))
        in->failed = true;
    else
        memcpy(id, text.ptr, text.len);
}

static void take_tags(struct cursor *in, struct run *run)
{
    struct slice names[TAGS_MOST];
    size_t count = take_array(in, TAGS_MOST);
    for (size_t i = 0; i < count; i++) {
        names[i] = take_bytes(in, UINT32_MAX);
        in->failed |= !names[i].ptr;
    }
    run->tags = in->failed ? NULL : tag_list_create(names, count);
}

/* Takes a text that the run does not have yet. */
static void take_text(struct cursor *in, struct bytes **place)
{
    if (*place)
        in->failed = true;
    else
        *place = take_copy(in);
}

static void take_column(struct cursor *in, const struct run_column *column, struct run *run)
{
    void *field = run_column_place(column, run, true);
    switch (column->type) {
    case COLUMN_U8: *(uint8_t *)field = (uint8_t)take_number(in, UINT8_MAX); break;
    case COLUMN_U16: *(uint16_t *)field = (uint16_t)take_number(in, UINT16_MAX); break;
    case COLUMN_U32: *(uint32_t *)field = (uint32_t)take_number(in, UINT32_MAX); break;
    case COLUMN_I32:
        *(int32_t *)field = (int32_t)take_signed(in, INT32_MIN, INT32_MAX);
        break;
    case COLUMN_I64: *(int64_t *)field = take_signed(in, INT64_MIN, INT64_MAX); break;
    case COLUMN_U64: *(uint64_t *)field = take_number(in, UINT64_MAX); break;
    case COLUMN_REAL: *(double *)field = take_real(in); break;
    case COLUMN_TEXT: take_text(in, field); break;
    case COLUMN_FLAGS: run_set_flags(run, (int)take_number(in, INT32_MAX)); break;
    }
}

/* Returns false if one was unknown. */
static bool take_columns(struct cursor *in, struct run *run)
{
    bool known = true;
    for (size_t left = take_map(in, UINT16_MAX); left && !in->failed; left--) {
        uint64_t index = take_number(in, UINT16_MAX);
        if (index < RUN_COLUMN_COUNT) {
            take_column(in, &run_columns[index], run);
        } else {
            take_any(in);
            known = false;
        }
    }
    return known;
}

static void take_packet(struct cursor *in, const struct sent_packet *packet,
                        struct run *run, bool *is_same)
{
    if (packet->offset == seed_offset && take_true(in))
        *is_same = true;
    else if (packet->offset < sizeof(*run))
        take_text(in, (struct bytes **)((char *)run + packet->offset));
    else
        take_text(in, (struct bytes **)((char *)run_rare_edit(run) + packet->offset -
                                        sizeof(*run)));
}

static bool take_packets(struct cursor *in, struct run *run)
{
    bool known = true, is_same = false;
    for (size_t left = take_map(in, UINT16_MAX); left && !in->failed; left--) {
        uint64_t index = take_number(in, UINT16_MAX);
        if (index < PACKETS) {
            take_packet(in, &packets[index], run, &is_same);
        } else {
            take_any(in);
            known = false;
        }
    }
    if (is_same && !run->metadata_seed)
        run->metadata_seed = bytes_ref(run->metadata);
    return known;
}

/* Other values would be indexes beyond the ends of tables, or texts that are missing. */
static bool is_possible(const struct run *run)
{
    return run->status < RUN_STATUS_COUNT && run->execution < EXECUTION_COUNT &&
           run->machine < MACHINE_COUNT && run->task && run->queue;
}

bool run_take(struct cursor *in, struct repl_run *run)
{
    take_id(in, run->run.id);
    take_tags(in, &run->run);
    bool columns_known = take_columns(in, &run->run);
    bool packets_known = take_packets(in, &run->run);
    in->failed |= !is_possible(&run->run);
    return columns_known && packets_known;
}
