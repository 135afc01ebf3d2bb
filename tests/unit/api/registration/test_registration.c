/* Registrations of workers: read from a body, stored as a document, given to the engine. */
#include "tests/support/world/unit.h"

#include "accounts/bootstrap.h"
#include "api/registration/registration.h"
#include "base/json/scan.h"
#include "base/mem.h"
#include "core/fleet/fleet.h"

/* Reads in pieces of that many bytes, as the route does (0: whole). */
static enum err read_in_pieces(struct slice body, size_t size, struct registration *all,
                               struct failure *why)
{
    struct registration_reader reader;
    enum err err = OK;
    registration_reader_init(&reader);
    while (!err && body.len) {
        size_t len = size && size < body.len ? size : body.len;
        err = registration_feed(&reader, (struct slice){ body.ptr, len }, why);
        body = slice_from(body, len);
    }
    err = err ? err : registration_end(&reader, why);
    while (!err && !all->worker)
        err = registration_read_next(&reader, all, why);
    registration_reader_finish(&reader);
    return err;
}

static enum err registration_read(struct slice body, struct registration *all,
                                  struct failure *why)
{
    return read_in_pieces(body, 0, all, why);
}

static struct registration read_body(const char *body)
{
    struct registration all = { 0 };
    struct failure why = { 0 };
    assert_true(scan_is_json(slice_of(body)));
    if (registration_read(slice_of(body), &all, &why))
        fail_msg("refused: %s", why.text);
    return all;
}

#define TASK(members)                                                                      \
    "{\"metadata\":{\"contentHash\":\"h\",\"tasks\":[{\"id\":\"a\"" members "}]}}"

#define QUEUES(queues)                                                                     \
    "{\"metadata\":{\"contentHash\":\"h\",\"tasks\":[],\"queues\":[" queues "]}}"

static const char full[] =
    "{\"localOnly\":true,\"engine\":\"V2\",\"metadata\":{\"packageVersion\":\"4.8.3\","
    "\"contentHash\":\"hash-1\",\"tasks\":["
    "{\"id\":\"plain\",\"filePath\":\"src/a.ts\",\"exportName\":\"plain\"},"
    "{\"id\":\"full\",\"filePath\":\"src/b.ts\",\"ttl\":5400,\"maxDuration\":60,"
    "\"queue\":{\"name\":\"mail\",\"concurrencyLimit\":7},"
    "\"machine\":{\"preset\":\"large-1x\",\"cpu\":4},\"triggerSource\":\"schedule\","
    "\"schedule\":{\"cron\":\"0 3 * * *\",\"timezone\":\"Asia/Tokyo\",\"window\":\"30m\","
    "\"environments\":[\"STAGING\",\"PRODUCTION\"]},"
    "\"retry\":{\"maxAttempts\":5,\"factor\":1.5,\"minTimeoutInMs\":300,"
    "\"maxTimeoutInMs\":2000,\"randomize\":false,"
    "\"outOfMemory\":{\"machine\":\"large-1x\"}}},"
    "{\"id\":\"limited\",\"queue\":{\"concurrencyLimit\":1},\"ttl\":\"1h\",\"retry\":{}}],"
    "\"queues\":[{\"name\":\"mail\",\"concurrencyLimit\":7},{\"name\":\"free\"}],"
    "\"sourceFiles\":[{\"filePath\":\"src/a.ts\",\"contents\":\"eJw=\"}]}}";

static void assert_text(const struct bytes *bytes, const char *expected)
{
    if (!expected)
        assert_null(bytes);
    else
        assert_string_equal(bytes ? bytes->data : "(none)", expected);
}

