/* packet_body.c - uploads and downloads the bytes of packets by signed URLs.
 *
 *   PUT: pieces ─► one document ─► written; if it exists, overwritten
 *   GET: the end of the document ─► short: all of it, sent from where it is in memory
 *                    └─► long: its type and its length ─► piece ─► sent ─► piece …
 *        run or token ─► its output
 *
 * A document is the content, then its type, then one byte with the length of the type, so
 * the content can be sent without a copy. At most one piece of a long document is in
 * memory; the next is read when the peer has received it. If the document is overwritten or
 * deleted meanwhile, the response is cut, so that two halves cannot pass for one packet. */
#include <assert.h>

#include "api/packets/packet_body.h"
#include "api/packets/packet_name.h"
#include "api/request/quotas.h"
#include "base/json/members.h"
#include "base/mem.h"
#include "core/model/waitpoint.h"

enum {
    TYPE_MAX = 128,
    REWRITES_MAX = 3, /* retries if another request writes the same name */

    /* The store reads the whole document for each piece, so pieces are large. */
    PIECE_BYTES = 1 << 20,
};

struct packet {
    struct api_call *call;
    struct bytes *name, *body;
    struct buf pieces; /* a body whose length is not announced */
    size_t len;        /* bytes of the content so far */
    unsigned rewrites;
    struct document_write write;
    struct store_load load;
    struct store_piece piece;
    size_t sent;  /* bytes of the content sent, if it is sent in pieces */
    bool reading; /* a read of piece is in flight */
    struct run_read read;
};

static void packet_destroy(struct packet *packet)
{
    bytes_unref(packet->name);
    bytes_unref(packet->body);
    buf_finish(&packet->pieces);
    free(packet);
}

static void packet_body_refuse(struct packet *packet, enum err err)
{
    api_reply_error(packet->call, err);
    packet_destroy(packet);
}

static struct packet *packet_create(struct api_call *call)
{
    struct packet *packet = mem_new(struct packet);
    packet->call = call;
    packet->name = bytes_create(call->params[1]);
    call->busy = true;
    return packet;
}

/* ---- writing ---- */

static struct slice type_of(const struct api_call *call)
{
    struct slice type = http_header(call->x, "content-type");
    return type.ptr ? type : SLICE("");
}

static void on_gone(struct api_call *call)
{
    packet_destroy(call->state);
    api_reply_gone(call);
}

/* Begins to receive a body. Allocates the announced length; the server rejects a longer
 * body. */
static enum err begin_write(struct api_call *call, struct packet **packet)
{
    struct slice length = http_header(call->x, "content-length");
    struct slice type = type_of(call);
    uint64_t len = 0;
    if (type.len > TYPE_MAX)
        return explain(&call->why, ERR_INVALID,
                       "The content type must have at most %d characters", TYPE_MAX);
    bool announced = call->x->has_body_length && !text_to_u64(length, &len);
    enum err over = engine_check_quota(call->env, announced ? (size_t)len : 1, &call->why);
    if (over)
        return over;
    *packet = packet_create(call);
    if (announced && len <= PACKET_BYTES_MAX)
        (*packet)->body = bytes_create_empty(len + type.len + 1);
    call->state = *packet;
    call->on_gone = on_gone;
    return OK;
}

enum err packet_take_piece(struct api_call *call, struct slice piece)
{
    struct packet *packet = call->state;
    enum err err = packet ? OK : begin_write(call, &packet);
    if (err)
        return err;
    if (packet->body) {
        assert(packet->len + piece.len <= packet->body->len);
        memcpy(packet->body->data + packet->len, piece.ptr, piece.len);
    } else {
        buf_add(&packet->pieces, piece);
    }
    packet->len += piece.len;
    return OK;
}

static void finish_body(struct packet *packet)
{
    struct slice type = type_of(packet->call);
    if (!packet->body) {
        packet->body = bytes_create_empty(packet->len + type.len + 1);
        if (packet->len)
            memcpy(packet->body->data, packet->pieces.ptr, packet->len);
        buf_finish(&packet->pieces);
    }
    assert(packet->body->len == packet->len + type.len + 1);
    if (type.len)
        memcpy(packet->body->data + packet->len, type.ptr, type.len);
    packet->body->data[packet->len + type.len] = (char)type.len;
}

