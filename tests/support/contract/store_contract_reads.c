/* store_contract_reads.c - what every driver must do: reads, retention, a restart. */
#include <stdio.h>

#include "base/mem.h"
#include "tests/support/contract/store_contract_cases.h"

/* ---- packets and fields ---- */

static void packets_come_back_byte_for_byte(void **state)
{
    struct store_world *world = *state;
    static const char *const bodies[] = {
        "12345678901234567890",
        "1e400",
        "0.1",
        "-0",
        "{\"a\":1,\"a\":2}",
        "\"\\u0000\"",
        "\"\xc3\xa4\xf0\x9f\x98\x80\"",
        " [ 1 ,\n2 ] ",
        "",
        "\xff\xfe not UTF-8",
    };
    for (int i = 0; i < (int)(sizeof(bodies) / sizeof(bodies[0])); i++) {
        struct change change = new_run(ENV_A, i, "hello");
        bytes_unref(change.run.payload);
        change.marks |= MARK_OUTPUT;
        change.run.payload = text_bytes(bodies[i]);
        run_rare_edit(&change.run)->payload_type = text_bytes("application/super+json");
        change.run.metadata = text_bytes(bodies[i]);
        change.run.metadata_seed = text_bytes(bodies[i]);
        change.run.output = text_bytes(bodies[i]);
        change.run.error = text_bytes(bodies[i]);
        struct run run;
        assert_int_equal(commit(world, &change, 1, NULL, 0), STORE_OK);
        assert_int_equal(load_run(world, ENV_A, change.run.id, &run), STORE_OK);
        const struct bytes *packets[] = { run.payload, run.metadata, run.metadata_seed,
                                          run.output, run.error };
        for (int p = 0; p < 5; p++) {
            assert_non_null(packets[p]);
            assert_int_equal(packets[p]->len, strlen(bodies[i]));
            assert_memory_equal(packets[p]->data, bodies[i], packets[p]->len);
        }
        assert_string_equal(run_rare(&run)->payload_type->data, "application/super+json");
        assert_null(run_rare(&run)->output_type);
        run_finish(&run);
        change_finish(&change);
    }
}

static void zero_bytes_and_large_packets_come_back(void **state)
{
    struct store_world *world = *state;
    struct change change = new_run(ENV_A, 1, "hello");
    bytes_unref(change.run.payload);
    change.run.payload = bytes_create_empty(3 << 20);
    for (uint32_t i = 0; i < change.run.payload->len; i++)
        change.run.payload->data[i] = (char)(i * 31 % 251);
    struct run run;
    assert_int_equal(commit(world, &change, 1, NULL, 0), STORE_OK);
    assert_int_equal(load_run(world, ENV_A, change.run.id, &run), STORE_OK);
    assert_true(slice_equal(bytes_slice(run.payload), bytes_slice(change.run.payload)));
    assert_null(run.metadata);
    assert_null(run.output);
    run_finish(&run);
    change_finish(&change);
}

static void only_marked_packets_are_written(void **state)
{
    struct store_world *world = *state;
    struct change change = new_run(ENV_A, 1, "hello");
    change.run.metadata = text_bytes("{\"m\":1}");
    change.run.tags = tags_of("a", NULL);
    assert_int_equal(commit(world, &change, 1, NULL, 0), STORE_OK);

    change = next_version(&change, MARK_OUTPUT);
    bytes_clear(&change.run.payload); /* memory may have dropped them */
    bytes_clear(&change.run.metadata);
    change.run.output = text_bytes("[1]");
    assert_int_equal(commit(world, &change, 1, NULL, 0), STORE_OK);

    struct run run;
    assert_int_equal(load_run(world, ENV_A, change.run.id, &run), STORE_OK);
    assert_string_equal(run.payload->data, "{\"n\":1}");
    assert_string_equal(run.metadata->data, "{\"m\":1}");
    assert_string_equal(run.output->data, "[1]");
    run_finish(&run);

    change = next_version(&change, MARK_OUTPUT | MARK_METADATA);
    bytes_clear(&change.run.output);
    assert_int_equal(commit(world, &change, 1, NULL, 0), STORE_OK);
    assert_int_equal(load_run(world, ENV_A, change.run.id, &run), STORE_OK);
    assert_null(run.output);
    assert_null(run.metadata);
    assert_string_equal(run.tags->names[0]->data, "a");
    run_finish(&run);
    change_finish(&change);
}

