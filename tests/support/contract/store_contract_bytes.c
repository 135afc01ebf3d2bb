/* store_contract_bytes.c - what every driver must do: accept any bytes in every string,
 * also zero bytes and invalid UTF-8, and distinguish strings that differ after a zero
 * byte. */
#include <stdio.h>

#include "base/mem.h"
#include "tests/support/contract/store_contract_cases.h"

/* Two strings that are the same up to a zero byte. */
static const struct slice one = { "a\0\xff\xc3(1", 6 }, other = { "a\0\xff\xc3(2", 6 };

static struct bytes *copy(struct slice bytes)
{
    return bytes_create(bytes);
}

static void assert_bytes(const struct bytes *bytes, struct slice expected)
{
    assert_non_null(bytes);
    assert_int_equal(bytes->len, expected.len);
    assert_memory_equal(bytes->data, expected.ptr, expected.len);
}

/* Every string of a run except its id. */
enum { FIELDS = 24 };

static void fields_of(struct run *run, struct bytes **fields[FIELDS])
{
    struct run_rare *rare = run_rare_edit(run);
    struct bytes **all[FIELDS] = { &run->task,
                                   &run->queue,
                                   &run->worker_version,
                                   &run->batch,
                                   &run->worker_request,
                                   &run->payload,
                                   &run->output,
                                   &run->metadata,
                                   &run->metadata_seed,
                                   &run->error,
                                   &rare->concurrency_key,
                                   &rare->ttl,
                                   &rare->region,
                                   &rare->parent,
                                   &rare->root,
                                   &rare->schedule,
                                   &rare->bulk,
                                   &rare->idempotency_key,
                                   &rare->idempotency_shown,
                                   &rare->waits,
                                   &rare->payload_type,
                                   &rare->output_type,
                                   &rare->streams,
                                   &rare->metadata_request };
    memcpy(fields, all, sizeof(all));
}

static struct change run_of_bytes(int n, struct slice bytes)
{
    struct change change = new_run(ENV_A, n, "a");
    struct bytes **fields[FIELDS];
    fields_of(&change.run, fields);
    for (int i = 0; i < FIELDS; i++) {
        bytes_unref(*fields[i]);
        *fields[i] = copy(bytes);
    }
    run_rare_edit(&change.run)->external_deployment = copy(bytes);
    change.run.tags = tag_list_create((struct slice[]){ bytes, SLICE("") }, 2);
    change.marks |= MARK_OUTPUT;
    return change;
}

static void assert_run_of(struct store_world *world, const char *id, struct slice bytes)
{
    struct run run;
    struct bytes **fields[FIELDS];
    assert_int_equal(load_run(world, ENV_A, id, &run), STORE_OK);
    fields_of(&run, fields);
    for (int i = 0; i < FIELDS; i++)
        assert_bytes(*fields[i], bytes);
    assert_bytes(run_rare(&run)->external_deployment, bytes);
    assert_int_equal(run.tags->count, 2);
    assert_bytes(run.tags->names[0], bytes);
    assert_int_equal(run.tags->names[1]->len, 0);
    run_finish(&run);
}

static void every_string_of_a_run_takes_any_bytes(void **state)
{
    struct store_world *world = *state;
    struct change change = run_of_bytes(1, one);
    assert_int_equal(commit(world, &change, 1, NULL, 0), STORE_OK);
    assert_run_of(world, change.run.id, one);
    int64_t counted = stored_run_bytes(&change.run) + stored_task_bytes(one.len);
    assert_int_equal(world->store->ops->position(world->store, ENV_A).stored, counted);

    unsigned all = MARK_WHOLE | MARK_PAYLOAD | MARK_METADATA | MARK_OUTPUT;
    struct change next = next_version(&change, all);
    assert_int_equal(commit(world, &next, 1, NULL, 0), STORE_OK);
    assert_run_of(world, next.run.id, one);
    assert_int_equal(world->store->ops->position(world->store, ENV_A).stored, counted);
    change_finish(&next);
}

static void filters_look_behind_a_zero_byte(void **state)
{
    struct store_world *world = *state;
    struct slice list[] = { one };
    const struct run_filter filters[] = {
        { .is_test = -1, .tasks = list, .task_count = 1 },
        { .is_test = -1, .tags = list, .tag_count = 1 },
        { .is_test = -1, .tags = list, .tag_count = 1, .every_tag = true },
        { .is_test = -1, .queues = list, .queue_count = 1 },
        { .is_test = -1, .versions = list, .version_count = 1 },
        { .is_test = -1, .regions = list, .region_count = 1 },
        { .is_test = -1, .batch = one },
        { .is_test = -1, .parent = one },
        { .is_test = -1, .schedule = one },
        { .is_test = -1, .bulk = one },
    };
    assert_int_equal(commit_one(world, run_of_bytes(1, one)), STORE_OK);
    assert_int_equal(commit_one(world, run_of_bytes(2, other)), STORE_OK);
    for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++) {
        struct waiting_list waiting = list_of(ENV_A);
        waiting.req.filter = filters[i];
        assert_list(world, &waiting, "1");
    }
}

static enum store_status claim_key(struct store_world *world, struct slice key,
                                   const char *owner)
{
    struct claim claim = { .kind = CLAIM_IDEMPOTENCY, .env = ENV_A, .key = copy(key) };
    snprintf(claim.owner, sizeof(claim.owner), "%s", owner);
    enum store_status status = commit(world, NULL, 0, &claim, 1);
    bytes_unref(claim.key);
    return status;
}