static void write_over(struct packet *packet);

static void on_written(struct document_write *write, enum err status)
{
    struct packet *packet = container_of(write, struct packet, write);
    if (status == ERR_CONFLICT && packet->rewrites++ < REWRITES_MAX) {
        write_over(packet);
        return;
    }
    if (status) {
        packet_body_refuse(packet, status);
        return;
    }
    api_reply_json(packet->call, 200, SLICE("{}"));
    packet_destroy(packet);
}

static void begin_commit(struct packet *packet, uint32_t expected)
{
    document_write_begin(api_engine(packet->call->api), packet->call->env->number,
                         DOC_PACKET, packet->name, packet->body, expected, &packet->write,
                         on_written);
}

static void begin_load(struct packet *packet, enum document_kind kind,
                       void (*done)(struct store_read *read, enum store_status status))
{
    struct store *store = engine_store(api_engine(packet->call->api));
    packet->load =
        (struct store_load){ .read = { READ_LOAD, packet->call->env->number, done },
                             .is_document = true,
                             .kind = kind,
                             .name = packet->name };
    store->ops->read(store, &packet->load.read);
}

static void on_version(struct store_read *read, enum store_status status)
{
    struct packet *packet = container_of(read, struct packet, load.read);
    uint32_t version = packet->load.document.version;
    if (status == STORE_OK)
        document_finish(&packet->load.document);
    if (status != STORE_OK && status != STORE_MISSING)
        packet_body_refuse(packet, err_of_store(status));
    else
        begin_commit(packet, status == STORE_OK ? version : 0);
}

static void write_over(struct packet *packet)
{
    begin_load(packet, DOC_PACKET, on_version);
}

enum err packet_write(struct api_call *call)
{
    struct packet *packet = call->state;
    enum err err = packet ? OK : begin_write(call, &packet);
    if (err)
        return err;
    call->on_gone = NULL;
    finish_body(packet);
    begin_commit(packet, 0);
    return OK;
}

/* ---- reading ---- */

static void add_headers(struct api_call *call, struct slice type)
{
    if (type.len)
        api_add_header(call, "content-type", type);
    api_add_header(call, "x-content-type-options", SLICE("nosniff"));
    api_add_header(call, "content-security-policy", SLICE("default-src 'none'; sandbox"));
}

static void send(struct packet *packet, struct bytes *content, struct slice type)
{
    add_headers(packet->call, type);
    api_reply_shared(packet->call, 200, content);
    packet_destroy(packet);
}

static void refuse_missing(struct packet *packet, enum err err)
{
    explain(&packet->call->why, ERR_NOT_FOUND, "Packet not found");
    packet_body_refuse(packet, err);
}

static size_t type_len(const struct bytes *end)
{
    return end->len ? (unsigned char)end->data[end->len - 1] : 0;
}

/* Sends a document that is in memory. It has no other reference, so its tail can be cut
 * off. */
static void send_content(struct packet *packet, struct bytes *body)
{
    size_t tail = type_len(body) + 1;

    assert(body->refs == 1);
    body->len -= (uint32_t)tail;
    send(packet, body, (struct slice){ body->data + body->len, tail - 1 });
}

static void end_pieces(struct packet *packet, bool whole)
{
    struct exchange *x = packet->call->x;
    api_call_end(packet->call);
    packet_destroy(packet);
    if (whole)
        http_stream_end(x);
    else
        http_stream_cut(x);
}

static void read_piece(struct packet *packet);

static void on_piece(struct store_read *read, enum store_status status)
{
    struct packet *packet = container_of(read, struct packet, piece.read);
    struct store_piece *piece = &packet->piece;
    struct exchange *x = packet->call->x;
    packet->reading = false;
    bool taken = !status && http_stream_write_shared(x, piece->piece);
    packet->sent += status ? 0 : piece->piece->len;
    if (!status)
        bytes_clear(&piece->piece);
    if (!taken || packet->sent == packet->len)
        end_pieces(packet, taken);
    else if (!http_stream_unsent(x))
        read_piece(packet);
}