static void text_fields(struct run *run, struct bytes **fields[18])
{
    struct run_rare *rare = run_rare_edit(run);
    struct bytes **all[] = { &run->task,           &run->queue,
                             &rare->ttl,           &rare->concurrency_key,
                             &rare->region,        &run->worker_version,
                             &run->batch,          &rare->parent,
                             &rare->root,          &rare->schedule,
                             &rare->waits,         &rare->idempotency_key,
                             &run->worker_request, &rare->idempotency_shown,
                             &run->payload,        &rare->payload_type,
                             &rare->streams,       &rare->bulk };
    memcpy(fields, all, sizeof(all));
}

static void assert_same_fields(struct run *loaded, struct run *run)
{
    struct bytes **fields[18], **loaded_fields[18];
    text_fields(run, fields);
    text_fields(loaded, loaded_fields);
    for (int i = 0; i < 18; i++)
        assert_string_equal((*loaded_fields[i])->data, (*fields[i])->data);
    assert_int_equal(loaded->tags->count, 2);
    assert_string_equal(loaded->tags->names[1]->data, "b:1,");
    size_t values = offsetof(struct run, task); /* everything before the texts */
    assert_memory_equal(loaded, run, values);
    size_t from = offsetof(struct run_rare, priority_ms);
    values = offsetof(struct run_rare, concurrency_key) - from;
    assert_memory_equal(&loaded->rare->priority_ms, &run->rare->priority_ms, values);
}

static void every_field_of_a_run_comes_back(void **state)
{
    struct store_world *world = *state;
    struct change change = new_run(ENV_A, 1, "x");
    struct run *run = &change.run;
    struct bytes **fields[18];
    text_fields(run, fields);
    for (int i = 0; i < 18; i++) {
        char text[32];
        snprintf(text, sizeof(text), "text %d", i);
        bytes_unref(*fields[i]);
        *fields[i] = text_bytes(text);
    }
    run->tags = tags_of("b:1,", "b:1,"); /* duplicates stay */
    run->snapshot = 4000000000u;
    run->status = RUN_TIMED_OUT;
    run->execution = EXECUTION_PENDING_CANCEL; /* a start walks it */
    run->machine = MACHINE_LARGE_2X;
    run->is_test = run->resume_parent = run->key_from_user = run->by_token = true;
    run->attempt = 250, run->depth = 65535, run->max_attempts = 3;
    run->dequeue_failures = 5, run->batch_index = 999;
    run->max_duration_s = 4294967295u, run->usage_ms = 4294967294u;
    run->queued_at = 11, run->started_at = 12, run->attempt_at = 13, run->finished_at = 14;
    run->queue_position = -17, run->due_at = INT64_MAX;
    struct run_rare *rare = run_rare_edit(run);
    rare->priority_ms = -2147483647;
    rare->delayed_until = 15, rare->expired_at = 16;
    run->cost_cents = 0.1, run->base_cost_cents = 1e-300;
    assert_int_equal(commit(world, &change, 1, NULL, 0), STORE_OK);

    struct run loaded;
    assert_int_equal(load_run(world, ENV_A, run->id, &loaded), STORE_OK);
    assert_same_fields(&loaded, run);
    run_finish(&loaded);

    struct waiting_walk start = { .req = { .takes_its_time = true } };
    walk_unfinished(world, &start);
    assert_int_equal(start.req.count, 1);
    assert_same_fields(&start.req.runs[0], run);
    drop_runs(start.req.runs, 1);
    change_finish(&change);
}

