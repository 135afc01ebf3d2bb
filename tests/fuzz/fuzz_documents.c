/* fuzz_documents - documents of the store: each is invalid, or the same when written again.
 *
 * The first byte is the kind of document; the first line is its name, the rest its body. */
#include <assert.h>
#include <stdlib.h>

#include "accounts/accounts.h"
#include "api/batches/batch.h"
#include "api/bulk/bulk.h"
#include "api/queues/queue_settings.h"
#include "api/registration/registration.h"
#include "api/router/services.h"
#include "api/schedules/schedule_state.h"
#include "base/json/scan.h"
#include "core/model/waitpoint.h"
#include "tests/fuzz/judge.h"
#include "tests/support/world/api_world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Numbers of the environments of an api_world. */
enum { DEV = 1, PROD = 3 };

/* Consumes both references. */
static void assert_same(struct bytes *body, struct bytes *again)
{
    assert(slice_equal(bytes_slice(body), bytes_slice(again)));
    bytes_unref(body);
    bytes_unref(again);
}

/* Returns true if the id is one of ours, with the characters that such ids have. */
static bool is_id(const char *id)
{
    for (; *id; id++)
        if (*id != '_' && (*id < '0' || *id > '9') &&
            ((*id | 32) < 'a' || (*id | 32) > 'z'))
            return false;
    return true;
}

/* Returns true for a JSON string whose text needs no escapes in a path. */
static bool is_plain(struct slice text)
{
    for (size_t i = 1; i + 1 < text.len; i++)
        if (!strchr("0123456789abcdef", text.ptr[i]) || !text.ptr[i])
            return false;
    return text.len < 100 && text.ptr[0] == '"';
}

static struct document with_body(const struct document *document, struct bytes *body)
{
    struct document again = *document;
    again.body = body;
    return again;
}

static void check_batch(const struct document *document)
{
    struct batch batch, second;
    if (batch_read(document, &batch))
        return;
    bool plain = is_id(batch.id);
    for (size_t i = 0; i < batch.count; i++)
        plain = plain && is_id(batch.runs[i].id);
    if (plain) {
        struct bytes *body = batch_write(&batch);
        struct document again = with_body(document, body);
        assert(batch_read(&again, &second) == OK);
        assert_same(body, batch_write(&second));
        batch_finish(&second);
    }
    batch_finish(&batch);
}

static void check_waitpoint(const struct document *document)
{
    struct waitpoint waitpoint, second, head;
    bool read_head = waitpoint_read_head(document, &head) == OK;
    if (read_head)
        waitpoint_finish(&head);
    waitpoint_is_completed(document);
    if (waitpoint_read(document, &waitpoint))
        return;
    assert(read_head);
    if (is_id(waitpoint.id)) {
        struct change change = waitpoint_change(&waitpoint, DEV);
        assert(waitpoint_read(&change.document, &second) == OK);
        struct change other = waitpoint_change(&second, DEV);
        assert_same(bytes_ref(change.document.body), bytes_ref(other.document.body));
        change_finish(&change);
        change_finish(&other);
        waitpoint_finish(&second);
    }
    waitpoint_finish(&waitpoint);
}

static void check_schedule(const struct document *document)
{
    struct schedule_facts facts, second;
    if (schedule_facts_read(bytes_slice(document->body), &facts))
        return;
    struct bytes *body = schedule_facts_write(&facts);
    assert(schedule_facts_read(bytes_slice(body), &second) == OK);
    assert_same(body, schedule_facts_write(&second));
    schedule_facts_finish(&facts);
    schedule_facts_finish(&second);
}

static void check_bulk(const struct document *document)
{
    struct bulk_action *action = bulk_action_create(), *second = bulk_action_create();
    struct failure why;
    if (!bulk_read(bytes_slice(document->body), action, &why) && is_id(action->id) &&
        is_id(action->progress.after)) {
        struct bytes *body = bulk_write(action, &action->progress);
        struct buf shown = { 0 };
        assert(bulk_read(bytes_slice(body), second, &why) == OK);
        assert_same(body, bulk_write(second, &second->progress));
        bulk_show(action, &shown);
        assert(scan_is_json(buf_slice(&shown)));
        buf_finish(&shown);
    }
    bulk_action_destroy(action);
    bulk_action_destroy(second);
}

static void check_queue(const struct document *document)
{
    struct queue_settings settings, second;
    struct failure why;
    if (queue_settings_read(bytes_slice(document->body), &settings, &why))
        return;
    struct bytes *body = queue_settings_write(&settings);
    if (!body)
        return;
    assert(queue_settings_read(bytes_slice(body), &second, &why) == OK);
    assert_same(body, queue_settings_write(&second));
}

