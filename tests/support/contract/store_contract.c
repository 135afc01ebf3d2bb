/* store_contract.c - what every driver must do: commits, claims, positions, packets. */
#include "tests/support/contract/store_contract.h"

#include <stdio.h>

#include "base/mem.h"
#include "tests/support/contract/store_contract_cases.h"

/* ---- verbs ---- */

struct bytes *text_bytes(const char *text)
{
    return bytes_create(slice_of(text));
}

void make_run_id(int n, char id[ID_MAX])
{
    memset(id, 0, ID_MAX);
    text_make_id("run", FIRST_RUN_MS + n, id);
    memset(id + strlen(id) - 12, 'a', 12); /* the random part, so that tests can name it */
}

struct change new_run(uint32_t env, int n, const char *task)
{
    struct change change = { .kind = CHANGE_RUN,
                             .env = env,
                             .marks = MARK_WHOLE | MARK_PAYLOAD | MARK_METADATA };
    char id[ID_MAX];
    make_run_id(n, id);
    memcpy(change.run.id, id, sizeof(change.run.id));
    change.run.status = RUN_QUEUED;
    change.run.execution = EXECUTION_QUEUED;
    change.run.machine = MACHINE_SMALL_1X;
    change.run.created_at = change.run.updated_at = FIRST_RUN_MS + n;
    change.run.task = text_bytes(task);
    change.run.queue = text_bytes("task/any");
    change.run.payload = text_bytes("{\"n\":1}");
    return change;
}

struct change next_version(struct change *before, unsigned marks)
{
    struct change change = *before;
    *before = (struct change){ 0 };
    change.expected = change.run.version;
    change.marks = marks;
    change.run.updated_at++;
    return change;
}

struct change new_document(uint32_t env, enum document_kind kind, const char *name,
                           const char *body)
{
    struct change change = { .kind = CHANGE_DOCUMENT, .env = env };
    change.document.kind = kind;
    change.document.env = env;
    change.document.name = text_bytes(name);
    change.document.body = text_bytes(body);
    return change;
}

struct waiting_commit {
    struct store_commit req;
    bool answered;
    enum store_status status;
};

static void on_committed(struct store_commit *req, enum store_status status)
{
    struct waiting_commit *waiting = container_of(req, struct waiting_commit, req);
    assert_false(waiting->answered);
    waiting->answered = true;
    waiting->status = status;
}

static void wait_for(struct store_world *world, const bool *answered)
{
    while (!*answered)
        world->turn(world);
}

static enum store_status commit_at(struct store_world *world, int64_t now_ms,
                                   struct change *changes, size_t count,
                                   struct claim *claims, size_t claim_count)
{
    struct waiting_commit waiting = { .req = { .changes = changes,
                                               .change_count = count,
                                               .claims = claims,
                                               .claim_count = claim_count,
                                               .now_ms = now_ms,
                                               .done = on_committed } };
    world->store->ops->commit(world->store, &waiting.req);
    assert_false(waiting.answered);
    wait_for(world, &waiting.answered);
    return waiting.status;
}

enum store_status commit(struct store_world *world, struct change *changes, size_t count,
                         struct claim *claims, size_t claim_count)
{
    return commit_at(world, FIRST_RUN_MS, changes, count, claims, claim_count);
}

enum store_status commit_one(struct store_world *world, struct change change)
{
    enum store_status status = commit(world, &change, 1, NULL, 0);
    change_finish(&change);
    return status;
}

struct waiting_load {
    struct store_load req;
    bool answered;
    enum store_status status;
};

static void on_loaded(struct store_read *read, enum store_status status)
{
    struct waiting_load *waiting = container_of(read, struct waiting_load, req.read);
    waiting->answered = true;
    waiting->status = status;
}

static enum store_status load(struct store_world *world, struct waiting_load *waiting)
{
    world->store->ops->read(world->store, &waiting->req.read);
    wait_for(world, &waiting->answered);
    bytes_unref(waiting->req.name);
    return waiting->status;
}

enum store_status load_run(struct store_world *world, uint32_t env, const char *id,
                           struct run *run)
{
    struct waiting_load waiting = { .req = { .read = { READ_LOAD, env, on_loaded },
                                             .name = text_bytes(id) } };
    enum store_status status = load(world, &waiting);
    if (!status)
        *run = waiting.req.run;
    return status;
}