/* ---- scans ---- */

struct waiting_scan {
    struct store_scan req;
    bool answered;
};

static void on_scanned(struct store_read *read, enum store_status status)
{
    assert_int_equal(status, STORE_OK);
    container_of(read, struct waiting_scan, req.read)->answered = true;
}

static void assert_scanned(struct store_world *world, uint32_t env, struct store_scan scan,
                           const char *expected, bool more)
{
    struct waiting_scan waiting = { .req = scan };
    char names[256] = "";
    size_t len = 0;
    waiting.req.read = (struct store_read){ READ_SCAN, env, on_scanned };
    world->store->ops->read(world->store, &waiting.req.read);
    while (!waiting.answered)
        world->turn(world);
    for (size_t i = 0; i < waiting.req.count; i++) {
        struct document *document = &waiting.req.documents[i];
        assert_int_equal(document->kind, scan.kind);
        len +=
            (size_t)snprintf(names + len, sizeof(names) - len, "%s%u:%s=%s", i ? " " : "",
                             document->env, document->name->data, document->body->data);
        document_finish(document);
    }
    free(waiting.req.documents);
    assert_string_equal(names, expected);
    assert_int_equal(waiting.req.more, more);
}

static void assert_scan(struct store_world *world, enum document_kind kind, uint32_t env,
                        const char *expected)
{
    assert_scanned(world, env, (struct store_scan){ .kind = kind }, expected, false);
}

static void put_claim(struct store_world *world, enum claim_kind kind, uint32_t env,
                      const char *key, int64_t expires_at)
{
    struct claim claim = { .kind = kind,
                           .env = env,
                           .key = text_bytes(key),
                           .owner = "rate",
                           .expires_at = expires_at };
    assert_int_equal(commit(world, NULL, 0, &claim, 1), STORE_OK);
    bytes_unref(claim.key);
}

static void a_scan_of_claims_brings_those_of_a_kind_with_their_newest_expiry(void **state)
{
    struct store_world *world = *state;
    const int64_t in_an_hour = FIRST_RUN_MS + 3600000;
    put_claim(world, CLAIM_RATE, ENV_B, "[\"queue\",\"\303\251\"]", in_an_hour);
    put_claim(world, CLAIM_RATE, ENV_A, "a", in_an_hour);
    put_claim(world, CLAIM_RATE, ENV_A, "a", in_an_hour + 1);
    put_claim(world, CLAIM_REQUEST, ENV_A, "b", in_an_hour);
    assert_int_equal(commit_one(world, new_document(ENV_A, DOC_QUEUE, "c", "1")), STORE_OK);
    world->reopen(world);
    struct waiting_scan waiting = { .req = { .of_claims = true,
                                             .claim_kind = CLAIM_RATE } };
    waiting.req.read = (struct store_read){ READ_SCAN, ENV_EVERY, on_scanned };
    world->store->ops->read(world->store, &waiting.req.read);
    while (!waiting.answered)
        world->turn(world);
    const struct document *claims = waiting.req.documents;
    assert_int_equal(waiting.req.count, 2);
    assert_int_equal(claims[0].env, ENV_A);
    assert_string_equal(claims[0].name->data, "a");
    assert_string_equal(claims[0].body->data, "rate");
    assert_int_equal(claims[0].stale_at, in_an_hour + 1);
    assert_int_equal(claims[1].env, ENV_B);
    assert_string_equal(claims[1].name->data, "[\"queue\",\"\303\251\"]");
    store_read_finish(&waiting.req.read);
}