static struct slice without_queues(const struct bytes *body)
{
    static const char queues[] = ",\"queues\":";
    const char *end = memmem(body->data, body->len, queues, sizeof(queues) - 1);
    assert(end);
    return (struct slice){ body->data, (size_t)(end - body->data) };
}

/* Reading it again adds the default queues of tasks to the others. */
static void check_worker(const struct document *document)
{
    struct registration registration = { 0 }, second = { 0 };
    struct failure why;
    if (registration_restore(bytes_slice(document->body), &registration, &why))
        return;
    struct bytes *body = registration_write(&registration);
    struct bytes *name = registration_document_name(registration.worker);
    judge_rest();
    assert(registration_restore(bytes_slice(body), &second, &why) == OK);
    struct bytes *again = registration_write(&second);
    assert(slice_equal(without_queues(body), without_queues(again)));
    bytes_unref(body);
    bytes_unref(again);
    bytes_unref(name);
    registration_finish(&registration);
    registration_finish(&second);
}

/* Restores documents that need a whole gateway: accounts, variables, schedules, queues. */
static void restore(const struct document *document)
{
    struct api_world world;
    struct failure why = { 0 };
    judge_pause();
    api_world_open(&world);
    judge_resume();
    bool is_account = document->kind <= DOC_TOKEN || document->kind == DOC_WORKER_TOKEN;
    if (is_account && !accounts_add(world.accounts, document, &why))
        accounts_link(world.accounts, &why);
    else if (!is_account)
        api_restore(world.api, document, &why);
    judge_pause();
    api_world_close(&world);
    judge_resume();
}

/* ---- traces, which are read on request ---- */

static void ask(struct api_world *world, struct slice run, const char *what,
                struct slice span)
{
    struct buf target = { 0 };
    buf_print(&target, "/api/v1/runs/%.*s/%s%.*s", SLICE_ARG(run), what, SLICE_ARG(span));
    api_world_ask(world, API_KEY_DEV, "GET", buf_slice(&target), (struct slice){ 0 },
                  SLICE(""), 0);
    assert(world->status == 200 || (world->status == 404 && span.len));
    assert(scan_is_json(world->body));
    buf_finish(&target);
}

/* Requests the span that the trace names first. */
static void show_trace(struct api_world *world, const struct document *document,
                       struct slice run)
{
    struct scan_members events =
        scan_members(scan_member(bytes_slice(document->body), "events"));
    struct slice first, id = SLICE("0000000000000001");
    if (scan_next_element(&events, &first)) {
        struct slice text = scan_member(first, "spanId");
        if (text.len > 2 && is_plain(text))
            id = (struct slice){ text.ptr + 1, text.len - 2 };
    }
    ask(world, run, "trace", SLICE(""));
    ask(world, run, "events", SLICE(""));
    ask(world, run, "spans/", id);
}

static void on_trace_written(struct document_write *write, enum err status)
{
    (void)write;
    assert(!status);
}

static void check_trace(const struct document *document)
{
    struct api_world world;
    struct buf run = { 0 };
    if (!scan_is_json(bytes_slice(document->body)))
        return;
    judge_pause();
    api_world_open(&world);
    api_world_ask(&world, API_KEY_DEV, "POST", SLICE("/api/v1/tasks/hello/trigger"),
                  (struct slice){ 0 }, SLICE("{}"), 0);
    bool made = api_world_text(&world, "id", &run);
    assert(made);
    struct bytes *name = bytes_create(buf_slice(&run));
    struct document_write write;
    document_write_begin(world.engine, api_world_account(&world)->number, DOC_TRACE, name,
                         document->body, 0, &write, on_trace_written);
    api_world_settle(&world);
    judge_resume();
    show_trace(&world, document, buf_slice(&run));
    judge_pause();
    bytes_unref(name);
    buf_finish(&run);
    api_world_close(&world);
    judge_resume();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice body, name;
    if (size < 2 || size > 65536)
        return 0;
    body = (struct slice){ (const char *)data + 1, size - 1 };
    slice_split(&body, '\n', &name);
    struct document document = { .kind = (enum document_kind)(data[0] % DOC_KINDS),
                                 .env = DEV,
                                 .version = 1,
                                 .name = bytes_create(name),
                                 .body = bytes_create(body) };
    if (document.kind == DOC_CURRENT)
        document.env = PROD;
    if (document.name && document.body) {
        switch (document.kind) {
        case DOC_BATCH: check_batch(&document); break;
        case DOC_WAITPOINT: check_waitpoint(&document); break;
        case DOC_SCHEDULE: check_schedule(&document); break;
        case DOC_BULK: check_bulk(&document); break;
        case DOC_QUEUE: check_queue(&document); break;
        case DOC_WORKER: check_worker(&document); break;
        case DOC_TRACE: check_trace(&document); break;
        default: break;
        }
        judge_rest();
        restore(&document);
    }
    document_finish(&document);
    return 0;
}
