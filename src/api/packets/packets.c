/* packets.c - the routes that return signed URLs of packets.
 *
 *   client: PUT /api/v2/packets/name ─► a signed URL, for an hour ─► PUT there, no key
 *   reader: run with application/store ─► a signed URL ─► GET there, the type as uploaded
 *
 * The URLs lead back to this gateway (packet_body.c). */
#include "api/packets/packet_body.h"
#include "api/packets/packet_name.h"
#include "api/request/hidden.h"
#include "api/request/route.h"
#include "base/mem.h"

enum {
    NO_BODY = 65536,
    RUNS_OF_ONE_MAX = 100, /* runs examined: replays share a packet */
};

/* ---- URLs ---- */

static enum err reply_url(struct api_call *call, const char *method, struct slice name,
                          bool with_path)
{
    struct buf url = { 0 }, body = { 0 };
    enum err err = packet_check_name(name, &call->why);
    if (err)
        return err;
    packet_url(call, call->account, method, name, &url);
    buf_add_text(&body, "{\"presignedUrl\":");
    buf_add_json(&body, buf_slice(&url));
    if (with_path) {
        buf_add_text(&body, ",\"storagePath\":");
        buf_add_json(&body, name);
    }
    buf_add_char(&body, '}');
    api_reply_json(call, 200, buf_slice(&body));
    buf_finish(&body);
    buf_finish(&url);
    return OK;
}

static enum err reply_upload(struct api_call *call, bool with_path)
{
    struct slice id;
    if (packet_is_output(call->params[0], &id))
        return explain(&call->why, ERR_INVALID,
                       "The name of a packet must not begin with ~output/");
    return reply_url(call, "PUT", call->params[0], with_path);
}

static enum err offer_upload(struct api_call *call)
{
    return reply_upload(call, true);
}

static enum err offer_upload_v1(struct api_call *call)
{
    return reply_upload(call, false);
}

/* ---- authorization ---- */

/* Searches the runs of a packet: a token may read the packets of runs that it may read. */
struct packet_search {
    struct api_call *call;
    struct store_list runs; /* runs with this packet as payload or output */
};

static bool reads_one_of(const struct identity *who, const struct store_list *runs)
{
    for (size_t i = 0; i < runs->count; i++)
        if (api_identity_may_run(who, "read", &runs->runs[i]))
            return true;
    return false;
}

static void on_found(struct store_read *read, enum store_status status)
{
    struct packet_search *op = container_of(read, struct packet_search, runs.read);
    struct api_call *call = op->call;
    enum err err = err_of_store(status);
    if (!err)
        err = reads_one_of(call->identity, &op->runs)
                  ? reply_url(call, "GET", call->params[0], false)
                  : ERR_FORBIDDEN;
    if (err)
        api_reply_error(call, err);
    store_read_finish(read);
    free(op);
}

static enum err find_runs(struct api_call *call)
{
    struct packet_search *op = mem_new(struct packet_search);
    struct store *store = engine_store(api_engine(call->api));
    op->call = call;
    op->runs = (struct store_list){ .read = { READ_LIST, call->env->number, on_found },
                                    .filter = { .is_test = -1, .packet = call->params[0] },
                                    .limit = RUNS_OF_ONE_MAX };
    call->busy = true;
    store->ops->read(store, &op->runs.read);
    return OK;
}

static enum err offer_download(struct api_call *call)
{
    struct slice id;
    enum err err = packet_check_name(call->params[0], &call->why);
    if (err)
        return err;
    if (call->identity->kind == CREDENTIAL_SECRET_KEY)
        return reply_url(call, "GET", call->params[0], false);
    if (packet_is_output(call->params[0], &id))
        return ERR_FORBIDDEN;
    if (packet_any_is_open_to(call->identity))
        return reply_url(call, "GET", call->params[0], false);
    if (hidden_contents(hidden_fields(call->identity)))
        return explain(&call->why, ERR_FORBIDDEN,
                       "This token omits columns; request "
                       "/api/v1/runs/<id>/packets/payload or …/output");
    return find_runs(call);
}

/* ---- the packets of a run ---- */

struct run_packet {
    struct api_call *call;
    struct run_read read;
};

