/* The accounts of a leader take effect together, newest versions only, and end as they ended
 * there. */
#include "tests/support/world/unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "accounts/followed_accounts.h"
#include "base/json/json_tree.h"
#include "base/mem.h"

enum { CHANGES_MAX = 16, ENVIRONMENTS = 4, MANY = 100 };

#define KEY_HEX "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define OTHER_KEY_HEX "1f1e1d1c1b1a191817161514131211100f0e0d0c0b0a09080706050403020100"
#define NOW INT64_C(1700000000000)

struct scene {
    struct loop *loop;
    struct vault *vault;
    struct accounts *accounts;
    struct account_writer *writer;
    struct followed_accounts *followed;
    struct bootstrap bootstrap;
    struct change changes[CHANGES_MAX]; /* the documents of the leader's first start */
    size_t count;
    unsigned reports;
    char reported[ID_MAX]; /* the last one */
};

static void on_environment(void *owner, struct account *account)
{
    struct scene *scene = owner;
    scene->reports++;
    snprintf(scene->reported, sizeof(scene->reported), "%s", account->id);
}

static int open_scene(void **state)
{
    struct scene *scene = *state = mem_new(struct scene);
    struct failure why;
    scene->loop = loop_create(NULL);
    assert_int_equal(vault_open(slice_of(KEY_HEX), NULL, &scene->vault, &why), OK);
    scene->accounts = accounts_create(scene->vault);
    scene->writer = account_writer_create(scene->loop, NULL, scene->accounts);
    account_writer_on_environment(scene->writer, on_environment, scene);
    scene->followed = followed_accounts_create(scene->loop, scene->accounts, scene->writer);
    assert_int_equal(bootstrap_prepare(&scene->bootstrap, &why), OK);
    scene->count =
        accounts_bootstrap(scene->accounts, &scene->bootstrap, NOW, scene->changes);
    for (size_t i = 0; i < scene->count; i++)
        scene->changes[i].document.version = 1;
    return 0;
}

static int close_scene(void **state)
{
    struct scene *scene = *state;
    for (size_t i = 0; i < scene->count; i++)
        change_finish(&scene->changes[i]);
    followed_accounts_destroy(scene->followed);
    account_writer_destroy(scene->writer);
    accounts_destroy(scene->accounts);
    vault_close(scene->vault);
    loop_destroy(scene->loop);
    free(scene);
    return 0;
}

static void settle(struct scene *scene)
{
    struct failure why = { 0 };
    bool more = true;
    while (more)
        assert_int_equal(followed_accounts_settle(scene->followed, &more, &why), OK);
}

/* Reads the documents of the first start, but for those of a kind; DOC_KINDS: all of them. */
static void read_without(struct scene *scene, enum document_kind kind)
{
    followed_accounts_begin_read(scene->followed);
    for (size_t i = 0; i < scene->count; i++)
        if (scene->changes[i].document.kind != kind)
            followed_accounts_read(scene->followed, &scene->changes[i].document);
    followed_accounts_end_read(scene->followed);
}

static void read_all(struct scene *scene)
{
    read_without(scene, DOC_KINDS);
    settle(scene);
}

static void take(struct scene *scene, enum document_kind kind, const char *name,
                 const char *body, uint32_t version)
{
    struct document document = { .kind = kind,
                                 .name = bytes_create(slice_of(name)),
                                 .body = body ? bytes_create(slice_of(body)) : NULL,
                                 .version = version };
    followed_accounts_take(scene->followed, &document);
    bytes_unref(document.name);
    bytes_unref(document.body);
}

static struct account *preview(struct scene *scene)
{
    struct project *project =
        accounts_project(scene->accounts, slice_of(scene->bootstrap.project_ref));
    return accounts_environment(scene->accounts, project, ENVIRONMENT_PREVIEW);
}

/* archived: its member "archivedAt", with a comma before it. */
static void take_branch(struct scene *scene, unsigned number, const char *branch,
                        const char *archived, uint32_t version)
{
    char id[32], body[400];
    const struct account *parent = preview(scene);
    snprintf(id, sizeof(id), "env_%u", number);
    snprintf(body, sizeof(body),
             "{\"number\":%u,\"id\":\"%s\",\"type\":\"preview\",\"project\":\"%s\","
             "\"parent\":\"%s\",\"branch\":\"%s\"%s}",
             number, id, parent->project_id, parent->id, branch, archived);
    take(scene, DOC_ENVIRONMENT, id, body, version);
}

static bool opens(struct scene *scene, const char *secret)
{
    return accounts_secret(scene->accounts, slice_of(secret), NOW);
}

/* ---- taking effect ---- */

static void accounts_of_the_leader_are_found(void **state)
{
    struct scene *scene = *state;
    assert_false(followed_accounts_are_there(scene->followed));
    read_all(scene);
    assert_true(followed_accounts_are_there(scene->followed));
    assert_int_equal(scene->reports, ENVIRONMENTS);
    for (int i = 0; i < ENVIRONMENTS; i++)
        assert_true(opens(scene, scene->bootstrap.secret_keys[i]));
    assert_true(opens(scene, scene->bootstrap.personal_token));
}