static enum store_status load_document(struct store_world *world, uint32_t env,
                                       enum document_kind kind, const char *name,
                                       struct document *document)
{
    struct waiting_load waiting = { .req = { .read = { READ_LOAD, env, on_loaded },
                                             .is_document = true,
                                             .kind = kind,
                                             .name = text_bytes(name) } };
    enum store_status status = load(world, &waiting);
    if (!status)
        *document = waiting.req.document;
    return status;
}

static void assert_text(const struct bytes *bytes, const char *text)
{
    assert_non_null(bytes);
    assert_string_equal(bytes->data, text);
}

static struct claim claim_of(const char *key, const char *owner)
{
    struct claim claim = { .kind = CLAIM_IDEMPOTENCY,
                           .env = ENV_A,
                           .key = text_bytes(key) };
    snprintf(claim.owner, sizeof(claim.owner), "%s", owner);
    return claim;
}

static enum store_status commit_claim(struct store_world *world, struct claim *claim)
{
    enum store_status status = commit(world, NULL, 0, claim, 1);
    bytes_clear(&claim->key);
    return status;
}

/* ---- versions ---- */

static void a_run_has_version_1_and_then_counts_its_changes(void **state)
{
    struct store_world *world = *state;
    struct change change = new_run(ENV_A, 1, "hello");
    struct run run;

    assert_int_equal(commit(world, &change, 1, NULL, 0), STORE_OK);
    assert_int_equal(change.run.version, 1);
    for (uint32_t version = 2; version <= 4; version++) {
        change = next_version(&change, 0);
        change.run.attempt = (uint16_t)version;
        assert_int_equal(commit(world, &change, 1, NULL, 0), STORE_OK);
        assert_int_equal(change.run.version, version);
    }
    assert_int_equal(load_run(world, ENV_A, change.run.id, &run), STORE_OK);
    assert_int_equal(run.version, 4);
    assert_int_equal(run.attempt, 4);
    run_finish(&run);
    change_finish(&change);
}

static void a_run_is_looked_for_in_several_environments(void **state)
{
    struct store_world *world = *state;
    static const uint32_t others[] = { 5, ENV_B, 6 };
    struct change change = new_run(ENV_B, 1, "hello");
    assert_int_equal(commit(world, &change, 1, NULL, 0), STORE_OK);
    for (size_t count = 0; count <= 3; count++) {
        struct waiting_load waiting = { .req = { .read = { READ_LOAD, ENV_A, on_loaded },
                                                 .others = others,
                                                 .other_count = count,
                                                 .name = text_bytes(change.run.id) } };
        assert_int_equal(load(world, &waiting), count < 2 ? STORE_MISSING : STORE_OK);
        if (count < 2)
            continue;
        assert_int_equal(waiting.req.read.env, ENV_B);
        assert_string_equal(waiting.req.run.id, change.run.id);
        run_finish(&waiting.req.run);
    }
    change_finish(&change);
}

static void a_commit_on_another_version_is_lost_and_writes_nothing(void **state)
{
    struct store_world *world = *state;
    struct change change = new_run(ENV_A, 1, "hello");
    struct run run;
    assert_int_equal(commit(world, &change, 1, NULL, 0), STORE_OK);
    change = next_version(&change, 0);
    change.run.status = RUN_EXECUTING;

    static const uint32_t wrong[] = { 0, 2, 7 };
    for (size_t i = 0; i < 3; i++) {
        change.expected = wrong[i];
        assert_int_equal(commit(world, &change, 1, NULL, 0), STORE_LOST);
    }
    assert_int_equal(load_run(world, ENV_A, change.run.id, &run), STORE_OK);
    assert_int_equal(run.status, RUN_QUEUED);
    assert_int_equal(run.version, 1);
    assert_int_equal(world->store->ops->position(world->store, ENV_A).seq, 1);
    run_finish(&run);
    change_finish(&change);
}

