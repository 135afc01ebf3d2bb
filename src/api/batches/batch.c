/* batch.c - writes and reads the document of a batch, and derives its status. */
#include "api/batches/batch.h"

#include "base/json/members.h"
#include "base/json/scan.h"
#include "base/mem.h"
#include "base/random.h"

void batch_finish(struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        bytes_unref(batch->runs[i].task);
        bytes_unref(batch->runs[i].key);
    }
    for (size_t i = 0; i < batch->error_count; i++)
        bytes_unref(batch->errors[i].task);
    free(batch->runs);
    free(batch->errors);
    bytes_unref(batch->parent);
    bytes_unref(batch->key);
    bytes_unref(batch->token);
    *batch = (struct batch){ 0 };
}

/* ---- writing ---- */

static void add_run(struct buf *out, const struct batch_run *run)
{
    if (!run->task) {
        buf_print(out, "\"%s\"", run->id);
        return;
    }
    buf_print(out, "[\"%s\",", run->id);
    buf_add_json(out, bytes_slice(run->task));
    if (run->key) {
        buf_add_char(out, ',');
        buf_add_json(out, bytes_slice(run->key));
    }
    buf_add_char(out, ']');
}

static void add_lists(struct buf *out, const struct batch *batch)
{
    buf_add_text(out, ",\"runs\":[");
    for (size_t i = 0; i < batch->count; i++) {
        if (i)
            buf_add_char(out, ',');
        add_run(out, &batch->runs[i]);
    }
    buf_add_text(out, "],\"errors\":[");
    for (size_t i = 0; i < batch->error_count; i++) {
        buf_print(out, "%s[%u,", i ? "," : "", batch->errors[i].index);
        buf_add_json(out, bytes_slice(batch->errors[i].task));
        buf_add_char(out, ']');
    }
    buf_add_char(out, ']');
}

static void add_token(struct buf *out, const struct bytes *token)
{
    char hex[2 * HASH_LEN + 1];
    if (!token)
        return;
    text_to_hex((const unsigned char *)token->data, HASH_LEN, hex);
    buf_print(out, ",\"token\":\"%s\"", hex);
}

struct bytes *batch_write(const struct batch *batch)
{
    struct buf out = { 0 };
    buf_print(&out,
              "{\"id\":\"%s\",\"runCount\":%u,\"createdAt\":%lld,\"updatedAt\":%lld,"
              "\"sealedAt\":%lld,\"resume\":%s,\"complete\":%s",
              batch->id, batch->run_count, (long long)batch->created_at,
              (long long)batch->updated_at, (long long)batch->sealed_at,
              batch->resume ? "true" : "false", batch->complete ? "true" : "false");
    members_add_text(&out, "parent", bytes_slice(batch->parent));
    members_add_text(&out, "key", bytes_slice(batch->key));
    add_token(&out, batch->token);
    add_lists(&out, batch);
    buf_add_char(&out, '}');
    struct bytes *body = buf_to_bytes(&out);
    buf_finish(&out);
    return body;
}

/* ---- reading ---- */

static bool read_id(struct slice value, char id[ID_MAX])
{
    struct buf text = { 0 };
    bool fits = scan_string(value, &text) && text.len < ID_MAX;
    if (fits)
        snprintf(id, ID_MAX, "%.*s", SLICE_ARG(buf_slice(&text)));
    buf_finish(&text);
    return fits;
}

static struct bytes *token_of(struct slice value)
{
    unsigned char hash[HASH_LEN];
    value = slice_trim(value);
    if (value.len != 2 * HASH_LEN + 2)
        return NULL;
    for (size_t i = 0; i < HASH_LEN; i++) {
        char digits[3] = { value.ptr[1 + 2 * i], value.ptr[2 + 2 * i] };
        hash[i] = (unsigned char)strtoul(digits, NULL, 16);
    }
    return bytes_create((struct slice){ (const char *)hash, HASH_LEN });
}

static size_t count_elements(struct slice array)
{
    struct scan_members members = scan_members(array);
    struct slice element;
    size_t count = 0;
    while (scan_next_element(&members, &element))
        count++;
    return count;
}

static bool read_run(struct slice value, struct batch_run *run)
{
    struct scan_members members = scan_members(value);
    struct slice part;
    if (scan_type(value) == SCAN_STRING)
        return read_id(value, run->id);
    if (!scan_next_element(&members, &part) || !read_id(part, run->id))
        return false;
    if (scan_next_element(&members, &part))
        run->task = members_text_of(part);
    if (scan_next_element(&members, &part))
        run->key = members_text_of(part);
    return true;
}