static void read_piece(struct packet *packet)
{
    struct store *store = engine_store(api_engine(packet->call->api));
    size_t left = packet->len - packet->sent;
    packet->piece.last = false;
    packet->piece.offset = packet->sent;
    packet->piece.limit = left < PIECE_BYTES ? left : PIECE_BYTES;
    packet->piece.read.done = on_piece;
    packet->reading = true;
    store->ops->read(store, &packet->piece.read);
}

static void on_drained(struct api_call *call)
{
    struct packet *packet = call->state;
    if (packet->reading)
        return; /* on_piece continues */
    if (http_stream_write(call->x, SLICE("")))
        read_piece(packet);
    else
        end_pieces(packet, false);
}

static void begin_pieces(struct packet *packet, const struct bytes *end)
{
    struct api_call *call = packet->call;
    size_t tail = type_len(end) + 1;
    add_headers(call, (struct slice){ end->data + end->len - tail, tail - 1 });
    packet->len = packet->piece.total - tail;
    call->state = packet;
    call->on_drained = on_drained;
    api_stream_begin_sized(call, packet->len);
    if (call->x->method == HTTP_HEAD_)
        end_pieces(packet, true);
    else
        read_piece(packet);
}

static void on_end(struct store_read *read, enum store_status status)
{
    struct packet *packet = container_of(read, struct packet, piece.read);
    struct store_piece *piece = &packet->piece;
    struct bytes *end = status ? NULL : piece->piece;
    enum err refused = status ? err_of_store(status) : quotas_check_answer(packet->call);
    piece->piece = NULL;
    if (status)
        refuse_missing(packet, refused);
    else if (refused || end->len < type_len(end) + 1)
        packet_body_refuse(packet, refused ? refused : ERR_INTERNAL);
    else if (end->len == piece->total)
        send_content(packet, end);
    else
        begin_pieces(packet, end);
    bytes_unref(end);
}

static void read_end(struct packet *packet)
{
    struct store *store = engine_store(api_engine(packet->call->api));
    packet->piece =
        (struct store_piece){ .read = { READ_PIECE, packet->call->env->number, on_end },
                              .kind = DOC_PACKET,
                              .name = packet->name,
                              .last = true,
                              .limit = PIECE_BYTES };
    store->ops->read(store, &packet->piece.read);
}

static void send_output(struct packet *packet, struct bytes *output,
                        const struct bytes *type)
{
    if (output)
        send(packet, output, type ? bytes_slice(type) : SLICE("application/json"));
    else
        refuse_missing(packet, ERR_NOT_FOUND);
}

static void on_run(struct run_read *read, enum err status)
{
    struct packet *packet = container_of(read, struct packet, read);
    if (status)
        refuse_missing(packet, status);
    else
        send_output(packet, read->run->output, run_rare(read->run)->output_type);
}

static void on_token(struct store_read *read, enum store_status status)
{
    struct packet *packet = container_of(read, struct packet, load.read);
    struct waitpoint token = { 0 };
    enum err err = err_of_store(status);
    if (!err) {
        err = waitpoint_read(&packet->load.document, &token);
        document_finish(&packet->load.document);
    }
    struct bytes *text = members_text_of(bytes_slice(token.output));
    if (err)
        refuse_missing(packet, err);
    else
        send_output(packet, text, token.output_type);
    bytes_unref(text);
    waitpoint_finish(&token);
}

static void read_output(struct packet *packet, struct slice id)
{
    struct bytes *name = bytes_create(id);
    bytes_unref(packet->name);
    packet->name = name;
    if (slice_starts(id, "run_"))
        run_read_begin(packet->call->env, bytes_slice(name), &packet->read, on_run);
    else
        begin_load(packet, DOC_WAITPOINT, on_token);
}

enum err packet_read(struct api_call *call)
{
    struct packet *packet = packet_create(call);
    struct slice id;
    if (packet_is_output(call->params[1], &id))
        read_output(packet, id);
    else
        read_end(packet);
    return OK;
}