static void check_full(const struct registration *all)
{
    const struct worker *worker = all->worker;
    const struct worker_task *task = worker_task(worker, SLICE("full"));

    assert_string_equal(worker->content_hash, "hash-1");
    assert_int_equal(worker->task_count, 3);
    assert_text(task->file_path, "src/b.ts");
    assert_text(task->queue, "mail");
    assert_text(task->ttl, "1h30m");
    assert_int_equal(task->machine, MACHINE_LARGE_1X);
    assert_int_equal(task->max_duration_s, 60);
    assert_true(task->is_scheduled);
    assert_text(task->cron, "0 3 * * *");
    assert_text(task->timezone, "Asia/Tokyo");
    assert_text(task->window, "30m");
    assert_int_equal(task->schedule_in, 1u << ENVIRONMENT_STAGING | 1u << ENVIRONMENT_PROD);
    assert_true(task->has_retry && !task->randomize);
    assert_int_equal(task->big_machine, MACHINE_LARGE_1X);
    assert_int_equal(task->max_attempts, 5);
    assert_true(task->factor == 1.5);
    assert_int_equal(task->min_timeout_ms, 300);
    assert_int_equal(task->max_timeout_ms, 2000);

    task = worker_task(worker, SLICE("plain"));
    assert_text(task->export_name, "plain");
    assert_text(task->queue, NULL);
    assert_text(task->ttl, NULL);
    assert_int_equal(task->machine, -1);
    assert_false(task->has_retry || task->is_scheduled);
}

static void body_is_read_with_its_tasks(void **state)
{
    (void)state;
    struct registration all = read_body(full);
    check_full(&all);
    registration_finish(&all);
}

static void a_partial_retry_has_the_defaults_of_the_sdk(void **state)
{
    (void)state;
    struct registration all = read_body(full);
    const struct worker_task *task = worker_task(all.worker, SLICE("limited"));
    assert_true(task->has_retry && task->randomize);
    assert_int_equal(task->max_attempts, 3);
    assert_true(task->factor == 2);
    assert_int_equal(task->min_timeout_ms, 1000);
    assert_int_equal(task->max_timeout_ms, 60000);
    registration_finish(&all);
}

static void version_is_restored_from_its_document(void **state)
{
    (void)state;
    struct failure why = { 0 };
    struct registration all = read_body(full), back = { 0 };
    snprintf(all.worker->id, sizeof(all.worker->id), "worker_1");
    snprintf(all.worker->version, sizeof(all.worker->version), "20261120.3");
    all.worker->created_at = 1700000000123;

    struct bytes *document = registration_write(&all);
    assert_null(strstr(document->data, "eJw=")); /* sources are not kept */
    assert_int_equal(registration_restore(bytes_slice(document), &back, &why), OK);
    check_full(&back);
    assert_string_equal(back.worker->id, "worker_1");
    assert_string_equal(back.worker->version, "20261120.3");
    assert_true(back.worker->created_at == 1700000000123);
    bytes_unref(document);
    registration_finish(&all);
    registration_finish(&back);
}

static void deployment_of_a_version_is_restored_from_its_document(void **state)
{
    (void)state;
    struct failure why = { 0 };
    struct registration all = read_body(full), back = { 0 };
    snprintf(all.worker->version, sizeof(all.worker->version), "20261120.3");
    snprintf(all.worker->deployment, sizeof(all.worker->deployment), "deployment_1");
    snprintf(all.worker->short_code, sizeof(all.worker->short_code), "abcd1234");
    snprintf(all.worker->external_id, sizeof(all.worker->external_id), "ci \"7\"");
    memset(all.worker->archive_hash, 'f', sizeof(all.worker->archive_hash) - 1);

    struct bytes *document = registration_write(&all);
    assert_int_equal(registration_restore(bytes_slice(document), &back, &why), OK);
    check_full(&back);
    assert_string_equal(back.worker->deployment, "deployment_1");
    assert_string_equal(back.worker->short_code, "abcd1234");
    assert_string_equal(back.worker->external_id, "ci \"7\"");
    assert_string_equal(back.worker->archive_hash, all.worker->archive_hash);
    bytes_unref(document);
    registration_finish(&all);
    registration_finish(&back);
}