static void a_commit_is_all_or_nothing(void **state)
{
    struct store_world *world = *state;
    assert_int_equal(commit_one(world, new_run(ENV_A, 2, "hello")), STORE_OK);

    struct change changes[] = { new_run(ENV_A, 1, "hello"),
                                new_document(ENV_A, DOC_BATCH, "batch_1", "{}"),
                                new_run(ENV_A, 2, "hello") /* exists */ };
    struct claim claim = claim_of("key", "run_1");
    assert_int_equal(commit(world, changes, 3, &claim, 1), STORE_LOST);

    struct run run;
    struct document document;
    assert_int_equal(load_run(world, ENV_A, changes[0].run.id, &run), STORE_MISSING);
    assert_int_equal(load_document(world, ENV_A, DOC_BATCH, "batch_1", &document),
                     STORE_MISSING);
    bytes_clear(&claim.key);
    claim = claim_of("key", "run_2");
    assert_int_equal(commit_claim(world, &claim), STORE_OK);
    for (int i = 0; i < 3; i++)
        change_finish(&changes[i]);
}

/* ---- positions ---- */

/* Readers of a run fetch the packet that its payload names. */
static void a_payload_names_a_packet_that_is_there(void **state)
{
    struct store_world *world = *state;
    struct change change = new_run(ENV_A, 1, "a");
    char id[ID_MAX];
    make_run_id(1, id);
    bytes_unref(change.run.payload);
    change.run.payload = text_bytes("p/1");
    change.marks |= MARK_PACKET;
    struct change again = change;
    memset(&again.run, 0, sizeof(again.run));
    run_copy(&again.run, &change.run);
    assert_int_equal(commit_one(world, new_document(ENV_B, DOC_PACKET, "p/1", "{}")),
                     STORE_OK);
    assert_int_equal(commit_one(world, new_document(ENV_A, DOC_BATCH, "p/1", "{}")),
                     STORE_OK);
    assert_int_equal(commit_one(world, change), STORE_MISSING);
    struct run run;
    assert_int_equal(load_run(world, ENV_A, id, &run), STORE_MISSING);
    assert_int_equal(commit_one(world, new_document(ENV_A, DOC_PACKET, "p/1", "{}")),
                     STORE_OK);
    assert_int_equal(commit_one(world, again), STORE_OK);
}

static void positions_are_contiguous_per_environment(void **state)
{
    struct store_world *world = *state;
    struct change changes[] = { new_run(ENV_A, 1, "hello"),
                                new_document(ENV_A, DOC_QUEUE, "q", "{}"),
                                new_run(ENV_B, 1, "hello"), new_run(ENV_A, 2, "hello") };
    assert_int_equal(commit(world, changes, 4, NULL, 0), STORE_OK);
    static const uint64_t expected[] = { 1, 2, 1, 3 };
    for (int i = 0; i < 4; i++)
        assert_int_equal(changes[i].seq, expected[i]);

    struct change again = new_run(ENV_A, 1, "hello");
    assert_int_equal(commit(world, &again, 1, NULL, 0), STORE_LOST);
    change_finish(&again);
    struct change next = new_run(ENV_A, 3, "hello");
    assert_int_equal(commit(world, &next, 1, NULL, 0), STORE_OK);
    assert_int_equal(next.seq, 4);
    assert_int_equal(world->store->ops->position(world->store, ENV_A).seq, 4);
    assert_int_equal(world->store->ops->position(world->store, ENV_B).seq, 1);
    assert_int_equal(world->store->ops->position(world->store, 99).seq, 0);
    for (int i = 0; i < 4; i++)
        change_finish(&changes[i]);
    change_finish(&next);
}

static void marks_say_which_positions_move(void **state)
{
    struct store_world *world = *state;
    static const struct {
        unsigned marks;
        uint64_t rev, whole, metadata, output;
    } steps[] = {
        { 0, 2, 1, 1, 0 },
        { MARK_METADATA, 3, 1, 3, 0 },
        { MARK_OUTPUT, 4, 1, 3, 4 },
        { MARK_WHOLE, 5, 5, 3, 4 },
        { MARK_KEY, 6, 5, 3, 4 },
        { MARK_WHOLE | MARK_PAYLOAD | MARK_METADATA | MARK_OUTPUT, 7, 7, 7, 7 },
    };
    struct change change = new_run(ENV_A, 1, "hello");
    assert_int_equal(commit(world, &change, 1, NULL, 0), STORE_OK);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        struct run run;
        change = next_version(&change, steps[i].marks);
        assert_int_equal(commit(world, &change, 1, NULL, 0), STORE_OK);
        assert_int_equal(load_run(world, ENV_A, change.run.id, &run), STORE_OK);
        assert_int_equal(run.rev, steps[i].rev);
        assert_int_equal(run.whole_rev, steps[i].whole);
        assert_int_equal(run.metadata_rev, steps[i].metadata);
        assert_int_equal(run.output_rev, steps[i].output);
        run_finish(&run);
    }
    change_finish(&change);
}

