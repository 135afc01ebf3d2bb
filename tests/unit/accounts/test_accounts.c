/* Accounts of the first start are found again, but not without the encryption key. */
#include "tests/support/world/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "accounts/account_versions.h"
#include "base/mem.h"

enum { CHANGES_MAX = 16 };

#define KEY_HEX "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define OTHER_HEX "fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0efeeedecebeae9e8e7e6e5e4e3e2e1e0"

static const char *const variables[] = {
    "RUNCAST_PROJECT_REF",        "RUNCAST_DEV_SECRET_KEY",
    "RUNCAST_STAGING_SECRET_KEY", "RUNCAST_PROD_SECRET_KEY",
    "RUNCAST_PREVIEW_SECRET_KEY", "RUNCAST_PERSONAL_ACCESS_TOKEN",
};

enum { VARIABLE_COUNT = sizeof(variables) / sizeof(variables[0]) };

struct world {
    struct vault *vault;
    struct accounts *accounts;
    struct bootstrap bootstrap;
    struct change changes[CHANGES_MAX];
    size_t count;
};

static struct vault *open_vault(const char *key)
{
    struct vault *vault = NULL;
    struct failure why;
    assert_int_equal(vault_open(slice_of(key), NULL, &vault, &why), OK);
    return vault;
}

static void clear_variables(void)
{
    for (int i = 0; i < VARIABLE_COUNT; i++) {
        char file[64];
        snprintf(file, sizeof(file), "%s_FILE", variables[i]);
        unsetenv(variables[i]);
        unsetenv(file);
    }
}

static int make_world(void **state)
{
    struct world *world = mem_new(struct world);
    struct failure why;
    clear_variables();
    world->vault = open_vault(KEY_HEX);
    world->accounts = accounts_create(world->vault);
    assert_int_equal(bootstrap_prepare(&world->bootstrap, &why), OK);
    world->count = accounts_bootstrap(world->accounts, &world->bootstrap,
                                      INT64_C(1700000000000), world->changes);
    *state = world;
    return 0;
}

static int end_world(void **state)
{
    struct world *world = *state;
    for (size_t i = 0; i < world->count; i++) {
        bytes_unref(world->changes[i].document.name);
        bytes_unref(world->changes[i].document.body);
    }
    accounts_destroy(world->accounts);
    vault_close(world->vault);
    free(world);
    clear_variables();
    return 0;
}

static struct account *by_secret_key(struct accounts *accounts, struct slice key)
{
    struct secret *secret = accounts_secret(accounts, key, INT64_C(1700000000000));
    return secret ? secret->account : NULL;
}

static struct user *by_personal_token(struct accounts *accounts, struct slice token)
{
    struct secret *secret = accounts_secret(accounts, token, INT64_C(1700000000000));
    return secret ? secret->user : NULL;
}

/* Adds the documents, from the first or from the last on, and links them. */
static void add_all(struct world *world, struct accounts *accounts, bool backwards)
{
    struct failure why = { 0 };
    for (size_t i = 0; i < world->count; i++) {
        size_t at = backwards ? world->count - 1 - i : i;
        assert_int_equal(accounts_add(accounts, &world->changes[at].document, &why), OK);
    }
    assert_int_equal(accounts_link(accounts, &why), OK);
}

static void assert_complete(struct world *world, struct accounts *accounts)
{
    static const char *const slugs[] = { "dev", "stg", "prod", "preview" };
    struct project *project =
        accounts_project(accounts, slice_of(world->bootstrap.project_ref));
    struct user *user =
        by_personal_token(accounts, slice_of(world->bootstrap.personal_token));
    assert_non_null(project);
    assert_non_null(user);
    assert_ptr_equal(user, accounts_first_user(accounts, project->organization));
    assert_true(user_sees(user, project));
    for (int i = 0; i < ENVIRONMENT_TYPES; i++) {
        const char *key = world->bootstrap.secret_keys[i];
        struct account *account = by_secret_key(accounts, slice_of(key));
        assert_non_null(account);
        assert_string_equal(account->secret_key, key);
        assert_string_equal(environment_slug(account->type), slugs[i]);
        assert_int_equal(account->number, i + 1);
        assert_ptr_equal(account->project, project);
        assert_ptr_equal(account, accounts_by_id(accounts, slice_of(account->id)));
        assert_ptr_equal(account, accounts_by_number(accounts, (uint32_t)i + 1));
        assert_ptr_equal(account,
                         accounts_environment(accounts, project, (enum environment_type)i));
    }
}