/* Stages many branches, in scene->followed. */
static void take_many(struct scene *scene)
{
    for (unsigned i = 0; i < MANY; i++)
        take_branch(scene, ENVIRONMENTS + 1 + i, "branch", ",\"archivedAt\":1", 1);
}

static void only_the_first_ones_take_effect_in_time_slices(void **state)
{
    struct scene *scene = *state;
    struct failure why = { 0 };
    bool more = true;
    unsigned turns = 0;
    read_all(scene);
    loop_set_budget(scene->loop, 0);
    take_many(scene);
    assert_int_equal(followed_accounts_settle(scene->followed, &more, &why), OK);
    assert_false(more);

    struct scene first = *scene;
    struct accounts *accounts = accounts_create(scene->vault);
    first.followed = followed_accounts_create(scene->loop, accounts, scene->writer);
    for (size_t i = 0; i < scene->count; i++)
        followed_accounts_take(first.followed, &scene->changes[i].document);
    take_many(&first);
    for (more = true; more; turns++)
        assert_int_equal(followed_accounts_settle(first.followed, &more, &why), OK);
    assert_true(turns >= MANY / 16);
    followed_accounts_destroy(first.followed);
    accounts_destroy(accounts);
}

static void documents_take_effect_together(void **state)
{
    struct scene *scene = *state;
    read_all(scene);
    unsigned before = scene->reports;
    take_branch(scene, 9, "new", "", 1);
    assert_null(accounts_by_number(scene->accounts, 9));
    settle(scene);
    struct account *branch = accounts_branch(scene->accounts, preview(scene), SLICE("new"));
    assert_non_null(branch);
    assert_ptr_equal(branch->parent, preview(scene));
    assert_int_equal(scene->reports, before + 1);
    assert_string_equal(scene->reported, "env_9");
}

static void older_document_is_ignored(void **state)
{
    struct scene *scene = *state;
    read_all(scene);
    take_branch(scene, 9, "new", "", 1);
    take_branch(scene, 9, "new", ",\"archivedAt\":5", 2);
    take_branch(scene, 9, "new", "", 1);
    settle(scene);
    take_branch(scene, 9, "new", "", 1);
    settle(scene);
    assert_true(accounts_by_number(scene->accounts, 9)->archived);
}

static void name_of_an_archived_branch_may_be_used_again(void **state)
{
    struct scene *scene = *state;
    read_all(scene);
    take_branch(scene, 9, "same", "", 1);
    settle(scene);
    take_branch(scene, 10, "same", "", 1); /* a read delivers them in any order */
    take_branch(scene, 9, "same", ",\"archivedAt\":5", 2);
    settle(scene);
    assert_int_equal(
        accounts_branch(scene->accounts, preview(scene), SLICE("same"))->number, 10);
}

/* ---- ends ---- */

static void documents_that_the_database_lacks_are_removed(void **state)
{
    struct scene *scene = *state;
    read_all(scene);
    uint64_t endings = accounts_endings(scene->accounts);
    read_without(scene, DOC_TOKEN);
    settle(scene);
    assert_false(opens(scene, scene->bootstrap.personal_token));
    assert_true(opens(scene, scene->bootstrap.secret_keys[0]));
    assert_true(accounts_endings(scene->accounts) > endings);
}

static void branch_that_was_removed_meanwhile_has_ended(void **state)
{
    struct scene *scene = *state;
    read_all(scene);
    take_branch(scene, 9, "gone", "", 1);
    settle(scene);
    read_all(scene);
    const struct account *branch = accounts_by_number(scene->accounts, 9);
    assert_true(branch->archived && branch->archived_at && branch->forgotten);
    assert_null(accounts_branch(scene->accounts, preview(scene), SLICE("gone")));
}

static void project_that_was_removed_meanwhile_has_ended(void **state)
{
    struct scene *scene = *state;
    read_all(scene);
    read_without(scene, DOC_PROJECT);
    settle(scene);
    assert_null(accounts_project(scene->accounts, slice_of(scene->bootstrap.project_ref)));
    for (int i = 0; i < ENVIRONMENTS; i++) {
        assert_true(accounts_by_number(scene->accounts, (uint32_t)i + 1)->archived);
        assert_false(opens(scene, scene->bootstrap.secret_keys[i]));
    }
}

/* ---- another history ---- */

static void another_history_has_older_credentials(void **state)
{
    struct scene *scene = *state;
    struct failure why = { 0 };
    bool more = false;
    read_without(scene, DOC_TOKEN);
    settle(scene);
    for (size_t i = 0; i < scene->count; i++)
        scene->changes[i].document.version += scene->changes[i].document.kind == DOC_KEY;
    read_all(scene); /* each key has been written again */
    for (size_t i = 0; i < scene->count; i++)
        scene->changes[i].document.version = 1;
    followed_accounts_begin_history(scene->followed);
    uint64_t endings = accounts_endings(scene->accounts);
    read_without(scene, DOC_WORKER_TOKEN);
    assert_int_equal(followed_accounts_settle(scene->followed, &more, &why), OK);
    for (int i = 0; i < ENVIRONMENTS; i++)
        assert_true(opens(scene, scene->bootstrap.secret_keys[i]));
    assert_true(opens(scene, scene->bootstrap.personal_token));
    assert_int_equal(accounts_endings(scene->accounts), endings);
    for (size_t i = 0; i < scene->count; i++) /* the keys have version 1 in memory, too */
        scene->changes[i].document.version = 2;
    read_all(scene);
    assert_true(opens(scene, scene->bootstrap.secret_keys[0]));
}