static void numbers_count_per_task_without_holes(void **state)
{
    struct store_world *world = *state;
    static const struct {
        const char *task;
        uint32_t env;
        int n;
        uint32_t number; /* 0: the run exists already */
    } steps[] = {
        { "a", ENV_A, 1, 1 }, { "b", ENV_A, 2, 1 }, { "a", ENV_A, 3, 2 },
        { "a", ENV_A, 3, 0 }, { "a", ENV_A, 4, 3 }, { "a", ENV_B, 1, 1 },
        { "", ENV_A, 5, 1 },
    };
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        struct change change = new_run(steps[i].env, steps[i].n, steps[i].task);
        enum store_status status = commit(world, &change, 1, NULL, 0);
        assert_int_equal(status, steps[i].number ? STORE_OK : STORE_LOST);
        if (!status)
            assert_int_equal(change.run.number, steps[i].number);
        change_finish(&change);
    }
}

/* ---- claims ---- */

static void a_claim_is_taken_once_and_names_its_owner(void **state)
{
    struct store_world *world = *state;
    struct claim first = claim_of("key", "run_1");
    assert_int_equal(commit_claim(world, &first), STORE_OK);
    struct claim again = claim_of("key", "run_1");
    assert_int_equal(commit_claim(world, &again), STORE_OK);
    assert_false(again.taken);

    struct claim other = claim_of("key", "run_2");
    assert_int_equal(commit_claim(world, &other), STORE_TAKEN);
    assert_true(other.taken);
    assert_string_equal(other.owner, "run_1");

    struct claim another_kind = claim_of("key", "run_2");
    another_kind.kind = CLAIM_REQUEST;
    assert_int_equal(commit_claim(world, &another_kind), STORE_OK);
    struct claim elsewhere = claim_of("key", "run_2");
    elsewhere.env = ENV_B;
    assert_int_equal(commit_claim(world, &elsewhere), STORE_OK);
}

static void every_taken_claim_is_reported(void **state)
{
    struct store_world *world = *state;
    struct claim first[] = { claim_of("a", "run_1"), claim_of("c", "run_3") };
    assert_int_equal(commit(world, NULL, 0, first, 2), STORE_OK);

    struct claim all[] = { claim_of("a", "run_4"), claim_of("b", "run_5"),
                           claim_of("c", "run_6") };
    struct change change = new_run(ENV_A, 1, "hello");
    assert_int_equal(commit(world, &change, 1, all, 3), STORE_TAKEN);
    assert_true(all[0].taken);
    assert_string_equal(all[0].owner, "run_1");
    assert_false(all[1].taken);
    assert_string_equal(all[1].owner, "run_5");
    assert_true(all[2].taken);
    assert_string_equal(all[2].owner, "run_3");
    assert_int_equal(count_runs(world, ENV_A), 0);

    struct claim still_free = claim_of("b", "run_7");
    assert_int_equal(commit_claim(world, &still_free), STORE_OK);
    change_finish(&change);
    for (int i = 0; i < 3; i++)
        bytes_unref(all[i].key);
    bytes_unref(first[0].key);
    bytes_unref(first[1].key);
}

static void an_expired_claim_is_nobodys(void **state)
{
    struct store_world *world = *state;
    struct claim live = claim_of("live", "run_1");
    live.expires_at = FIRST_RUN_MS + 1;
    assert_int_equal(commit_claim(world, &live), STORE_OK);
    live = claim_of("live", "run_2");
    assert_int_equal(commit_claim(world, &live), STORE_TAKEN);

    struct claim over = claim_of("over", "run_1");
    over.expires_at = FIRST_RUN_MS; /* expired from then on */
    assert_int_equal(commit_claim(world, &over), STORE_OK);
    over = claim_of("over", "run_2");
    assert_int_equal(commit_claim(world, &over), STORE_OK);
    over = claim_of("over", "run_3");
    assert_int_equal(commit_claim(world, &over), STORE_TAKEN);
    assert_string_equal(over.owner, "run_2");
}