static void invalid_stored_ttl_is_ignored(void **state)
{
    (void)state;
    static const char document[] =
        "{\"id\":\"worker_1\",\"version\":\"20261120.3\",\"createdAt\":1700000000123,"
        "\"contentHash\":\"h\",\"tasks\":[{\"id\":\"a\",\"ttl\":\"whenever\"},"
        "{\"id\":\"b\",\"ttl\":\"1h\"},{\"id\":\"c\",\"ttl\":\"0s\"}]}";
    struct registration back = { 0 };
    struct failure why = { 0 };
    assert_int_equal(registration_restore(slice_of(document), &back, &why), OK);
    assert_text(back.worker->tasks[0].ttl, NULL);
    assert_text(back.worker->tasks[1].ttl, "1h");
    assert_text(back.worker->tasks[2].ttl, "0s");
    registration_finish(&back);
}

/* An older gateway accepted such a version: it must not keep a newer one from starting. */
static void limits_that_were_stored_by_other_rules_are_read(void **state)
{
    (void)state;
    static const char document[] =
        "{\"id\":\"worker_1\",\"version\":\"20261120.3\",\"createdAt\":1700000000123,"
        "\"contentHash\":\"h\",\"tasks\":[{\"id\":\"a\",\"ttl\":1.5,"
        "\"machine\":{\"preset\":\"large-1X\"},\"retry\":{\"maxAttempts\":2.5},"
        "\"queue\":{\"name\":\"q\",\"concurrencyLimit\":1e9}}],"
        "\"queues\":[{\"name\":\"q\",\"concurrencyLimit\":2.5}]}";
    struct registration back = { 0 };
    struct failure why = { 0 };
    assert_int_equal(registration_restore(slice_of(document), &back, &why), OK);
    assert_int_equal(back.worker->tasks[0].machine, -1);
    assert_int_equal(back.worker->tasks[0].max_attempts, 2);
    assert_int_equal(back.worker->queues[0].limit, 2); /* the last one counts */
    assert_int_equal(back.worker->queues[1].limit, 2);
    registration_finish(&back);
}

static void queue_may_be_declared_again_with_its_limit_or_without_one(void **state)
{
    (void)state;
    struct registration all =
        read_body("{\"metadata\":{\"contentHash\":\"h\",\"tasks\":["
                  "{\"id\":\"a\",\"queue\":{\"name\":\"q\",\"concurrencyLimit\":100000}},"
                  "{\"id\":\"b\",\"queue\":{\"name\":\"q\"}}],\"queues\":["
                  "{\"name\":\"q\",\"concurrencyLimit\":100000},{\"name\":\"q\"},"
                  "{\"name\":\"r\",\"concurrencyLimit\":0}]}}");
    assert_int_equal(all.worker->queue_count, 5);
    for (int i = 0; i < 4; i++)
        assert_int_equal(all.worker->queues[i].limit, 100000);
    registration_finish(&all);
}

static void each_declaration_of_a_queue_has_the_limits_of_all(void **state)
{
    (void)state;
    struct registration all = read_body(
        "{\"metadata\":{\"contentHash\":\"h\",\"tasks\":["
        "{\"id\":\"a\",\"queue\":{\"name\":\"q\"}},"
        "{\"id\":\"b\",\"queue\":{\"name\":\"q\",\"combinedConcurrencyLimit\":3}},"
        "{\"id\":\"c\",\"queue\":{\"combinedConcurrencyLimit\":0}}],"
        "\"queues\":[{\"name\":\"q\",\"concurrencyLimit\":2}]}}");
    for (int i = 0; i < 4; i++) {
        const struct queue_limit *queue = &all.worker->queues[i];
        bool is_own = slice_is(bytes_slice(queue->name), "task/c");
        assert_int_equal(queue->limit, is_own ? UINT32_MAX : 2);
        assert_int_equal(queue->total, is_own ? 0 : 3);
        assert_false(queue->is_named_only);
    }
    registration_finish(&all);
}