static void first_start_creates_the_accounts(void **state)
{
    struct world *world = *state;
    assert_true(accounts_empty(world->accounts));
    assert_int_equal(world->count, 12);
    add_all(world, world->accounts, false);
    assert_false(accounts_empty(world->accounts));
    assert_complete(world, world->accounts);
}

static void documents_may_come_in_any_order(void **state)
{
    struct world *world = *state;
    add_all(world, world->accounts, true);
    assert_complete(world, world->accounts);
}

static void first_start_writes_only_new_documents(void **state)
{
    struct world *world = *state;
    for (size_t i = 0; i < world->count; i++) {
        const struct change *change = &world->changes[i];
        assert_int_equal(change->kind, CHANGE_DOCUMENT);
        assert_int_equal(change->env, ENV_INSTALLATION);
        assert_int_equal(change->document.env, ENV_INSTALLATION);
        assert_int_equal(change->expected, 0);
        for (size_t j = 0; j < i; j++)
            assert_false(change->document.kind == world->changes[j].document.kind &&
                         slice_equal(bytes_slice(change->document.name),
                                     bytes_slice(world->changes[j].document.name)));
    }
}

static bool contains(const struct bytes *bytes, const char *text)
{
    return memmem(bytes->data, bytes->len, text, strlen(text)) != NULL;
}

static void no_document_contains_a_secret(void **state)
{
    struct world *world = *state;
    for (size_t i = 0; i < world->count; i++) {
        const struct document *document = &world->changes[i].document;
        for (int j = 0; j < ENVIRONMENT_TYPES; j++) {
            assert_false(contains(document->body, world->bootstrap.secret_keys[j]));
            assert_false(contains(document->name, world->bootstrap.secret_keys[j]));
        }
        assert_false(contains(document->body, world->bootstrap.personal_token));
        assert_false(contains(document->name, world->bootstrap.personal_token));
    }
}

static void another_encryption_key_is_rejected_with_a_reason(void **state)
{
    struct world *world = *state;
    struct vault *other = open_vault(OTHER_HEX);
    struct accounts *accounts = accounts_create(other);
    size_t refused = 0;
    for (size_t i = 0; i < world->count; i++) {
        struct failure why = { 0 };
        bool is_key = world->changes[i].document.kind == DOC_KEY;
        enum err err = accounts_add(accounts, &world->changes[i].document, &why);
        assert_int_equal(err, is_key ? ERR_INVALID : OK);
        if (is_key)
            assert_non_null(strstr(why.text, "sealed with another encryption key"));
        refused += is_key;
    }
    assert_int_equal(refused, ENVIRONMENT_TYPES);
    accounts_destroy(accounts);
    vault_close(other);
}

static const struct document *document_of(struct world *world, enum document_kind kind,
                                          unsigned nth)
{
    for (size_t i = 0; i < world->count; i++) {
        if (world->changes[i].document.kind == kind && nth-- == 0)
            return &world->changes[i].document;
    }
    return NULL;
}

/* An attacker with write access to the database puts the key of dev in place of prod's. */
static void key_moved_to_another_environment_does_not_open(void **state)
{
    struct world *world = *state;
    struct failure why;
    struct document moved = { .kind = DOC_KEY,
                              .name = document_of(world, DOC_KEY, 2)->name,
                              .body = document_of(world, DOC_KEY, 0)->body };
    assert_int_equal(accounts_add(world->accounts, &moved, &why), ERR_INVALID);
}

static enum err add_text(struct accounts *accounts, enum document_kind kind,
                         const char *body)
{
    struct failure why = { 0 };
    struct document document = { .kind = kind,
                                 .name = bytes_create(SLICE("some-name")),
                                 .body = bytes_create(slice_of(body)) };
    enum err err = accounts_add(accounts, &document, &why);
    if (err)
        assert_non_null(strstr(why.text, "some-name"));
    bytes_unref(document.name);
    bytes_unref(document.body);
    return err;
}