static void keys_of_claims_differ_behind_a_zero_byte(void **state)
{
    struct store_world *world = *state;
    assert_int_equal(claim_key(world, one, "run_1"), STORE_OK);
    assert_int_equal(claim_key(world, other, "run_2"), STORE_OK);
    assert_int_equal(claim_key(world, one, "run_2"), STORE_TAKEN);
    assert_int_equal(claim_key(world, other, "run_1"), STORE_TAKEN);
    assert_int_equal(claim_key(world, (struct slice){ one.ptr, 1 }, "run_3"), STORE_OK);
}

/* An idempotency key may have 2048 characters, of four bytes each. */
static void a_key_may_be_long(void **state)
{
    struct store_world *world = *state;
    struct bytes *key = bytes_create_empty(9000);
    uint32_t random = 1;
    for (uint32_t i = 0; i < key->len; i++) {
        random = random * 1664525 + 1013904223;
        key->data[i] = (char)(random >> 24);
    }
    assert_int_equal(claim_key(world, bytes_slice(key), "run_1"), STORE_OK);
    assert_int_equal(claim_key(world, bytes_slice(key), "run_2"), STORE_TAKEN);
    key->data[8999] ^= 1;
    assert_int_equal(claim_key(world, bytes_slice(key), "run_2"), STORE_OK);
    bytes_unref(key);
}

static struct change document_of(struct slice name, struct slice body)
{
    struct change change = new_document(ENV_A, DOC_QUEUE, "", "");
    bytes_unref(change.document.name);
    bytes_unref(change.document.body);
    change.document.name = copy(name);
    change.document.body = copy(body);
    return change;
}

static bool was_loaded;

static void on_loaded(struct store_read *read, enum store_status status)
{
    (void)read;
    assert_int_equal(status, STORE_OK);
    was_loaded = true;
}

static void names_and_bodies_of_documents_take_any_bytes(void **state)
{
    struct store_world *world = *state;
    assert_int_equal(commit_one(world, document_of(one, other)), STORE_OK);
    assert_int_equal(commit_one(world, document_of(other, one)), STORE_OK);
    assert_int_equal(commit_one(world, document_of(one, one)), STORE_LOST);
    for (int i = 0; i < 2; i++) {
        struct store_load req = { .read = { READ_LOAD, ENV_A, on_loaded },
                                  .is_document = true,
                                  .kind = DOC_QUEUE,
                                  .name = copy(i ? other : one) };
        was_loaded = false;
        world->store->ops->read(world->store, &req.read);
        while (!was_loaded)
            world->turn(world);
        assert_bytes(req.document.name, i ? other : one);
        assert_bytes(req.document.body, i ? one : other);
        document_finish(&req.document);
        bytes_unref(req.name);
    }
}

/* The second claim of a commit knows the first one; a second version is made of the
 * first. */
static void a_commit_sees_what_it_has_done_itself(void **state)
{
    struct store_world *world = *state;
    struct bytes *key = text_bytes("k"), *free_key = text_bytes("free");
    struct claim both[] = {
        { .env = ENV_A, .key = key, .owner = "run_1" },
        { .env = ENV_A, .key = key, .owner = "run_2" },
    };
    assert_int_equal(commit(world, NULL, 0, both, 2), STORE_TAKEN);
    assert_false(both[0].taken);
    assert_true(both[1].taken);
    assert_string_equal(both[1].owner, "run_1");
    struct claim hand_on[] = {
        { .env = ENV_A, .key = free_key, .owner = "run_1" },
        { .env = ENV_A, .key = free_key, .owner = "run_1", .release = true },
        { .env = ENV_A, .key = free_key, .owner = "run_2" },
    };
    assert_int_equal(commit(world, NULL, 0, hand_on, 3), STORE_OK);
    assert_int_equal(world->store->ops->position(world->store, ENV_A).stored,
                     stored_claim_bytes(4));

    struct change twice[] = { document_of(SLICE("d"), SLICE("1")),
                              document_of(SLICE("d"), SLICE("22")) };
    assert_int_equal(commit(world, twice, 2, NULL, 0), STORE_LOST);
    twice[1].expected = 1;
    assert_int_equal(commit(world, twice, 2, NULL, 0), STORE_OK);
    assert_int_equal(twice[1].document.version, 2);
    assert_int_equal(world->store->ops->position(world->store, ENV_A).seq, 2);
    assert_int_equal(world->store->ops->position(world->store, ENV_A).stored,
                     stored_claim_bytes(4) + stored_document_bytes(1, 2));
    change_finish(&twice[0]);
    change_finish(&twice[1]);
    bytes_unref(key);
    bytes_unref(free_key);
}

const struct CMUnitTest store_byte_cases[] = {
    cmocka_unit_test(every_string_of_a_run_takes_any_bytes),
    cmocka_unit_test(filters_look_behind_a_zero_byte),
    cmocka_unit_test(keys_of_claims_differ_behind_a_zero_byte),
    cmocka_unit_test(a_key_may_be_long),
    cmocka_unit_test(names_and_bodies_of_documents_take_any_bytes),
    cmocka_unit_test(a_commit_sees_what_it_has_done_itself),
};
const size_t store_byte_case_count = sizeof(store_byte_cases) / sizeof(store_byte_cases[0]);