static enum err reply_of_run(struct api_call *call, const struct run *run)
{
    bool payload = slice_is(call->params[1], "payload");
    struct slice name = bytes_slice(payload ? run->payload : run->output);
    const struct run_rare *rare = run_rare(run);
    struct slice type = bytes_slice(payload ? rare->payload_type : rare->output_type);
    uint32_t hidden = hidden_fields(call->identity);
    enum err err = api_check_run_scope(call, "read", run);
    if (err)
        return err;
    if (hidden & 1u << (payload ? FIELD_PAYLOAD : FIELD_OUTPUT))
        return explain(&call->why, ERR_FORBIDDEN, "This token omits the %s",
                       payload ? "payload" : "output");
    if (!name.len || !slice_is(type, "application/store"))
        return explain(&call->why, ERR_NOT_FOUND,
                       "Packet not found: the run's value is stored in the run itself");
    return reply_url(call, "GET", name, false);
}

static void on_run(struct run_read *read, enum err status)
{
    struct run_packet *op = container_of(read, struct run_packet, read);
    if (!status)
        status = reply_of_run(op->call, read->run);
    if (status)
        api_reply_error(op->call, status);
    free(op);
}

static enum err offer_of_run(struct api_call *call)
{
    if (!slice_is(call->params[1], "payload") && !slice_is(call->params[1], "output"))
        return explain(&call->why, ERR_NOT_FOUND,
                       "Packet not found: a run has a payload and an output");
    struct run_packet *op = mem_new(struct run_packet);
    op->call = call;
    call->busy = true;
    run_read_begin(call->env, call->params[0], &op->read, on_run);
    return OK;
}

enum {
    BOTH = AUTH_KEY | AUTH_PUBLIC,
    FREE_KEY = AUTH_KEY | RATE_FREE,
    FREE_BOTH = BOTH | RATE_FREE,
};

/* clang-format off */
static const struct route routes[] = {
    { .method = HTTP_PUT_, .path = "/api/v2/packets/{name*}",
      .auth = FREE_KEY, .body_limit = NO_BODY, .handle = offer_upload,
      .id = "create_upload_payload_url_v2", .summary = "Where a payload may be uploaded",
      .reply = "{presignedUrl: string, storagePath: string}" },
    { .method = HTTP_PUT_, .path = "/api/v1/packets/{name*}",
      .auth = FREE_KEY, .body_limit = NO_BODY, .handle = offer_upload_v1,
      .id = "create_upload_payload_url_v1", .summary = "The same for SDK 3.x",
      .reply = "PacketUrl" },
    { .method = HTTP_GET_, .path = "/api/v1/packets/{name*}",
      .auth = FREE_BOTH, .body_limit = NO_BODY, .handle = offer_download,
      .id = "get_payload_url_v1", .summary = "Where a payload may be downloaded; a token "
          "reads those of its runs",
      .reply = "PacketUrl" },
    { .method = HTTP_GET_, .path = "/api/v1/runs/{runId}/packets/{kind}",
      .auth = BOTH, .body_limit = NO_BODY, .handle = offer_of_run,
      .id = "get_run_packet_url_v1", .summary = "Where payload or output of a run may be "
          "downloaded",
      .reply = "PacketUrl" },
    { .method = HTTP_PUT_, .path = "/packets/v1/{environment}/{name*}",
      .auth = AUTH_SIGNED, .signed_form = SIGNED_PACKET, .body_limit = PACKET_BYTES_MAX, .handle = packet_write,
      .on_body = packet_take_piece,
      .id = "write_packet_v1", .summary = "Upload a payload to its signed URL",
      .query = "expires: string, signature: string",
      .takes = "application/octet-stream",
      .body = "string",
      .also = "409 507" },
    { .method = HTTP_GET_, .path = "/packets/v1/{environment}/{name*}",
      .auth = AUTH_SIGNED, .signed_form = SIGNED_PACKET, .body_limit = NO_BODY, .handle = packet_read,
      .is_alone = true, .id = "read_packet_v1", .summary = "Download a payload from its signed URL",
      .query = "expires: string, signature: string",
      .gives = "*/*",
      .reply = "string" },
    { 0 },
};
/* clang-format on */

static const struct schema schemas[] = {
    { "PacketUrl", "{presignedUrl: string}" },
    { 0 },
};

const struct area packets_area = { .tag = "packets", .routes = routes, .schemas = schemas };