static void a_scan_brings_the_documents_of_a_kind_by_name(void **state)
{
    struct store_world *world = *state;
    static const struct {
        uint32_t env;
        enum document_kind kind;
        const char *name, *body;
    } documents[] = {
        { ENV_B, DOC_QUEUE, "a", "1" },
        { ENV_A, DOC_QUEUE, "c", "2" },
        { ENV_A, DOC_QUEUE, "b", "3" },
        { ENV_A, DOC_KEY, "a", "4" },
        { ENV_INSTALLATION, DOC_QUEUE, "z", "5" },
    };
    for (size_t i = 0; i < sizeof(documents) / sizeof(documents[0]); i++)
        assert_int_equal(
            commit_one(world, new_document(documents[i].env, documents[i].kind,
                                           documents[i].name, documents[i].body)),
            STORE_OK);
    assert_scan(world, DOC_QUEUE, ENV_A, "7:b=3 7:c=2");
    assert_scan(world, DOC_QUEUE, ENV_INSTALLATION, "0:z=5");
    assert_scan(world, DOC_QUEUE, ENV_EVERY, "0:z=5 7:b=3 7:c=2 8:a=1");
    assert_scan(world, DOC_BATCH, ENV_EVERY, "");
}

static void a_scan_goes_page_by_page_in_both_directions(void **state)
{
    struct store_world *world = *state;
    static const char *const names[] = { "b", "d", "a", "c" };
    static const struct {
        struct store_scan scan;
        const char *expected;
        bool more;
    } cases[] = {
        { { .limit = 2 }, "7:a=1234 7:b=1234", true },
        { { .limit = 2, .from = "b" }, "7:c=1234 7:d=1234", false },
        { { .limit = 3, .downwards = true }, "7:d=1234 7:c=1234 7:b=1234", true },
        { { .limit = 3, .from = "b", .downwards = true }, "7:a=1234", false },
        { { .limit = 3, .from = "bb", .downwards = true }, "7:b=1234 7:a=1234", false },
        { { .limit = 9, .from = "d" }, "", false },
        { { .limit = 9, .byte_limit = 7 }, "7:a=1234 7:b=1234", true },
        { { .limit = 9, .byte_limit = 100 }, "7:a=1234 7:b=1234 7:c=1234 7:d=1234", false },
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_int_equal(
            commit_one(world, new_document(ENV_A, DOC_WAITPOINT, names[i], "1234")),
            STORE_OK);
        assert_int_equal(
            commit_one(world, new_document(ENV_B, DOC_WAITPOINT, names[i], "other")),
            STORE_OK);
    }
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct store_scan scan = cases[i].scan;
        scan.kind = DOC_WAITPOINT;
        assert_scanned(world, ENV_A, scan, cases[i].expected, cases[i].more);
    }
}

/* ---- retention ---- */

static struct store_purge purge(struct store_world *world, int64_t before, unsigned limit)
{
    struct store_purge wish = { .before = before,
                                .documents_before = before,
                                .limit = limit };
    return purge_of(world, wish);
}

static void retention_removes_final_runs_oldest_change_first(void **state)
{
    struct store_world *world = *state;
    struct run run;
    char id[ID_MAX];
    fill_runs(world); /* 1 3 5 7 9 are final */

    struct store_purge first = purge(world, FIRST_RUN_MS + 8, 2);
    assert_int_equal(first.count, 2);
    assert_int_equal(first.position.purged, 3);
    assert_int_equal(first.position.floor, FIRST_RUN_MS + 5); /* the next to go */
    struct store_purge second = purge(world, FIRST_RUN_MS + 8, 10);
    assert_int_equal(second.count, 2);
    assert_int_equal(second.position.purged, 7);
    assert_int_equal(second.position.floor, FIRST_RUN_MS + 8);
    assert_int_equal(second.position.seq, 9);
    assert_int_equal(purge(world, FIRST_RUN_MS + 4, 10).position.floor, FIRST_RUN_MS + 8);

    struct waiting_list rest = list_of(ENV_A);
    assert_list(world, &rest, "9 8 6 4 2");
    make_run_id(5, id);
    assert_int_equal(load_run(world, ENV_A, id, &run), STORE_MISSING);
    assert_int_equal(count_runs(world, ENV_B), 1);
    struct store_position position = world->store->ops->position(world->store, ENV_A);
    assert_int_equal(position.purged, 7);
    assert_int_equal(position.seq, 9);
    assert_int_equal(commit_one(world, new_run(ENV_A, 20, "a")), STORE_OK);
    assert_int_equal(world->store->ops->position(world->store, ENV_A).seq, 10);

    make_run_id(9, id); /* its trace is removed with it, that of another run stays */
    assert_int_equal(commit_one(world, new_document(ENV_A, DOC_TRACE, id, "t")), STORE_OK);
    assert_int_equal(commit_one(world, new_document(ENV_A, DOC_TRACE, "run_2", "t")),
                     STORE_OK);
    purge(world, FIRST_RUN_MS + 100, 10);
    assert_scan(world, DOC_TRACE, ENV_A, "7:run_2=t");
}

