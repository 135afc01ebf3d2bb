/* store_contract_stored.c - what every driver must do: count what an environment stores. */
#include <stdio.h>

#include "base/mem.h"
#include "tests/support/contract/store_contract_cases.h"

static int64_t stored(struct store_world *world, uint32_t env)
{
    return world->store->ops->position(world->store, env).stored;
}

/* ---- each kind of row ---- */

static struct claim claim_on(struct bytes *key, const char *owner, bool release)
{
    struct claim claim = {
        .kind = CLAIM_IDEMPOTENCY, .env = ENV_A, .key = key, .release = release
    };
    snprintf(claim.owner, sizeof(claim.owner), "%s", owner);
    return claim;
}

static void a_document_counts_with_its_name_until_it_is_removed(void **state)
{
    struct store_world *world = *state;
    struct change change = new_document(ENV_A, DOC_VARIABLE, "na\xc3\xafve", "12345");
    assert_int_equal(commit(world, &change, 1, NULL, 0), STORE_OK);
    assert_int_equal(stored(world, ENV_A), stored_document_bytes(6, 5));
    assert_int_equal(commit(world, &change, 1, NULL, 0), STORE_LOST);
    assert_int_equal(stored(world, ENV_A), stored_document_bytes(6, 5));
    change.expected = 1;
    bytes_unref(change.document.body);
    change.document.body = text_bytes("1");
    assert_int_equal(commit(world, &change, 1, NULL, 0), STORE_OK);
    assert_int_equal(stored(world, ENV_A), stored_document_bytes(6, 1));
    bytes_clear(&change.document.body);
    change.expected = 2;
    assert_int_equal(commit(world, &change, 1, NULL, 0), STORE_OK);
    assert_int_equal(stored(world, ENV_A), 0);
    change_finish(&change);
}

static void a_claim_counts_once_whoever_has_it(void **state)
{
    struct store_world *world = *state;
    struct bytes *key = text_bytes("key");
    struct claim claim = claim_on(key, "run_1", false);
    assert_int_equal(commit(world, NULL, 0, &claim, 1), STORE_OK);
    assert_int_equal(stored(world, ENV_A), stored_claim_bytes(3));
    claim = claim_on(key, "run_2", false);
    memcpy(claim.instead_of, "run_1", sizeof("run_1"));
    assert_int_equal(commit(world, NULL, 0, &claim, 1), STORE_OK);
    claim = claim_on(key, "run_1", false);
    assert_int_equal(commit(world, NULL, 0, &claim, 1), STORE_TAKEN);
    claim = claim_on(key, "run_1", true);
    assert_int_equal(commit(world, NULL, 0, &claim, 1), STORE_OK);
    assert_int_equal(stored(world, ENV_A), stored_claim_bytes(3));
    claim = claim_on(key, "run_2", true);
    assert_int_equal(commit(world, NULL, 0, &claim, 1), STORE_OK);
    assert_int_equal(stored(world, ENV_A), 0);
    bytes_unref(key);
}

static void a_run_counts_with_its_tags_and_texts(void **state)
{
    struct store_world *world = *state;
    struct change change = new_run(ENV_A, 1, "hello");
    int64_t task = stored_task_bytes(5);
    change.run.tags = tags_of("one", "a tag of more than ten");
    assert_int_equal(commit(world, &change, 1, NULL, 0), STORE_OK);
    assert_int_equal(stored(world, ENV_A), task + stored_run_bytes(&change.run));

    struct change next = next_version(&change, MARK_WHOLE | MARK_METADATA);
    tag_list_unref(next.run.tags);
    next.run.tags = tags_of("other", NULL);
    bytes_unref(next.run.metadata);
    next.run.metadata = text_bytes("{\"long\":\"er\"}");
    run_rare_edit(&next.run)->streams = text_bytes("[\"s\"]");
    assert_int_equal(commit(world, &next, 1, NULL, 0), STORE_OK);
    assert_int_equal(stored(world, ENV_A), task + stored_run_bytes(&next.run));
    change_finish(&next);
}