static void damaged_documents_are_rejected(void **state)
{
    struct world *world = *state;
    static const struct {
        enum document_kind kind;
        const char *body;
    } cases[] = {
        { DOC_ORGANIZATION, "" },
        { DOC_ORGANIZATION, "{" },
        { DOC_ORGANIZATION, "[]" },
        { DOC_ORGANIZATION, "{}" },
        { DOC_ORGANIZATION, "{\"id\":1}" },
        { DOC_ORGANIZATION, "{\"id\":\"a\",\"id\":\"b\"}" },
        { DOC_ORGANIZATION, "{\"id\":\"much_longer_than_any_id_that_we_make_ever_is\"}" },
        { DOC_PROJECT, "{\"id\":\"p\",\"ref\":\"proj_x\"}" },
        { DOC_PROJECT, "{\"id\":\"p\",\"organization\":\"o\"}" },
        { DOC_USER, "{\"id\":\"u\"}" },
        { DOC_ENVIRONMENT, "{\"number\":1,\"id\":\"e\",\"type\":\"dev\"}" },
        { DOC_ENVIRONMENT,
          "{\"number\":0,\"id\":\"e\",\"type\":\"dev\",\"project\":\"p\"}" },
        { DOC_ENVIRONMENT,
          "{\"number\":-1,\"id\":\"e\",\"type\":\"dev\",\"project\":\"p\"}" },
        { DOC_ENVIRONMENT,
          "{\"number\":4294967297,\"id\":\"e\",\"type\":\"dev\",\"project\":\"p\"}" },
        { DOC_ENVIRONMENT,
          "{\"number\":1,\"id\":\"e\",\"type\":\"test\",\"project\":\"p\"}" },
        { DOC_KEY, "{\"environment\":\"e\"}" },
        { DOC_TOKEN, "{\"hash\":\"00\",\"user\":\"u\"}" },
        { DOC_TOKEN, "{\"hash\":\"zz\",\"user\":\"u\"}" },
        { DOC_TOKEN, "{\"user\":\"u\"}" },
        { DOC_BATCH, "{\"id\":\"a\"}" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (add_text(world->accounts, cases[i].kind, cases[i].body) != ERR_INVALID)
            fail_msg("%s", cases[i].body);
    }
    assert_true(accounts_empty(world->accounts));
}

static void duplicate_document_is_rejected(void **state)
{
    struct world *world = *state;
    struct failure why;
    add_all(world, world->accounts, false);
    for (size_t i = 0; i < world->count; i++)
        assert_int_equal(accounts_add(world->accounts, &world->changes[i].document, &why),
                         ERR_INVALID);
    assert_complete(world, world->accounts);
}

static void dangling_reference_is_rejected(void **state)
{
    struct world *world = *state;
    for (size_t missing = 0; missing < world->count; missing++) {
        enum document_kind kind = world->changes[missing].document.kind;
        struct accounts *accounts = accounts_create(world->vault);
        struct failure why;
        for (size_t i = 0; i < world->count; i++) {
            if (i != missing)
                assert_int_equal(accounts_add(accounts, &world->changes[i].document, &why),
                                 OK);
        }
        bool can_be_missing = kind == DOC_TOKEN;
        assert_int_equal(accounts_link(accounts, &why), can_be_missing ? OK : ERR_INVALID);
        accounts_destroy(accounts);
    }
}

static void unknown_name_is_not_found(void **state)
{
    struct world *world = *state;
    struct accounts *accounts = world->accounts;
    add_all(world, accounts, false);
    const char *key = world->bootstrap.secret_keys[0];
    struct slice shorter = { key, strlen(key) - 1 };
    assert_null(by_secret_key(accounts, shorter));
    assert_null(by_secret_key(accounts, SLICE("")));
    assert_null(by_secret_key(accounts, (struct slice){ 0 }));
    assert_null(by_secret_key(accounts, slice_of(world->bootstrap.personal_token)));
    assert_null(by_personal_token(accounts, slice_of(key)));
    assert_null(accounts_by_id(accounts, SLICE("env_other")));
    assert_null(accounts_by_number(accounts, 0));
    assert_null(accounts_by_number(accounts, 5));
    assert_null(accounts_by_number(accounts, UINT32_MAX));
    assert_null(accounts_project(accounts, SLICE("proj_other")));
}

static void walk_visits_every_environment_once_in_order(void **state)
{
    struct world *world = *state;
    uint32_t expected = 1;
    add_all(world, world->accounts, true);
    struct account *account = NULL;
    while ((account = accounts_next(world->accounts, account)))
        assert_int_equal(account->number, expected++);
    assert_int_equal(expected, 5);
}

/* There is another organization with its own project and user. */
static void user_sees_only_projects_of_its_organization(void **state)
{
    struct world *world = *state;
    struct failure why;
    add_all(world, world->accounts, false);
    assert_int_equal(add_text(world->accounts, DOC_ORGANIZATION, "{\"id\":\"org_2\"}"), OK);
    assert_int_equal(
        add_text(world->accounts, DOC_PROJECT,
                 "{\"id\":\"p2\",\"ref\":\"proj_two\",\"organization\":\"org_2\"}"),
        OK);
    assert_int_equal(
        add_text(world->accounts, DOC_USER, "{\"id\":\"u2\",\"organization\":\"org_2\"}"),
        OK);
    assert_int_equal(accounts_link(world->accounts, &why), OK);
    struct user *user =
        by_personal_token(world->accounts, slice_of(world->bootstrap.personal_token));
    assert_false(user_sees(user, accounts_project(world->accounts, SLICE("proj_two"))));
    assert_complete(world, world->accounts);
}

static void environments_have_the_names_of_trigger_dev(void **state)
{
    (void)state;
    static const struct {
        const char *slug, *path, *stored, *type;
    } cases[] = {
        { "dev", "dev", "dev", "DEVELOPMENT" },
        { "staging", "staging", "stg", "STAGING" },
        { "stg", "staging", "stg", "STAGING" },
        { "prod", "prod", "prod", "PRODUCTION" },
        { "preview", "preview", "preview", "PREVIEW" },
    };
    enum environment_type type;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(environment_type_from_slug(slice_of(cases[i].slug), &type), OK);
        assert_string_equal(environment_path_slug(type), cases[i].path);
        assert_string_equal(environment_slug(type), cases[i].stored);
        assert_string_equal(environment_type_name(type), cases[i].type);
    }
    assert_int_equal(environment_type_from_slug(SLICE("production"), &type), ERR_NOT_FOUND);
    assert_int_equal(environment_type_from_slug(SLICE(""), &type), ERR_NOT_FOUND);
}