static void a_claim_can_be_taken_over_from_the_named_owner_only(void **state)
{
    struct store_world *world = *state;
    struct claim claim = claim_of("key", "run_1");
    assert_int_equal(commit_claim(world, &claim), STORE_OK);

    claim = claim_of("key", "run_3");
    snprintf(claim.instead_of, sizeof(claim.instead_of), "run_2");
    assert_int_equal(commit_claim(world, &claim), STORE_TAKEN);
    assert_string_equal(claim.owner, "run_1");

    claim = claim_of("key", "run_3");
    snprintf(claim.instead_of, sizeof(claim.instead_of), "run_1");
    assert_int_equal(commit_claim(world, &claim), STORE_OK);

    claim = claim_of("key", "run_1");
    assert_int_equal(commit_claim(world, &claim), STORE_TAKEN);
    assert_string_equal(claim.owner, "run_3");
}

static void a_claim_is_released_by_its_owner_only(void **state)
{
    struct store_world *world = *state;
    struct claim claim = claim_of("key", "run_1");
    assert_int_equal(commit_claim(world, &claim), STORE_OK);

    claim = claim_of("key", "run_2");
    claim.release = true;
    assert_int_equal(commit_claim(world, &claim), STORE_OK);
    claim = claim_of("key", "run_2");
    assert_int_equal(commit_claim(world, &claim), STORE_TAKEN);

    claim = claim_of("key", "run_1");
    claim.release = true;
    assert_int_equal(commit_claim(world, &claim), STORE_OK);
    claim = claim_of("key", "run_2");
    assert_int_equal(commit_claim(world, &claim), STORE_OK);
}

/* ---- brief claims ---- */

static struct claim brief_of(const char *key, const char *owner)
{
    struct claim claim = claim_of(key, owner);
    claim.kind = CLAIM_REQUEST;
    claim.brief = true;
    claim.expires_at = FIRST_RUN_MS + 1;
    return claim;
}

static enum store_status take_brief(struct store_world *world, const char *key,
                                    const char *owner)
{
    struct claim claim = brief_of(key, owner);
    enum store_status status = commit_claim(world, &claim);
    assert_int_equal(claim.taken, status == STORE_TAKEN);
    return status;
}

static void a_brief_claim_is_taken_once_and_names_its_owner(void **state)
{
    struct store_world *world = *state;
    assert_int_equal(take_brief(world, "key", "request_1"), STORE_OK);
    assert_int_equal(take_brief(world, "key", "request_1"), STORE_OK);
    assert_int_equal(take_brief(world, "other", "request_2"), STORE_OK);

    struct claim other = brief_of("key", "request_2");
    assert_int_equal(commit_claim(world, &other), STORE_TAKEN);
    assert_true(other.taken);
    assert_string_equal(other.owner, "request_1");
    struct claim elsewhere = brief_of("key", "request_2");
    elsewhere.env = ENV_B;
    assert_int_equal(commit_claim(world, &elsewhere), STORE_OK);
}

static void brief_claims_survive_a_restart(void **state)
{
    struct store_world *world = *state;
    for (int i = 0; i < 100; i++) {
        char key[16];
        snprintf(key, sizeof(key), "key %d", i);
        assert_int_equal(take_brief(world, key, "request_1"), STORE_OK);
    }
    world->reopen(world);
    assert_int_equal(take_brief(world, "key 100", "request_2"), STORE_OK);
    for (int i = 0; i < 100; i++) {
        char key[16];
        snprintf(key, sizeof(key), "key %d", i);
        assert_int_equal(take_brief(world, key, "request_2"), STORE_TAKEN);
    }
}

static void an_expired_brief_claim_can_be_taken(void **state)
{
    struct store_world *world = *state;
    /* expired claims may be removed by the first commit, but not before a second later */
    assert_int_equal(take_brief(world, "first", "request_1"), STORE_OK);
    struct claim over = brief_of("over", "request_1");
    over.expires_at = FIRST_RUN_MS; /* expired from then on */
    assert_int_equal(commit_claim(world, &over), STORE_OK);
    assert_int_equal(take_brief(world, "over", "request_2"), STORE_OK);
    over = brief_of("over", "request_3");
    assert_int_equal(commit_claim(world, &over), STORE_TAKEN);
    assert_string_equal(over.owner, "request_2");
}

