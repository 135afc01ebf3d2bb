/* store_contract_group.c - what every driver must do: let commits of a group fail alone.
 *
 * A commit that fails leaves nothing, and does not affect the others. */
#include "base/mem.h"
#include "tests/support/contract/store_contract_cases.h"

/* Commits are begun at once, so that a driver can write them together. Each kind comes
 * in turn. */
enum { MEMBERS = 25, ROUNDS = 4, KINDS = 5 };
enum kind {
    IS_DONE,        /* a new run, with a free claim */
    IS_TAKEN,       /* a claim that another run owns */
    FINDS_IT_TAKEN, /* a free claim, then one that another run owns */
    COMES_TOO_LATE, /* a new document, then a version of a missing one */
    FAILS_AT_ONCE,  /* a version of a missing document */
};

struct member {
    struct store_commit req;
    enum kind kind;
    struct change changes[2];
    struct claim claims[2];
    enum store_status status;
};

static struct member *members;
static int answered;

static void on_member(struct store_commit *req, enum store_status status)
{
    container_of(req, struct member, req)->status = status;
    answered++;
}

/* Odd ones are brief. */
static struct claim claim_named(const char *key, int number, const char *owner)
{
    char name[32];
    snprintf(name, sizeof(name), "%s %d", key, number);
    struct claim claim = { .kind = CLAIM_IDEMPOTENCY,
                           .env = ENV_A,
                           .key = text_bytes(name),
                           .expires_at = FIRST_RUN_MS + 1,
                           .brief = number % 2 };
    snprintf(claim.owner, sizeof(claim.owner), "%s", owner);
    return claim;
}

static struct change document_named(int number)
{
    char name[32];
    snprintf(name, sizeof(name), "document %d", number);
    return new_document(ENV_A, DOC_BATCH, name, "{}");
}

static void begin(struct store_world *world, struct member *member, int number)
{
    struct store_commit *req = &member->req;
    *member = (struct member){ .kind = (enum kind)(number % KINDS) };
    *req = (struct store_commit){ .changes = member->changes,
                                  .claims = member->claims,
                                  .now_ms = FIRST_RUN_MS,
                                  .done = on_member };
    switch (member->kind) {
    case IS_DONE:
        member->changes[req->change_count++] = new_run(ENV_A, number, "task");
        member->claims[req->claim_count++] = claim_named("own", number, "run_own");
        break;
    case IS_TAKEN:
        member->claims[req->claim_count++] = claim_named("taken", 0, "run_failed");
        break;
    case FINDS_IT_TAKEN:
        member->changes[req->change_count++] = new_run(ENV_A, number, "task");
        member->claims[req->claim_count++] = claim_named("free", number, "run_failed");
        member->claims[req->claim_count++] = claim_named("taken", 0, "run_failed");
        break;
    case COMES_TOO_LATE:
        member->changes[req->change_count++] = document_named(number);
        member->changes[req->change_count] = document_named(number + 1000);
        member->changes[req->change_count++].expected = 7;
        break;
    case FAILS_AT_ONCE:
        member->changes[req->change_count] = document_named(number + 1000);
        member->changes[req->change_count++].expected = 7;
        break;
    }
    world->store->ops->commit(world->store, req);
}

static enum store_status take(struct store_world *world, struct claim claim)
{
    enum store_status status = commit(world, NULL, 0, &claim, 1);
    bytes_unref(claim.key);
    return status;
}

/* Returns true if the document does not exist: creates it, and drops it again. */
static bool is_free(struct store_world *world, int number)
{
    struct change change = document_named(number);
    bool is_new = commit(world, &change, 1, NULL, 0) == STORE_OK;
    bytes_clear(&change.document.body);
    change.expected = change.document.version;
    if (is_new)
        assert_int_equal(commit(world, &change, 1, NULL, 0), STORE_OK);
    change_finish(&change);
    return is_new;
}

static void check(struct store_world *world, struct member *member, int number,
                  uint64_t *seq)
{
    switch (member->kind) {
    case IS_DONE:
        assert_int_equal(member->status, STORE_OK);
        assert_true(member->changes[0].seq == *seq + 1);
        *seq = member->changes[0].seq;
        assert_int_equal(take(world, claim_named("own", number, "run_other")), STORE_TAKEN);
        break;
    case IS_TAKEN:
        assert_int_equal(member->status, STORE_TAKEN);
        assert_string_equal(member->claims[0].owner, "run_first");
        break;
    case FINDS_IT_TAKEN:
        assert_int_equal(member->status, STORE_TAKEN);
        assert_false(member->claims[0].taken);
        assert_true(member->claims[1].taken);
        assert_string_equal(member->claims[1].owner, "run_first");
        assert_int_equal(take(world, claim_named("free", number, "run_other")), STORE_OK);
        break;
    case COMES_TOO_LATE:
        assert_int_equal(member->status, STORE_LOST);
        assert_true(is_free(world, number));
        break;
    case FAILS_AT_ONCE: assert_int_equal(member->status, STORE_LOST); break;
    }
}

static void finish(struct member *member)
{
    for (size_t i = 0; i < member->req.change_count; i++)
        change_finish(&member->changes[i]);
    for (size_t i = 0; i < member->req.claim_count; i++)
        bytes_unref(member->claims[i].key);
}