/* ---- all of it, in any order ---- */

enum { STEPS = 600, KEYS = 12 };

/* The state of each name: its version (0: nothing), and the owner of the claim. */
struct things {
    uint32_t runs[KEYS], documents[KEYS];
    bool claimed[KEYS];
    uint32_t random;
    int64_t told; /* reported by on_stored */
};

static void on_stored(void *owner, uint32_t env, int64_t bytes)
{
    assert_int_equal(env, ENV_A);
    ((struct things *)owner)->told += bytes;
}

static uint32_t draw(struct things *things, uint32_t below)
{
    things->random = things->random * 1664525 + 1013904223;
    return (things->random >> 8) % below;
}

static void put(struct things *things, struct bytes **place)
{
    char text[128];
    memset(text, 'x', sizeof(text));
    bytes_unref(*place);
    *place =
        draw(things, 4) ? bytes_create((struct slice){ text, draw(things, 128) }) : NULL;
}

static struct change any_run(struct things *things, uint32_t which)
{
    struct change change = new_run(ENV_A, (int)which, which % 2 ? "a" : "b");
    struct run *run = &change.run;
    struct run_rare *rare = run_rare_edit(run);
    put(things, &run->payload);
    put(things, &rare->payload_type);
    put(things, &run->metadata);
    put(things, &run->worker_request);
    put(things, &rare->waits);
    put(things, &run->output);
    if (draw(things, 2))
        run->tags = tags_of("one", draw(things, 2) ? "two" : "one");
    run->status = RUN_COMPLETED;
    change.expected = things->runs[which];
    change.marks |= draw(things, 2) ? MARK_OUTPUT : 0;
    return change;
}

static struct change any_document(struct things *things, uint32_t which)
{
    char name[16];
    snprintf(name, sizeof(name), "document_%u", which);
    struct change change = new_document(ENV_A, DOC_SCHEDULE, name, "");
    change.expected = things->documents[which];
    if (change.expected && !draw(things, 3))
        bytes_clear(&change.document.body);
    else
        bytes_set(&change.document.body, change.document.name);
    return change;
}

/* Commits a run, a document and a claim together; one in five fails because of a
 * document that has a different version. */
static void step(struct store_world *world, struct things *things)
{
    uint32_t run = draw(things, KEYS), document = draw(things, KEYS);
    uint32_t which = draw(things, KEYS), count = draw(things, 5) ? 2 : 3;
    struct change changes[3] = { any_run(things, run), any_document(things, document),
                                 new_document(ENV_A, DOC_QUEUE, "q", "x") };
    char text[16];
    snprintf(text, sizeof(text), "key %u", which);
    struct bytes *key = text_bytes(text);
    struct claim claim = claim_on(key, "run_1", draw(things, 2));
    changes[2].expected = 9;
    enum store_status status = commit(world, changes, count, &claim, 1);
    assert_int_equal(status, count == 2 ? STORE_OK : STORE_LOST);
    if (!status) {
        things->runs[run]++;
        things->documents[document] =
            changes[1].document.body ? things->documents[document] + 1 : 0;
        things->claimed[which] = !claim.release;
    }
    for (size_t i = 0; i < 3; i++)
        change_finish(&changes[i]);
    bytes_unref(key);
}

struct waiting_purge {
    struct store_purge req;
    bool answered;
};

static void on_purged(struct store_purge *req, enum store_status status)
{
    assert_int_equal(status, STORE_OK);
    container_of(req, struct waiting_purge, req)->answered = true;
}

struct store_purge purge_of(struct store_world *world, struct store_purge wish)
{
    struct waiting_purge waiting = { .req = wish };
    waiting.req.env = ENV_A;
    waiting.req.done = on_purged;
    world->store->ops->purge(world->store, &waiting.req);
    while (!waiting.answered)
        world->turn(world);
    return waiting.req;
}