static bool read_runs(struct slice array, struct batch *batch)
{
    struct scan_members members = scan_members(array);
    struct slice element;
    batch->runs = mem_new_array(struct batch_run, count_elements(array));
    while (scan_next_element(&members, &element))
        if (!read_run(element, &batch->runs[batch->count++]))
            return false;
    return true;
}

static bool read_errors(struct slice array, struct batch *batch)
{
    struct scan_members members = scan_members(array);
    struct slice element, part;
    uint64_t index;
    batch->errors = mem_new_array(struct batch_error, count_elements(array));
    while (scan_next_element(&members, &element)) {
        struct scan_members parts = scan_members(element);
        if (!scan_next_element(&parts, &part) || text_to_u64(part, &index) ||
            !scan_next_element(&parts, &part))
            return false;
        batch->errors[batch->error_count++] =
            (struct batch_error){ (uint32_t)index, members_text_of(part) };
    }
    return true;
}

enum err batch_read(const struct document *document, struct batch *batch)
{
    struct slice body = bytes_slice(document->body);
    struct batch read = { .version = document->version };
    int64_t count = 0;
    bool fine = scan_is_json(body) && read_id(scan_member(body, "id"), read.id) &&
                members_number(body, "runCount", &count) &&
                members_number(body, "createdAt", &read.created_at) &&
                members_number(body, "updatedAt", &read.updated_at) &&
                members_number(body, "sealedAt", &read.sealed_at) &&
                read_runs(scan_member(body, "runs"), &read) &&
                read_errors(scan_member(body, "errors"), &read);
    if (!fine) {
        batch_finish(&read);
        return ERR_INTERNAL;
    }
    read.run_count = (uint32_t)count;
    read.resume = members_is_true(body, "resume");
    read.complete = members_is_true(body, "complete");
    read.parent = members_text(body, "parent");
    read.key = members_text(body, "key");
    read.token = token_of(scan_member(body, "token"));
    *batch = read;
    return OK;
}

static void on_loaded(struct store_read *read, enum store_status status)
{
    struct batch_load *load = container_of(read, struct batch_load, load.read);
    enum err err = err_of_store(status);
    bytes_unref(load->load.name);
    if (!err) {
        err = batch_read(&load->load.document, &load->batch);
        document_finish(&load->load.document);
    }
    load->done(load, err);
}

void batch_load_begin(struct api_call *call, struct slice id, struct batch_load *load,
                      void (*done)(struct batch_load *load, enum err status))
{
    struct store *store = engine_store(api_engine(call->api));
    *load = (struct batch_load){ .done = done };
    load->load = (struct store_load){ .read = { READ_LOAD, call->env->number, on_loaded },
                                      .is_document = true,
                                      .kind = DOC_BATCH,
                                      .name = bytes_create(id) };
    store->ops->read(store, &load->load.read);
}

/* ---- status ---- */

/* A run that is not in memory has ended. */
static bool is_unfinished(const struct batch_run *of, const struct environment *env)
{
    const struct tracked *run = environment_find(env, slice_of(of->id));
    return run && !run_is_final(&run->run);
}

size_t batch_count_unfinished(const struct batch *batch, const struct environment *env)
{
    size_t count = 0;
    for (size_t i = 0; i < batch->count; i++)
        count += is_unfinished(&batch->runs[i], env);
    return count;
}

bool batch_has_ended(const struct batch *batch, const struct environment *env)
{
    const char *status = batch_status(batch, env);
    return !strcmp(status, "COMPLETED") || !strcmp(status, "ABORTED");
}

const char *batch_draw_unfinished(const struct batch *batch, const struct environment *env)
{
    size_t count = batch_count_unfinished(batch, env);
    uint64_t drawn = count ? random_below(count) : 0;
    for (size_t i = 0; i < batch->count; i++)
        if (is_unfinished(&batch->runs[i], env) && drawn-- == 0)
            return batch->runs[i].id;
    return NULL;
}

const char *batch_status(const struct batch *batch, const struct environment *env)
{
    if (!batch->sealed_at)
        return "PENDING";
    if (batch->error_count && !batch->count)
        return "ABORTED";
    if (batch->complete || !batch_count_unfinished(batch, env))
        return "COMPLETED";
    return batch->error_count ? "PARTIAL_FAILED" : "PENDING";
}