static void who_fails_in_a_group_leaves_nothing_and_the_others_are_done(void **state)
{
    struct store_world *world = *state;
    members = mem_new_array(struct member, MEMBERS);
    assert_int_equal(take(world, claim_named("taken", 0, "run_first")), STORE_OK);
    for (int round = 0; round < ROUNDS; round++) {
        answered = 0;
        for (int i = 0; i < MEMBERS; i++)
            begin(world, &members[i], round * MEMBERS + i);
        while (answered < MEMBERS)
            world->turn(world);
        uint64_t seq = members[0].changes[0].seq - 1;
        for (int i = 0; i < MEMBERS; i++) {
            check(world, &members[i], round * MEMBERS + i, &seq);
            finish(&members[i]);
        }
        world->reopen(world);
    }
    assert_int_equal(take(world, claim_named("taken", 0, "run_other")), STORE_TAKEN);
    assert_int_equal(count_runs(world, ENV_A), ROUNDS * MEMBERS / KINDS);
    free(members);
}

/* ---- one run several times in a group ---- */

/* Changes of a run that the group makes, or has made. */
static struct change later_version(int n, uint32_t expected)
{
    struct change change = new_run(ENV_A, n, "task");
    change.expected = expected;
    change.run.number = (uint32_t)n;
    change.marks = MARK_WHOLE | MARK_METADATA | MARK_OUTPUT;
    change.run.tags = tags_of("later", NULL);
    change.run.metadata = text_bytes("{\"later\":1}");
    change.run.output = text_bytes("\"done\"");
    return change;
}

static struct change tagged_run(int n)
{
    struct change change = new_run(ENV_A, n, "task");
    change.run.tags = tags_of("early", "both");
    change.run.metadata = text_bytes("{}");
    return change;
}

/* One change, or two: the second has an environment then. */
static struct member *begin_changes(struct store_world *world, struct member *member,
                                    struct change first, struct change second)
{
    *member = (struct member){ .changes = { first, second } };
    member->req = (struct store_commit){ .changes = member->changes,
                                         .change_count = second.env ? 2 : 1,
                                         .now_ms = FIRST_RUN_MS,
                                         .done = on_member };
    world->store->ops->commit(world->store, &member->req);
    return member;
}

static void assert_run(struct store_world *world, int n, uint32_t version, int64_t number,
                       const char *tag)
{
    char id[ID_MAX];
    struct run run = { 0 };
    make_run_id(n, id);
    assert_int_equal(load_run(world, ENV_A, id, &run), STORE_OK);
    assert_int_equal(run.version, version);
    assert_int_equal(run.number, number);
    assert_true(slice_is(bytes_slice(run.tags->names[0]), tag));
    assert_int_equal(!run.output, version == 1);
    run_finish(&run);
}

static void a_run_is_made_and_changed_in_one_group(void **state)
{
    struct store_world *world = *state;
    const struct change none = { 0 };
    members = mem_new_array(struct member, MEMBERS);
    answered = 0;
    int count = 0;
    /* While the first is written, the others become a group. */
    begin_changes(world, &members[count++], document_named(1), none);
    begin_changes(world, &members[count++], tagged_run(1), none);
    begin_changes(world, &members[count++], tagged_run(2), none);
    begin_changes(world, &members[count++], later_version(1, 1), none);
    begin_changes(world, &members[count++], tagged_run(3), later_version(3, 1));
    begin_changes(world, &members[count++], tagged_run(4), none);
    begin_changes(world, &members[count++], later_version(4, 1), later_version(2, 1));
    struct member *early =
        begin_changes(world, &members[count++], later_version(5, 1), none);
    begin_changes(world, &members[count++], tagged_run(5), none);
    struct member *stale =
        begin_changes(world, &members[count++], later_version(5, 2), none);
    while (answered < count)
        world->turn(world);
    uint64_t seq = members[0].changes[0].seq;
    for (int i = 0; i < count; i++) {
        bool is_lost = &members[i] == early || &members[i] == stale;
        assert_int_equal(members[i].status, is_lost ? STORE_LOST : STORE_OK);
        for (size_t at = 0; at < members[i].req.change_count && i && !is_lost; at++)
            assert_true(members[i].changes[at].seq == ++seq);
        finish(&members[i]);
    }
    free(members);
    world->reopen(world);
    for (int n = 1; n <= 4; n++)
        assert_run(world, n, 2, n, "later");
    assert_run(world, 5, 1, 5, "early");
}

static void a_run_that_is_there_is_not_made_again_in_a_group(void **state)
{
    struct store_world *world = *state;
    const struct change none = { 0 };
    members = mem_new_array(struct member, MEMBERS);
    answered = 0;
    int count = 0;
    begin_changes(world, &members[count++], tagged_run(1), none);
    begin_changes(world, &members[count++], tagged_run(2), none);
    struct member *stored = begin_changes(world, &members[count++], tagged_run(1), none);
    struct member *twice =
        begin_changes(world, &members[count++], tagged_run(3), tagged_run(2));
    begin_changes(world, &members[count++], tagged_run(4), none);
    while (answered < count)
        world->turn(world);
    for (int i = 0; i < count; i++) {
        bool is_lost = &members[i] == stored || &members[i] == twice;
        assert_int_equal(members[i].status, is_lost ? STORE_LOST : STORE_OK);
        finish(&members[i]);
    }
    free(members);
    world->reopen(world);
    assert_run(world, 1, 1, 1, "early");
    assert_run(world, 2, 1, 2, "early");
    assert_run(world, 4, 1, 3, "early");
    assert_int_equal(count_runs(world, ENV_A), 3);
}

const struct CMUnitTest store_group_cases[] = {
    cmocka_unit_test(who_fails_in_a_group_leaves_nothing_and_the_others_are_done),
    cmocka_unit_test(a_run_is_made_and_changed_in_one_group),
    cmocka_unit_test(a_run_that_is_there_is_not_made_again_in_a_group),
};
const size_t store_group_case_count =
    sizeof(store_group_cases) / sizeof(store_group_cases[0]);