/* Without a member, the task refers to a queue that is declared elsewhere. */
static void null_of_a_task_declares_its_queue_without_a_limit(void **state)
{
    (void)state;
    struct registration all = read_body(
        "{\"metadata\":{\"contentHash\":\"h\",\"tasks\":["
        "{\"id\":\"a\",\"queue\":{\"name\":\"p\",\"concurrencyLimit\":null}},"
        "{\"id\":\"b\",\"queue\":{\"name\":\"q\",\"combinedConcurrencyLimit\":null}},"
        "{\"id\":\"c\",\"queue\":{\"name\":\"r\"}}],\"queues\":[]}}");
    assert_int_equal(all.worker->queue_count, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(all.worker->queues[i].limit, UINT32_MAX);
        assert_int_equal(all.worker->queues[i].total, UINT32_MAX);
        assert_true(all.worker->queues[i].is_named_only == (i == 2));
    }
    registration_finish(&all);
}

/* 0 seconds mean that there is no limit. */
static void max_duration_below_a_second_stays_a_limit(void **state)
{
    (void)state;
    struct registration all = read_body(TASK(",\"maxDuration\":0.5"));
    assert_int_equal(all.worker->tasks[0].max_duration_s, 1);
    registration_finish(&all);
}

static void damaged_document_is_rejected(void **state)
{
    (void)state;
    static const char *const damaged[] = {
        "{\"id\":\"worker_1\"",
        "{\"contentHash\":\"h\",\"tasks\":[]}",
        "{\"id\":\"worker_1\",\"version\":\"1.1\",\"contentHash\":\"h\",\"tasks\":[]}",
        ("{\"id\":\"w\",\"version\":\"1.1\",\"createdAt\":1,\"deployment\":{\"id\":5},"
         "\"tasks\":[]}"),
    };
    for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++) {
        struct registration back = { 0 };
        struct failure why = { 0 };
        assert_int_equal(registration_restore(slice_of(damaged[i]), &back, &why),
                         ERR_INVALID);
        assert_null(back.worker);
    }
}

static struct slice no_id(const struct queue_item *item)
{
    (void)item;
    return SLICE("");
}

static void queues_have_the_limits_of_the_newest_version(void **state)
{
    (void)state;
    static const struct {
        const char *queue;
        uint32_t limit;
    } cases[] = {
        { "mail", 7 },
        { "free", UINT32_MAX },
        { "task/limited", 1 },
        { "task/plain", UINT32_MAX },
    };
    struct fleet fleet = { .workers = workers_create() };
    struct environment env = { .fleet = &fleet };
    struct registration all = read_body(full);
    queues_init(&env.queues, 100, no_id);
    queues_set_limit(&env.queues, SLICE("task/plain"), 3); /* of an older version */

    registration_apply_stored(&all, &env);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(queues_figures(&env.queues, slice_of(cases[i].queue)).limit,
                         cases[i].limit);
    assert_string_equal(workers_current(env.fleet->workers)->content_hash, "hash-1");
    registration_finish(&all);
    workers_destroy(env.fleet->workers);
    queues_finish(&env.queues);
}

static struct worker *version_with(size_t number, size_t tasks)
{
    struct worker *worker = mem_new(struct worker);
    snprintf(worker->version, sizeof(worker->version), "20261120.%zu", number);
    worker->created_at = (int64_t)number;
    worker->tasks = mem_new_array(struct worker_task, tasks);
    for (; worker->task_count < tasks; worker->task_count++) {
        char id[32];
        snprintf(id, sizeof(id), worker->task_count ? "of-%zu-%zu" : "common", number,
                 worker->task_count);
        worker->tasks[worker->task_count].id = bytes_create(slice_of(id));
    }
    worker_sort(worker);
    return worker;
}