static void retention_removes_the_pieces_of_a_trace_with_its_run(void **state)
{
    struct store_world *world = *state;
    struct change run = new_run(ENV_A, 1, "a");
    static const char *const names[] = { "/000001", "/000002", "0", "-/000001" };
    char name[ID_MAX + 16];
    int64_t kept = stored_task_bytes(1);
    run.run.status = RUN_COMPLETED;
    assert_int_equal(commit_one(world, run), STORE_OK);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(name, sizeof(name), "%s%s", run.run.id, names[i]);
        assert_int_equal(commit_one(world, new_document(ENV_A, DOC_TRACE_PIECE, name, "1")),
                         STORE_OK);
        kept += i < 2 ? 0 : stored_document_bytes(strlen(name), 1);
    }
    assert_int_equal(purge(world, FIRST_RUN_MS + 100, 10).count, 1);
    assert_int_equal(world->store->ops->position(world->store, ENV_A).stored, kept);
    char rest[2 * sizeof(name) + 16];
    snprintf(rest, sizeof(rest), "7:%s-/000001=1 7:%s0=1", run.run.id, run.run.id);
    assert_scan(world, DOC_TRACE_PIECE, ENV_A, rest);
}

/* The n-th run, in its own batch, with a payload and an output in packets. */
static struct change run_with_packets(int n, enum run_status status)
{
    struct change change = new_run(ENV_A, n, "a");
    struct run_rare *rare = run_rare_edit(&change.run);
    char name[32];
    change.marks = MARK_WHOLE | MARK_PAYLOAD | MARK_METADATA | MARK_OUTPUT;
    change.run.status = (uint8_t)status;
    rare->payload_type = text_bytes("application/store");
    rare->output_type = text_bytes("application/store");
    snprintf(name, sizeof(name), "batch_%d", n);
    change.run.batch = text_bytes(name);
    bytes_unref(change.run.payload);
    snprintf(name, sizeof(name), "in/%d", n);
    change.run.payload = text_bytes(name);
    snprintf(name, sizeof(name), "out/%d", n);
    change.run.output = text_bytes(name);
    return change;
}