static struct store_purge purge(struct store_world *world, bool whole, unsigned limit)
{
    struct store_purge wish = { .before = FIRST_RUN_MS + 1000,
                                .limit = limit,
                                .whole = whole };
    return purge_of(world, wish);
}

static void remove_all(struct store_world *world, struct things *things)
{
    struct store_purge wish = { .before = FIRST_RUN_MS + 1000, .limit = 100 };
    struct store_purge purged = purge_of(world, wish);
    assert_int_equal(purged.position.stored, stored(world, ENV_A));
    for (uint32_t i = 0; i < KEYS; i++) {
        char text[16];
        snprintf(text, sizeof(text), "key %u", i);
        struct bytes *key = text_bytes(text);
        struct claim claim = claim_on(key, "run_1", true);
        struct change change = any_document(things, i);
        bytes_clear(&change.document.body);
        assert_int_equal(commit(world, &change, things->documents[i] ? 1 : 0, &claim, 1),
                         STORE_OK);
        change_finish(&change);
        bytes_unref(key);
    }
}

/* After everything was removed, only the counters of both tasks remain. */
static void what_goes_takes_with_it_what_it_counted(void **state)
{
    struct store_world *world = *state;
    struct things things = { .random = 1 };
    for (int i = 0; i < STEPS; i++) {
        if (i % 200 == 199) {
            int64_t before = stored(world, ENV_A);
            world->reopen(world);
            assert_int_equal(stored(world, ENV_A), before);
        }
        world->store->on_stored = on_stored;
        world->store->stored_owner = &things;
        step(world, &things);
        assert_int_equal(things.told, stored(world, ENV_A));
    }
    assert_true(things.told > KEYS * STORED_RUN);
    remove_all(world, &things);
    assert_int_equal(stored(world, ENV_A), 2 * stored_task_bytes(1));
    assert_int_equal(things.told, 2 * stored_task_bytes(1));
}

/* Claims and counters too, and only then; nothing of another environment. */
static void of_an_environment_that_is_over_nothing_is_left(void **state)
{
    struct store_world *world = *state;
    struct things things = { .random = 2 };
    struct bytes *key = text_bytes("theirs");
    struct claim claim = claim_on(key, "run_1", false);
    claim.env = ENV_B;
    assert_int_equal(commit(world, NULL, 0, &claim, 1), STORE_OK);
    bytes_unref(key);
    int64_t theirs = stored(world, ENV_B);
    for (int i = 0; i < STEPS; i++)
        step(world, &things);
    for (uint32_t i = 0; i < KEYS; i++) {
        struct change change = any_document(&things, i);
        bytes_clear(&change.document.body);
        assert_int_equal(commit(world, &change, things.documents[i] ? 1 : 0, NULL, 0),
                         STORE_OK);
        change_finish(&change);
    }
    while (purge(world, false, 100).count)
        continue;
    assert_true(stored(world, ENV_A) > 2 * stored_task_bytes(1));
    while (purge(world, true, 2).more_documents)
        continue;
    world->reopen(world);
    assert_int_equal(stored(world, ENV_A), 0);
    assert_int_equal(stored(world, ENV_B), theirs);
    assert_true(theirs > 0);
}

const struct CMUnitTest store_stored_cases[] = {
    cmocka_unit_test(a_document_counts_with_its_name_until_it_is_removed),
    cmocka_unit_test(a_claim_counts_once_whoever_has_it),
    cmocka_unit_test(a_run_counts_with_its_tags_and_texts),
    cmocka_unit_test(what_goes_takes_with_it_what_it_counted),
    cmocka_unit_test(of_an_environment_that_is_over_nothing_is_left),
};
const size_t store_stored_case_count =
    sizeof(store_stored_cases) / sizeof(store_stored_cases[0]);