static void oldest_versions_are_evicted_when_there_are_too_many(void **state)
{
    (void)state;
    static const struct {
        size_t versions, tasks, kept;
    } cases[] = { { 1000, 2, 1000 }, { 1003, 2, 1000 }, { 30, 2000, 25 }, { 1, 60000, 1 } };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct workers *workers = workers_create();
        struct worker *gone;
        size_t oldest = 1, last = cases[i].versions;
        char id[32];
        for (size_t n = 1; n <= last; n++)
            workers_add(workers, version_with(n, cases[i].tasks));
        for (; (gone = workers_take_excess(workers, (struct sibling_workers){ 0 }));
             worker_destroy(gone))
            assert_int_equal(gone->created_at, oldest++);
        assert_int_equal(workers->count, cases[i].kept);

        const struct worker *current = workers_current(workers);
        assert_int_equal(current->created_at, last);
        assert_ptr_equal(workers_task(workers, SLICE("common")),
                         worker_task(current, SLICE("common")));
        for (size_t n = 1; n <= last; n++) {
            snprintf(id, sizeof(id), "of-%zu-1", n);
            assert_int_equal(!workers_task(workers, slice_of(id)), n < oldest);
        }
        workers_destroy(workers);
    }
}

static void too_many_tasks_or_queues_are_rejected(void **state)
{
    (void)state;
    static const char *const lists[] = { "tasks", "queues" };
    for (size_t list = 0; list < 2; list++) {
        for (int count = 1000; count <= 1001; count++) {
            struct registration all = { 0 };
            struct failure why = { 0 };
            char wanted[64];
            struct buf body = { 0 };
            buf_print(&body, "{\"metadata\":{\"contentHash\":\"h\",%s\"%s\":[",
                      list ? "\"tasks\":[]," : "", lists[list]);
            for (int i = 0; i < count; i++)
                buf_print(&body, "%s{\"id\":\"t%d\",\"name\":\"q%d\"}", i ? "," : "", i, i);
            buf_add_text(&body, "]}}");
            enum err err = registration_read(buf_slice(&body), &all, &why);
            assert_int_equal(err, count == 1000 ? OK : ERR_INVALID);
            snprintf(wanted, sizeof(wanted), "metadata.%s: too many (max 1000)",
                     lists[list]);
            assert_string_equal(why.text, err ? wanted : "");
            registration_finish(&all);
            buf_finish(&body);
        }
    }
}

static void documents_sort_in_the_order_of_the_versions(void **state)
{
    (void)state;
    static const char *const versions[] = { "20261120.1", "20261120.2", "20261120.10",
                                            "20261121.1" };
    struct bytes *before = NULL;
    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
        struct worker worker = { 0 };
        snprintf(worker.version, sizeof(worker.version), "%s", versions[i]);
        struct bytes *name = registration_document_name(&worker);
        if (before)
            assert_true(strcmp(before->data, name->data) < 0);
        bytes_unref(before);
        before = name;
    }
    bytes_unref(before);
}

struct wrong_body {
    const char *body, *text;
};

static void assert_wrong(const struct wrong_body *wrong)
{
    struct registration all = { 0 };
    struct failure why = { 0 };
    assert_int_equal(registration_read(slice_of(wrong->body), &all, &why), ERR_INVALID);
    assert_string_equal(why.text, wrong->text);
    assert_null(all.worker);
}