static void retention_removes_batches_and_packets_that_no_run_needs(void **state)
{
    struct store_world *world = *state;
    static const struct {
        enum document_kind kind;
        const char *name;
    } documents[] = {
        { DOC_BATCH, "batch_1" }, { DOC_BATCH, "batch_2" }, { DOC_BATCH, "batch_3" },
        { DOC_PACKET, "in/1" },   { DOC_PACKET, "in/2" },   { DOC_PACKET, "out/1" },
        { DOC_PACKET, "out/2" },  { DOC_PACKET, "out/3" },  { DOC_QUEUE, "batch_3" },
    };
    for (size_t i = 0; i < sizeof(documents) / sizeof(documents[0]); i++)
        assert_int_equal(commit_one(world, new_document(ENV_A, documents[i].kind,
                                                        documents[i].name, "{}")),
                         STORE_OK);
    assert_int_equal(commit_one(world, new_document(ENV_B, DOC_BATCH, "batch_3", "{}")),
                     STORE_OK);
    assert_int_equal(commit_one(world, run_with_packets(1, RUN_COMPLETED)), STORE_OK);
    assert_int_equal(commit_one(world, run_with_packets(2, RUN_QUEUED)), STORE_OK);

    purge(world, FIRST_RUN_MS, 10); /* packets written at that time stay */
    assert_scan(world, DOC_BATCH, ENV_A, "7:batch_1={} 7:batch_2={} 7:batch_3={}");
    assert_true(purge(world, FIRST_RUN_MS + 100, 2).more_documents);
    assert_false(purge(world, FIRST_RUN_MS + 100, 2).more_documents);
    assert_scan(world, DOC_BATCH, ENV_EVERY, "7:batch_2={} 8:batch_3={}");
    assert_scan(world, DOC_PACKET, ENV_EVERY, "7:in/2={} 7:out/2={}");
    assert_scan(world, DOC_QUEUE, ENV_A, "7:batch_3={}");
}

/* The n-th run, which waits, or waited, for the named waitpoint. */
static struct change run_with_waits(int n, enum run_status status, const char *id)
{
    struct change change = new_run(ENV_A, n, "a");
    char waits[128];
    snprintf(waits, sizeof(waits), "[{\"type\":\"MANUAL\",\"id\":\"%s\"}]", id);
    change.run.status = (uint8_t)status;
    run_rare_edit(&change.run)->waits = text_bytes(waits);
    return change;
}

static void retention_removes_what_is_stale_and_no_run_waits_for(void **state)
{
    struct store_world *world = *state;
    static const struct {
        uint32_t env;
        const char *name;
        int64_t stale_at;
    } tokens[] = {
        { ENV_A, "waitpoint_1", FIRST_RUN_MS + 10 },
        { ENV_A, "waitpoint_2", 1 },
        { ENV_A, "waitpoint_3", 1 },
        { ENV_A, "waitpoint_4", 1 },
        { ENV_A, "waitpoint_5", FIRST_RUN_MS + 1000 },
        { ENV_A, "waitpoint_6", 0 },
        { ENV_B, "waitpoint_7", 1 },
    };
    for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++) {
        struct change change =
            new_document(tokens[i].env, DOC_WAITPOINT, tokens[i].name, "{}");
        change.document.stale_at = tokens[i].stale_at;
        assert_int_equal(commit_one(world, change), STORE_OK);
    }
    assert_int_equal(commit_one(world, run_with_waits(1, RUN_WAITING, "waitpoint_2")),
                     STORE_OK);
    assert_int_equal(commit_one(world, run_with_waits(2, RUN_COMPLETED, "waitpoint_3")),
                     STORE_OK);
    struct change other = run_with_waits(3, RUN_WAITING, "x");
    bytes_set(&run_rare_edit(&other.run)->waits, NULL);
    assert_int_equal(commit_one(world, other), STORE_OK);

    purge(world, FIRST_RUN_MS, 10); /* packets written at that time stay */
    assert_scan(world, DOC_WAITPOINT, ENV_B, "8:waitpoint_7={}");
    assert_true(purge(world, FIRST_RUN_MS + 100, 2).more_documents);
    assert_false(purge(world, FIRST_RUN_MS + 100, 2).more_documents);
    assert_scan(world, DOC_WAITPOINT, ENV_EVERY,
                "7:waitpoint_2={} 7:waitpoint_5={} 7:waitpoint_6={} 8:waitpoint_7={}");

    struct change again = new_document(ENV_A, DOC_WAITPOINT, "waitpoint_6", "{}");
    again.expected = 1;
    again.document.stale_at = 1;
    assert_int_equal(commit_one(world, again), STORE_OK);
    purge(world, FIRST_RUN_MS + 100, 10);
    assert_scan(world, DOC_WAITPOINT, ENV_A, "7:waitpoint_2={} 7:waitpoint_5={}");
}