static void another_history_lacks_a_credential(void **state)
{
    struct scene *scene = *state;
    read_all(scene);
    followed_accounts_begin_history(scene->followed);
    read_without(scene, DOC_TOKEN);
    settle(scene);
    assert_false(opens(scene, scene->bootstrap.personal_token));
    assert_true(opens(scene, scene->bootstrap.secret_keys[0]));
}

static void environments_of_another_history_cannot_be_taken(void **state)
{
    struct scene *scene = *state;
    struct failure why = { 0 };
    bool more = false;
    read_all(scene);
    take_branch(scene, 9, "lost", "", 1);
    settle(scene);
    followed_accounts_begin_history(scene->followed);
    read_without(scene, DOC_KINDS);
    assert_int_equal(followed_accounts_settle(scene->followed, &more, &why), ERR_MOVED);
    assert_string_equal(why.text, "the accounts are of another history");
    assert_false(accounts_by_number(scene->accounts, 9)->archived);
}

/* ---- damage ---- */

/* Takes a key of the first start again, sealed with the key of another vault. */
static void take_resealed(struct scene *scene, const char *vault_key, uint32_t version)
{
    struct vault *vault;
    struct failure why;
    struct buf sealed = { 0 };
    const struct document *document = NULL;
    for (size_t i = 0; !document || document->kind != DOC_KEY; i++)
        document = &scene->changes[i].document;
    json_t *body = json_tree_read(bytes_slice(document->body), 0, NULL);
    assert_int_equal(vault_open(slice_of(vault_key), NULL, &vault, &why), OK);
    vault_seal(vault, slice_of("any"), slice_of("any"), &sealed);
    json_object_set_new(body, "sealed", json_stringn(sealed.ptr, sealed.len));
    char *text = json_dumps(body, JSON_COMPACT),
         *name = mem_text(bytes_slice(document->name));
    take(scene, DOC_KEY, name, text, version);
    free(name);
    free(text);
    json_decref(body);
    buf_finish(&sealed);
    vault_close(vault);
}

static void rotation_with_a_key_that_is_missing_here_is_noticed(void **state)
{
    struct scene *scene = *state;
    read_all(scene);
    take_resealed(scene, KEY_HEX, 2);
    settle(scene);
    assert_false(followed_accounts_lack_key(scene->followed));
    take_resealed(scene, OTHER_KEY_HEX, 3);
    settle(scene);
    assert_true(followed_accounts_lack_key(scene->followed));
}

static void damaged_document_is_refused_by_each_read(void **state)
{
    struct scene *scene = *state;
    struct failure why = { 0 };
    bool more = false;
    read_all(scene);
    for (int i = 0; i < 2; i++) {
        followed_accounts_begin_read(scene->followed);
        for (size_t at = 0; at < scene->count; at++)
            followed_accounts_read(scene->followed, &scene->changes[at].document);
        struct document damaged = { .kind = DOC_PROJECT,
                                    .name = bytes_create(SLICE("bad")),
                                    .body = bytes_create(SLICE("{}")),
                                    .version = 1 };
        followed_accounts_read(scene->followed, &damaged);
        document_finish(&damaged);
        followed_accounts_end_read(scene->followed);
        assert_int_equal(followed_accounts_settle(scene->followed, &more, &why),
                         ERR_INVALID);
        assert_non_null(strstr(why.text, "\"bad\" is damaged"));
    }
    assert_true(opens(scene, scene->bootstrap.secret_keys[0]));
}

static void staged_documents_are_forgotten_by_the_next_read(void **state)
{
    struct scene *scene = *state;
    read_all(scene);
    take_branch(scene, 9, "new", "", 1);
    read_all(scene);
    assert_null(accounts_by_number(scene->accounts, 9));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(accounts_of_the_leader_are_found),
        TEST(only_the_first_ones_take_effect_in_time_slices),
        TEST(documents_take_effect_together),
        TEST(older_document_is_ignored),
        TEST(another_history_has_older_credentials),
        TEST(another_history_lacks_a_credential),
        TEST(environments_of_another_history_cannot_be_taken),
        TEST(name_of_an_archived_branch_may_be_used_again),
        TEST(documents_that_the_database_lacks_are_removed),
        TEST(branch_that_was_removed_meanwhile_has_ended),
        TEST(project_that_was_removed_meanwhile_has_ended),
        TEST(rotation_with_a_key_that_is_missing_here_is_noticed),
        TEST(damaged_document_is_refused_by_each_read),
        TEST(staged_documents_are_forgotten_by_the_next_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