/* ---- given and generated values ---- */

static bool is_made_of(const char *text, const char *prefix, size_t len,
                       const char *alphabet)
{
    size_t prefix_len = strlen(prefix);
    return strncmp(text, prefix, prefix_len) == 0 && strlen(text) == prefix_len + len &&
           strspn(text + prefix_len, alphabet) == len;
}

static void generated_values_have_the_form_of_trigger_dev(void **state)
{
    struct world *world = *state;
    static const char *const prefixes[] = { "tr_dev_", "tr_stg_", "tr_prod_",
                                            "tr_preview_" };
    static const char alphanumeric[] =
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    const struct bootstrap *drawn = &world->bootstrap;
    for (int i = 0; i < ENVIRONMENT_TYPES; i++)
        assert_true(is_made_of(drawn->secret_keys[i], prefixes[i], 24, alphanumeric));
    assert_true(is_made_of(drawn->project_ref, "proj_", 20, "abcdefghijklmnopqrstuvwxyz"));
    assert_true(is_made_of(drawn->personal_token, "tr_pat_", 40,
                           "123456789abcdefghijkmnopqrstuvwxyz"));
    assert_false(drawn->from_environment);

    struct bootstrap again;
    struct failure why;
    assert_int_equal(bootstrap_prepare(&again, &why), OK);
    assert_string_not_equal(again.secret_keys[0], drawn->secret_keys[0]);
    assert_string_not_equal(again.personal_token, drawn->personal_token);
}