/* ---- environments, and a restart ---- */

static void an_environment_sees_only_its_own(void **state)
{
    struct store_world *world = *state;
    struct run run;
    struct change change = new_run(ENV_A, 1, "a");
    assert_int_equal(commit(world, &change, 1, NULL, 0), STORE_OK);
    assert_int_equal(load_run(world, ENV_B, change.run.id, &run), STORE_MISSING);
    assert_int_equal(load_run(world, ENV_A, "run_unknown", &run), STORE_MISSING);
    assert_int_equal(count_runs(world, ENV_B), 0);
    change_finish(&change);
}

static void after_a_new_start_everything_is_there(void **state)
{
    struct store_world *world = *state;
    char epoch[sizeof(world->store->epoch)], id[ID_MAX];
    fill_runs(world);
    assert_int_equal(commit_one(world, new_document(ENV_A, DOC_QUEUE, "q", "{}")),
                     STORE_OK);
    struct claim claim = { .kind = CLAIM_REQUEST, .env = ENV_A, .key = text_bytes("k") };
    snprintf(claim.owner, sizeof(claim.owner), "run_1");
    assert_int_equal(commit(world, NULL, 0, &claim, 1), STORE_OK);
    purge(world, FIRST_RUN_MS + 2, 10);
    memcpy(epoch, world->store->epoch, sizeof(epoch));
    assert_int_equal(strlen(epoch), 16);

    world->reopen(world);
    assert_string_equal(world->store->epoch, epoch);
    struct waiting_list all = list_of(ENV_A);
    assert_list(world, &all, "9 8 7 6 5 4 3 2");
    assert_scan(world, DOC_QUEUE, ENV_A, "7:q={}");
    struct store_position position = world->store->ops->position(world->store, ENV_A);
    assert_int_equal(position.seq, 10);
    assert_int_equal(position.purged, 1);
    assert_int_equal(position.floor, FIRST_RUN_MS + 2);

    snprintf(claim.owner, sizeof(claim.owner), "run_2");
    assert_int_equal(commit(world, NULL, 0, &claim, 1), STORE_TAKEN);
    assert_string_equal(claim.owner, "run_1");
    bytes_unref(claim.key);

    struct change change = new_run(ENV_A, 30, "a");
    assert_int_equal(commit(world, &change, 1, NULL, 0), STORE_OK);
    assert_int_equal(change.seq, 11);
    assert_int_equal(change.run.number, 4);
    change_finish(&change);
    make_run_id(4, id);
    struct run run;
    assert_int_equal(load_run(world, ENV_A, id, &run), STORE_OK);
    assert_int_equal(run.tags->count, 2);
    run_finish(&run);
}

const struct CMUnitTest store_read_cases[] = {
    cmocka_unit_test(packets_come_back_byte_for_byte),
    cmocka_unit_test(zero_bytes_and_large_packets_come_back),
    cmocka_unit_test(only_marked_packets_are_written),
    cmocka_unit_test(every_field_of_a_run_comes_back),
    cmocka_unit_test(a_scan_brings_the_documents_of_a_kind_by_name),
    cmocka_unit_test(a_scan_of_claims_brings_those_of_a_kind_with_their_newest_expiry),
    cmocka_unit_test(a_scan_goes_page_by_page_in_both_directions),
    cmocka_unit_test(retention_removes_final_runs_oldest_change_first),
    cmocka_unit_test(retention_removes_the_pieces_of_a_trace_with_its_run),
    cmocka_unit_test(retention_removes_batches_and_packets_that_no_run_needs),
    cmocka_unit_test(retention_removes_what_is_stale_and_no_run_waits_for),
    cmocka_unit_test(an_environment_sees_only_its_own),
    cmocka_unit_test(after_a_new_start_everything_is_there),
};
const size_t store_read_case_count = sizeof(store_read_cases) / sizeof(store_read_cases[0]);