static void two_brief_claims_of_one_commit_on_a_key_exclude_each_other(void **state)
{
    struct store_world *world = *state;
    struct claim claims[] = { brief_of("a", "request_1"), brief_of("b", "request_2"),
                              brief_of("a", "request_3") };
    assert_int_equal(commit(world, NULL, 0, claims, 3), STORE_TAKEN);
    assert_false(claims[0].taken || claims[1].taken);
    assert_true(claims[2].taken);
    assert_string_equal(claims[2].owner, "request_1");
    for (int i = 0; i < 3; i++)
        bytes_unref(claims[i].key);
    /* nothing of the commit was stored */
    assert_int_equal(take_brief(world, "a", "request_4"), STORE_OK);
    assert_int_equal(take_brief(world, "b", "request_5"), STORE_OK);
}

/* A failed commit after a successful one: both may be in one transaction. */
static void brief_claims_of_a_failed_commit_are_free(void **state)
{
    struct store_world *world = *state;
    struct change change = new_run(ENV_A, 1, "hello");
    assert_int_equal(commit(world, &change, 1, NULL, 0), STORE_OK);
    for (int i = 0; i < 3; i++) {
        struct change old = new_run(ENV_A, 1, "hello");
        struct claim claim = brief_of("key", "request_1");
        assert_int_equal(commit(world, &old, 1, &claim, 1), STORE_LOST);
        bytes_unref(claim.key);
        change_finish(&old);
    }
    assert_int_equal(take_brief(world, "key", "request_2"), STORE_OK);
    assert_int_equal(take_brief(world, "key", "request_3"), STORE_TAKEN);
    change_finish(&change);
}

/* Takes ownership of the claim's key. */
static void take_until(struct store_world *world, int64_t now_ms, struct claim claim,
                       int64_t expires_at)
{
    claim.expires_at = expires_at;
    assert_int_equal(commit_at(world, now_ms, NULL, 0, &claim, 1), STORE_OK);
    bytes_unref(claim.key);
}

/* Some commits remove all expired claims. Those of the last one, and of the time before, may
 * be left. */
static void expired_claims_are_removed_after_the_clock_was_set_back(void **state)
{
    enum { HOUR = 3600 * 1000, DAY = 24 * HOUR }; /* ms */
    struct store_world *world = *state;
    int64_t ahead = FIRST_RUN_MS + DAY, now = FIRST_RUN_MS;
    take_until(world, ahead, brief_of("ahead", "request_1"), ahead + HOUR);
    take_until(world, now, claim_of("key", "run_1"), now + 1);
    for (int i = 0; i < 600; i++) {
        char key[16];
        snprintf(key, sizeof(key), "key %d", i);
        take_until(world, now, brief_of(key, "request_1"), now + 1);
    }
    int64_t stored = world->store->ops->position(world->store, ENV_A).stored;
    for (int i = 0; i < 10; i++) {
        now += 2000; /* claims are removed once a second */
        take_until(world, now, claim_of("again", "run_1"), now + 1);
    }
    int64_t left = world->store->ops->position(world->store, ENV_A).stored;
    assert_true(stored > 600 * stored_claim_bytes(5));
    assert_in_range(left, stored_claim_bytes(5), 2 * stored_claim_bytes(5));
}

/* ---- documents ---- */