static void given_values_are_checked_and_used(void **state)
{
    (void)state;
    static const struct {
        const char *variable, *value;
        bool right;
    } cases[] = {
        { "RUNCAST_PROJECT_REF", "proj_abcdefghijklmnopqrst", true },
        { "RUNCAST_PROJECT_REF", "proj_abcd1234", true },
        { "RUNCAST_PROJECT_REF", "proj_abc1234", false },
        { "RUNCAST_PROJECT_REF", "proj_0123456789012345678901234567890123456789", true },
        { "RUNCAST_PROJECT_REF", "proj_01234567890123456789012345678901234567890", false },
        { "RUNCAST_PROJECT_REF", "proj_Abcdefghij", false },
        { "RUNCAST_PROJECT_REF", "my-project-ref", false },
        { "RUNCAST_DEV_SECRET_KEY", "tr_dev_abcdefghij0123456789", true },
        { "RUNCAST_DEV_SECRET_KEY", "tr_dev_abcdefghij_123456789", true },
        { "RUNCAST_DEV_SECRET_KEY", "tr_dev_abcdefghij012345678", false },
        { "RUNCAST_DEV_SECRET_KEY", "tr_prod_abcdefghij0123456789", false },
        { "RUNCAST_DEV_SECRET_KEY", "tr_dev_abcdefghij-123456789", false },
        { "RUNCAST_DEV_SECRET_KEY", "tr_dev_abcdefghij0123456789 ", false },
        { "RUNCAST_DEV_SECRET_KEY", "abcdefghij0123456789abcdefghij", false },
        { "RUNCAST_DEV_SECRET_KEY",
          "tr_dev_abcdefghij0123456789abcdefghij0123456789abcdefghij012345", true },
        { "RUNCAST_DEV_SECRET_KEY",
          "tr_dev_abcdefghij0123456789abcdefghij0123456789abcdefghij0123456", false },
        { "RUNCAST_STAGING_SECRET_KEY", "tr_stg_abcdefghij0123456789", true },
        { "RUNCAST_STAGING_SECRET_KEY", "tr_staging_abcdefghij0123456789", true },
        { "RUNCAST_PROD_SECRET_KEY", "tr_prod_abcdefghij0123456789", true },
        { "RUNCAST_PREVIEW_SECRET_KEY", "tr_preview_abcdefghij0123456789", true },
        { "RUNCAST_PREVIEW_SECRET_KEY", "tr_dev_abcdefghij0123456789", false },
        { "RUNCAST_PERSONAL_ACCESS_TOKEN", "tr_pat_abcdefghij0123456789", true },
        { "RUNCAST_PERSONAL_ACCESS_TOKEN", "tr_pat_ABCDEFGHIJ0123456789", false },
        { "RUNCAST_PERSONAL_ACCESS_TOKEN", "tr_pat_abcdefghij012345678", false },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct bootstrap bootstrap = { 0 };
        struct failure why = { 0 };
        clear_variables();
        setenv(cases[i].variable, cases[i].value, 1);
        enum err err = bootstrap_prepare(&bootstrap, &why);
        if (err != (cases[i].right ? OK : ERR_INVALID))
            fail_msg("%s=%s: %s", cases[i].variable, cases[i].value, why.text);
        if (err) {
            assert_non_null(strstr(why.text, cases[i].variable));
            assert_null(strstr(why.text, cases[i].value));
        } else {
            assert_non_null(memmem(&bootstrap, sizeof(bootstrap), cases[i].value,
                                   strlen(cases[i].value) + 1));
        }
        assert_false(bootstrap.from_environment); /* only one of four */
    }
}

static void set_all_keys(void)
{
    setenv("RUNCAST_DEV_SECRET_KEY", "tr_dev_abcdefghij0123456789", 1);
    setenv("RUNCAST_STAGING_SECRET_KEY", "tr_stg_abcdefghij0123456789", 1);
    setenv("RUNCAST_PROD_SECRET_KEY", "tr_prod_abcdefghij0123456789", 1);
    setenv("RUNCAST_PREVIEW_SECRET_KEY", "tr_preview_abcdefghij0123456789", 1);
}

static void four_given_keys_count_as_given(void **state)
{
    (void)state;
    struct bootstrap bootstrap;
    struct failure why;
    clear_variables();
    set_all_keys();
    assert_int_equal(bootstrap_prepare(&bootstrap, &why), OK);
    assert_true(bootstrap.from_environment);
    setenv("RUNCAST_PROD_SECRET_KEY", "", 1); /* as good as unset */
    assert_int_equal(bootstrap_prepare(&bootstrap, &why), OK);
    assert_false(bootstrap.from_environment);
    clear_variables();
}