static void error_names_the_place_in_the_body(void **state)
{
    (void)state;
    static const struct wrong_body cases[] = {
        { "{}", "metadata: must be an object" },
        { "{\"metadata\":[]}", "metadata: must be an object" },
        { "{\"metadata\":{\"contentHash\":\"h\"}}", "metadata.tasks: must be an array" },
        { "{\"metadata\":{\"tasks\":[]}}",
          "metadata.contentHash: must be a string of 1 to 127 bytes" },
        { "{\"metadata\":{\"contentHash\":\"h\",\"tasks\":[1]}}",
          "metadata.tasks[0]: must be an object" },
        { "{\"metadata\":{\"contentHash\":\"h\",\"tasks\":[{\"id\":\"a\"},{}]}}",
          "metadata.tasks[1].id: must be a string of 1 to 256 bytes" },
        { "{\"metadata\":{\"contentHash\":\"h\",\"tasks\":[{\"id\":\"a\"},{\"id\":\"a\"}]}"
          "}",
          "metadata.tasks: two tasks have the id \"a\"; give each its own" },
        { "{\"metadata\":{\"contentHash\":\"h\",\"tasks\":[],\"queues\":{}}}",
          "metadata.queues: must be an array" },
        { "{\"metadata\":{\"contentHash\":\"h\",\"tasks\":[],\"queues\":[{}]}}",
          "metadata.queues[0].name: must be a string of 1 to 256 bytes" },
        { TASK(",\"queue\":3"), "metadata.tasks[0].queue: must be an object" },
        { TASK(",\"queue\":{\"concurrencyLimit\":-1}"),
          "metadata.tasks[0].queue.concurrencyLimit: must be a whole number from 0 to "
          "100000" },
        { TASK(",\"retry\":[]"), "metadata.tasks[0].retry: must be an object" },
        { TASK(",\"retry\":{\"factor\":\"2\"}"),
          "metadata.tasks[0].factor: must be a number of 0 or more" },
        { TASK(",\"queue\":{\"concurrencyLimit\":0.5}"),
          "metadata.tasks[0].queue.concurrencyLimit: must be a whole number from 0 to "
          "100000" },
        { TASK(",\"queue\":{\"concurrencyLimit\":100001}"),
          "metadata.tasks[0].queue.concurrencyLimit: must be a whole number from 0 to "
          "100000" },
        { QUEUES("{\"name\":\"q\",\"concurrencyLimit\":1e9}"),
          "metadata.queues[0].concurrencyLimit: must be a whole number from 0 to 100000" },
        { QUEUES("{\"name\":\"q\",\"concurrencyLimit\":\"5\"}"),
          "metadata.queues[0].concurrencyLimit: must be a whole number from 0 to 100000" },
        { QUEUES("{\"name\":\"q\",\"concurrencyLimit\":5},{\"name\":\"q\","
                 "\"concurrencyLimit\":1}"),
          "metadata.queues: the queue \"q\" is declared with the limits 5 and 1; give it "
          "one "
          "concurrencyLimit" },
        { TASK(",\"queue\":{\"name\":\"q\",\"concurrencyLimit\":1}},{\"id\":\"b\","
               "\"queue\":{\"name\":\"q\",\"concurrencyLimit\":9}"),
          "metadata.queues: the queue \"q\" is declared with the limits 1 and 9; give it "
          "one "
          "concurrencyLimit" },
        { TASK(",\"machine\":\"large-1x\""),
          "metadata.tasks[0].machine: must be an object" },
        { TASK(",\"machine\":{\"preset\":\"large-1X\"}"),
          "metadata.tasks[0].machine.preset: must be micro, small-1x, small-2x, medium-1x, "
          "medium-2x, large-1x or large-2x" },
        { TASK(",\"retry\":{\"outOfMemory\":{\"machine\":3}}"),
          "metadata.tasks[0].retry.outOfMemory.machine: must be micro, small-1x, small-2x, "
          "medium-1x, medium-2x, large-1x or large-2x" },
        { TASK(",\"retry\":{\"maxAttempts\":0.5}"),
          "metadata.tasks[0].retry.maxAttempts: must be a whole number of 0 or more" },
        { TASK(",\"ttl\":0.5"),
          "metadata.tasks[0].ttl: must be a whole number of 0 or more" },
        { TASK(",\"ttl\":true"),
          "metadata.tasks[0].ttl: must be a whole number of 0 or more" },
        { TASK(",\"ttl\":\"abc\""),
          "metadata.tasks[0].ttl: must be a duration like \"1h42m\" or a number of "
          "seconds" },
        { TASK(",\"maxDuration\":-5"),
          "metadata.tasks[0].maxDuration: must be a number of 0 or more" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_wrong(&cases[i]);
}

static void combined_limit_is_a_whole_number_and_the_same_in_each_declaration(void **state)
{
    (void)state;
    static const struct wrong_body cases[] = {
        { QUEUES("{\"name\":\"q\",\"combinedConcurrencyLimit\":1.5}"),
          "metadata.queues[0].combinedConcurrencyLimit: must be a whole number from 0 to "
          "100000" },
        { QUEUES("{\"name\":\"q\",\"combinedConcurrencyLimit\":5},{\"name\":\"q\","
                 "\"combinedConcurrencyLimit\":1}"),
          "metadata.queues: the queue \"q\" is declared with the limits 5 and 1; give it "
          "one combinedConcurrencyLimit" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_wrong(&cases[i]);
}

static int forget_names(void **state)
{
    (void)state;
    bytes_forget_shared();
    return 0;
}

/* ---- values cut out of a body ---- */

static void assert_slice_equal(struct slice slice, const char *expected)
{
    if (!slice_is(slice, expected))
        fail_msg("%.*s, not %s", SLICE_ARG(slice), expected);
}

static const char sieved[] =
    " { \"other\" : {\"metadata\":{\"tasks\":[{\"id\":\"no\"}]}} , "
    "\"metadata\":{\"tasks\":3},"
    "\"meta\\u0064ata\" : { \"sourceFiles\":[{\"id\":\"no\"},[\"}\\\"\"]], \"contentHash\" "
    ": \"h\" ,"
    "\"tasks\":[ {\"payloadSchema\":{\"id\":[1,{\"a\":\"]\"}]}, \"\\u0069d\":\"a\",\"x\":1,"
    "\"retry\" : {\"maxAttempts\": 4 , \"id\":2}} ,{\"a key that is longer than any that "
    "is used, "
    "by so much that nobody keeps all of it, however it may be spelled: id id id id id id "
    "id id\":"
    "\"\",\"id\":\"b\\\\\"}],\"queues\":null,\"tail\":[]},\"last\":[{}] }";

static void body_in_any_pieces_keeps_used_members(void **state)
{
    (void)state;
    for (size_t size = 1; size < sizeof(sieved); size++) {
        struct declaration declaration;
        struct failure why = { 0 };
        declaration_init(&declaration, 1000);
        for (struct slice body = slice_of(sieved); body.len;) {
            size_t len = size < body.len ? size : body.len;
            struct slice piece = { body.ptr, len };
            assert_int_equal(declaration_feed(&declaration, piece, &why), OK);
            body = slice_from(body, len);
        }
        assert_int_equal(declaration_end(&declaration, &why), OK);
        assert_slice_equal(declaration_part(&declaration, DECLARED_HASH), "\"h\"");
        assert_slice_equal(declaration_part(&declaration, DECLARED_TASKS),
                           "[{\"payloadSchema\":{\"id\":[1,{\"a\":\"]\"}]},\"id\":\"a\","
                           "\"retry\":{\"maxAttempts\":4,\"id\":2}},"
                           "{\"id\":\"b\\\\\"}]");
        assert_slice_equal(declaration_part(&declaration, DECLARED_QUEUES), "null");
        declaration_finish(&declaration);
    }
}

static void a_body_in_pieces_is_read_like_a_whole_one(void **state)
{
    (void)state;
    for (size_t size = 1; size < 100; size++) {
        struct registration all = { 0 };
        struct failure why = { 0 };
        assert_int_equal(read_in_pieces(slice_of(full), size, &all, &why), OK);
        check_full(&all);
        registration_finish(&all);
    }
}

/* A tree of all of it blocked the loop for half a second. */
static void unused_members_of_a_task_are_not_kept(void **state)
{
    (void)state;
    struct registration_reader reader;
    struct failure why = { 0 };
    registration_reader_init(&reader);
    assert_int_equal(
        registration_feed(&reader,
                          SLICE("{\"metadata\":{\"contentHash\":\"h\","
                                "\"tasks\":[{\"id\":\"a\",\"payloadSchema\":[0"),
                          &why),
        OK);
    for (int i = 0; i < 10000; i++)
        assert_int_equal(registration_feed(&reader, SLICE(",[[],{\"id\":\"\"}]"), &why),
                         OK);
    assert_int_equal(registration_feed(&reader, SLICE("]}]}}"), &why), OK);
    assert_int_equal(registration_end(&reader, &why), OK);
    assert_slice_equal(declaration_part(&reader.declaration, DECLARED_TASKS),
                       "[{\"id\":\"a\"}]");
    registration_reader_finish(&reader);
}

static void too_long_value_is_rejected_on_arrival(void **state)
{
    (void)state;
    static const struct {
        const char *begin, *text;
    } cases[] = {
        { "{\"metadata\":{\"contentHash\":\"",
          "metadata.contentHash: takes more than 16384 bytes" },
        { "{\"metadata\":{\"tasks\":\"", "metadata.tasks: takes more than 16384 bytes" },
        { "{\"metadata\":{\"tasks\":[{},{\"retry\":\"",
          "metadata.tasks[1]: takes more than 16384 bytes, schemas not counted" },
        { "{\"metadata\":{\"queues\":[\"",
          "metadata.queues[0]: takes more than 16384 bytes, schemas not counted" },
        { "{\"metadata\":{\"tasks\":[{\"payloadSchema\":\"", "" },
        { "{\"metadata\":{\"", "" },
        { "{\"", "" },
    };
    static char filling[16385];
    memset(filling, 'x', sizeof(filling));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct registration_reader reader;
        struct failure why = { 0 };
        struct slice more = { filling, sizeof(filling) };
        registration_reader_init(&reader);
        assert_int_equal(registration_feed(&reader, slice_of(cases[i].begin), &why), OK);
        assert_int_equal(registration_feed(&reader, more, &why),
                         cases[i].text[0] ? ERR_INVALID : OK);
        assert_string_equal(why.text, cases[i].text);
        registration_reader_finish(&reader);
    }
}

/* The caller decides how many turns it takes: each step reads one task or queue. */
static void one_task_or_queue_is_read_at_a_time(void **state)
{
    (void)state;
    struct registration_reader reader;
    struct registration all = { 0 };
    struct failure why = { 0 };
    unsigned steps = 0;
    registration_reader_init(&reader);
    assert_int_equal(registration_feed(&reader, slice_of(full), &why), OK);
    assert_int_equal(registration_end(&reader, &why), OK);
    for (; !all.worker; steps++) {
        size_t known = reader.worker->task_count + reader.worker->queue_count;
        assert_int_equal(registration_read_next(&reader, &all, &why), OK);
        struct worker *worker = all.worker ? all.worker : reader.worker;
        assert_in_range(worker->task_count + worker->queue_count - known, 0, 2);
    }
    assert_in_range(steps, 5, 7);
    registration_reader_finish(&reader);
    registration_finish(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(body_is_read_with_its_tasks),
        cmocka_unit_test(a_partial_retry_has_the_defaults_of_the_sdk),
        cmocka_unit_test(version_is_restored_from_its_document),
        cmocka_unit_test(deployment_of_a_version_is_restored_from_its_document),
        cmocka_unit_test(invalid_stored_ttl_is_ignored),
        cmocka_unit_test(limits_that_were_stored_by_other_rules_are_read),
        cmocka_unit_test(queue_may_be_declared_again_with_its_limit_or_without_one),
        cmocka_unit_test(each_declaration_of_a_queue_has_the_limits_of_all),
        cmocka_unit_test(null_of_a_task_declares_its_queue_without_a_limit),
        cmocka_unit_test(max_duration_below_a_second_stays_a_limit),
        cmocka_unit_test(damaged_document_is_rejected),
        cmocka_unit_test(queues_have_the_limits_of_the_newest_version),
        cmocka_unit_test(oldest_versions_are_evicted_when_there_are_too_many),
        cmocka_unit_test(too_many_tasks_or_queues_are_rejected),
        cmocka_unit_test(documents_sort_in_the_order_of_the_versions),
        cmocka_unit_test(error_names_the_place_in_the_body),
        cmocka_unit_test(combined_limit_is_a_whole_number_and_the_same_in_each_declaration),
        cmocka_unit_test(body_in_any_pieces_keeps_used_members),
        cmocka_unit_test(a_body_in_pieces_is_read_like_a_whole_one),
        cmocka_unit_test(unused_members_of_a_task_are_not_kept),
        cmocka_unit_test(too_long_value_is_rejected_on_arrival),
        cmocka_unit_test(one_task_or_queue_is_read_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, forget_names);
}