static void documents_have_versions_and_can_be_deleted(void **state)
{
    struct store_world *world = *state;
    struct document document;
    struct change change = new_document(ENV_A, DOC_QUEUE, "q", "one");
    assert_int_equal(commit(world, &change, 1, NULL, 0), STORE_OK);
    assert_int_equal(change.document.version, 1);
    assert_int_equal(commit(world, &change, 1, NULL, 0), STORE_LOST);

    change.expected = 1;
    bytes_unref(change.document.body);
    change.document.body = text_bytes("two");
    assert_int_equal(commit(world, &change, 1, NULL, 0), STORE_OK);
    assert_int_equal(commit(world, &change, 1, NULL, 0), STORE_LOST);
    assert_int_equal(load_document(world, ENV_A, DOC_QUEUE, "q", &document), STORE_OK);
    assert_int_equal(document.version, 2);
    assert_int_equal(document.kind, DOC_QUEUE);
    assert_int_equal(document.env, ENV_A);
    assert_text(document.name, "q");
    assert_text(document.body, "two");
    document_finish(&document);
    assert_int_equal(load_document(world, ENV_A, DOC_KEY, "q", &document), STORE_MISSING);
    assert_int_equal(load_document(world, ENV_B, DOC_QUEUE, "q", &document), STORE_MISSING);

    bytes_clear(&change.document.body);
    assert_int_equal(commit(world, &change, 1, NULL, 0), STORE_LOST);
    change.expected = 2;
    assert_int_equal(commit(world, &change, 1, NULL, 0), STORE_OK);
    assert_int_equal(load_document(world, ENV_A, DOC_QUEUE, "q", &document), STORE_MISSING);
    change_finish(&change);
    assert_int_equal(commit_one(world, new_document(ENV_A, DOC_QUEUE, "q", "")), STORE_OK);
    assert_int_equal(load_document(world, ENV_A, DOC_QUEUE, "q", &document), STORE_OK);
    assert_text(document.body, "");
    document_finish(&document);
}

/* ---- running them ---- */

static const struct CMUnitTest commit_cases[] = {
    cmocka_unit_test(a_run_has_version_1_and_then_counts_its_changes),
    cmocka_unit_test(a_run_is_looked_for_in_several_environments),
    cmocka_unit_test(a_commit_on_another_version_is_lost_and_writes_nothing),
    cmocka_unit_test(a_commit_is_all_or_nothing),
    cmocka_unit_test(positions_are_contiguous_per_environment),
    cmocka_unit_test(a_payload_names_a_packet_that_is_there),
    cmocka_unit_test(marks_say_which_positions_move),
    cmocka_unit_test(numbers_count_per_task_without_holes),
    cmocka_unit_test(a_claim_is_taken_once_and_names_its_owner),
    cmocka_unit_test(every_taken_claim_is_reported),
    cmocka_unit_test(an_expired_claim_is_nobodys),
    cmocka_unit_test(a_claim_can_be_taken_over_from_the_named_owner_only),
    cmocka_unit_test(a_claim_is_released_by_its_owner_only),
    cmocka_unit_test(a_brief_claim_is_taken_once_and_names_its_owner),
    cmocka_unit_test(brief_claims_survive_a_restart),
    cmocka_unit_test(an_expired_brief_claim_can_be_taken),
    cmocka_unit_test(two_brief_claims_of_one_commit_on_a_key_exclude_each_other),
    cmocka_unit_test(brief_claims_of_a_failed_commit_are_free),
    cmocka_unit_test(expired_claims_are_removed_after_the_clock_was_set_back),
    cmocka_unit_test(documents_have_versions_and_can_be_deleted),
};

enum { COMMIT_CASES = sizeof(commit_cases) / sizeof(commit_cases[0]), CASES_MAX = 64 };

int store_contract_run(const char *driver, CMFixtureFunction setup,
                       CMFixtureFunction teardown)
{
    struct CMUnitTest cases[CASES_MAX];
    size_t count = 0;
    for (; count < COMMIT_CASES; count++)
        cases[count] = commit_cases[count];
    for (size_t i = 0; i < store_list_case_count; i++)
        cases[count++] = store_list_cases[i];
    for (size_t i = 0; i < store_read_case_count; i++)
        cases[count++] = store_read_cases[i];
    for (size_t i = 0; i < store_walk_case_count; i++)
        cases[count++] = store_walk_cases[i];
    for (size_t i = 0; i < store_piece_case_count; i++)
        cases[count++] = store_piece_cases[i];
    for (size_t i = 0; i < store_stored_case_count; i++)
        cases[count++] = store_stored_cases[i];
    for (size_t i = 0; i < store_report_case_count; i++)
        cases[count++] = store_report_cases[i];
    for (size_t i = 0; i < store_group_case_count; i++)
        cases[count++] = store_group_cases[i];
    for (size_t i = 0; i < store_byte_case_count; i++)
        cases[count++] = store_byte_cases[i];
    for (size_t i = 0; i < count; i++) {
        cases[i].setup_func = setup;
        cases[i].teardown_func = teardown;
    }
    return _cmocka_run_group_tests(driver, cases, count, NULL, NULL);
}