static void a_key_may_come_from_a_file(void **state)
{
    (void)state;
    char path[] = "/tmp/runcast-key-XXXXXX";
    int file = mkstemp(path);
    const char line[] = "tr_dev_from_a_file0123456789\n";
    assert_int_equal(write(file, line, sizeof(line) - 1), sizeof(line) - 1);
    close(file);

    struct bootstrap bootstrap;
    struct failure why;
    clear_variables();
    setenv("RUNCAST_DEV_SECRET_KEY_FILE", path, 1);
    assert_int_equal(bootstrap_prepare(&bootstrap, &why), OK);
    assert_string_equal(bootstrap.secret_keys[ENVIRONMENT_DEV],
                        "tr_dev_from_a_file0123456789");

    set_all_keys();
    assert_int_equal(bootstrap_prepare(&bootstrap, &why), ERR_INVALID);
    assert_non_null(strstr(why.text, "RUNCAST_DEV_SECRET_KEY_FILE are both set"));
    clear_variables();
    unlink(path);
}

static void variables_of_the_first_start_are_known(void **state)
{
    (void)state;
    for (int i = 0; i < VARIABLE_COUNT; i++) {
        char file[64];
        snprintf(file, sizeof(file), "%s_FILE", variables[i]);
        assert_true(bootstrap_reads(slice_of(variables[i])));
        assert_true(bootstrap_reads(slice_of(file)));
    }
    assert_false(bootstrap_reads(SLICE("RUNCAST_SECRET_KEY")));
    assert_false(bootstrap_reads(SLICE("RUNCAST_DATA_FILE")));
    assert_false(bootstrap_reads(SLICE("_FILE")));
}

/* ---- versions ---- */

static bool has(struct accounts *accounts, const struct change *change, uint32_t version)
{
    struct document document = change->document;
    document.version = version;
    return accounts_have(accounts, &document);
}

static void add_first_versions(struct world *world)
{
    for (size_t i = 0; i < world->count; i++)
        world->changes[i].document.version = 1;
    add_all(world, world->accounts, false);
}

static void memory_has_the_version_of_each_document(void **state)
{
    struct world *world = *state;
    for (size_t i = 0; i < world->count; i++)
        assert_false(has(world->accounts, &world->changes[i], 1));
    assert_int_equal(accounts_document_count(world->accounts), 0);
    add_first_versions(world);
    for (size_t i = 0; i < world->count; i++) {
        assert_true(has(world->accounts, &world->changes[i], 1));
        assert_false(has(world->accounts, &world->changes[i], 2));
    }
    assert_int_equal(accounts_document_count(world->accounts), world->count);
    assert_int_equal(
        accounts_serve_all(world->accounts,
                           SLICE("tr_wgt_abcdefghijklmnopqrstuvwxyz0123456789abcd"), NULL),
        OK);
    assert_int_equal(accounts_document_count(world->accounts), world->count);
}

static void removed_documents_are_not_in_memory(void **state)
{
    struct world *world = *state;
    size_t left = world->count;
    add_first_versions(world);
    for (size_t i = world->count; i--;) {
        struct change removal = world->changes[i];
        struct failure why;
        removal.expected = 1;
        removal.document.version = 2;
        removal.document.body = NULL;
        assert_int_equal(accounts_apply(world->accounts, &removal, &why), OK);
        assert_false(has(world->accounts, &world->changes[i], 1));
        assert_int_equal(accounts_document_count(world->accounts), --left);
    }
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, make_world, end_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_WORLD(first_start_creates_the_accounts),
        IN_WORLD(documents_may_come_in_any_order),
        IN_WORLD(first_start_writes_only_new_documents),
        IN_WORLD(no_document_contains_a_secret),
        IN_WORLD(another_encryption_key_is_rejected_with_a_reason),
        IN_WORLD(key_moved_to_another_environment_does_not_open),
        IN_WORLD(damaged_documents_are_rejected),
        IN_WORLD(duplicate_document_is_rejected),
        IN_WORLD(dangling_reference_is_rejected),
        IN_WORLD(unknown_name_is_not_found),
        IN_WORLD(walk_visits_every_environment_once_in_order),
        IN_WORLD(memory_has_the_version_of_each_document),
        IN_WORLD(removed_documents_are_not_in_memory),
        IN_WORLD(user_sees_only_projects_of_its_organization),
        cmocka_unit_test(environments_have_the_names_of_trigger_dev),
        IN_WORLD(generated_values_have_the_form_of_trigger_dev),
        cmocka_unit_test(given_values_are_checked_and_used),
        cmocka_unit_test(four_given_keys_count_as_given),
        cmocka_unit_test(a_key_may_come_from_a_file),
        cmocka_unit_test(variables_of_the_first_start_are_known),
    };
    return cmocka_run_group_tests_name("accounts", tests, NULL, NULL);
}
