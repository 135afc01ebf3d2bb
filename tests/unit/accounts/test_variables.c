/* Variables are stored encrypted, and restored from their documents in their own place. */
#include "tests/support/world/unit.h"

#include <stdio.h>

#include "accounts/variables.h"
#include "base/mem.h"

#define KEY_HEX "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define OTHER_HEX "fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0efeeedecebeae9e8e7e6e5e4e3e2e1e0"

struct world {
    struct vault *vault;
    struct accounts *accounts;
    struct account *dev, *prod;
};

/* Fills the accounts with those of a first start. */
static void fill(struct world *world, const char *key, const struct change *changes,
                 size_t count)
{
    struct failure why;
    assert_int_equal(vault_open(slice_of(key), NULL, &world->vault, &why), OK);
    world->accounts = accounts_create(world->vault);
    for (size_t i = 0; i < count; i++)
        if (changes[i].document.kind != DOC_KEY)
            assert_int_equal(accounts_add(world->accounts, &changes[i].document, &why), OK);
    world->dev = accounts_by_number(world->accounts, 1);
    world->prod = accounts_by_number(world->accounts, 3);
    assert_non_null(world->dev);
    assert_non_null(world->prod);
}

static size_t first_accounts(struct change changes[16])
{
    struct bootstrap bootstrap;
    struct failure why;
    struct vault *vault;
    assert_int_equal(bootstrap_prepare(&bootstrap, &why), OK);
    assert_int_equal(vault_open(SLICE(KEY_HEX), NULL, &vault, &why), OK);
    struct accounts *accounts = accounts_create(vault);
    size_t count = accounts_bootstrap(accounts, &bootstrap, 1700000000000, changes);
    accounts_destroy(accounts);
    vault_close(vault);
    bootstrap_finish(&bootstrap);
    return count;
}

static struct change documents[16];
static size_t document_count;

static int make_world(void **state)
{
    struct world *world = mem_new(struct world);
    document_count = first_accounts(documents);
    fill(world, KEY_HEX, documents, document_count);
    *state = world;
    return 0;
}

static void end(struct world *world)
{
    accounts_destroy(world->accounts);
    vault_close(world->vault);
}

static int end_world(void **state)
{
    end(*state);
    free(*state);
    for (size_t i = 0; i < document_count; i++)
        change_finish(&documents[i]);
    return 0;
}

static struct change sealed(struct world *world, const char *name, const char *value,
                            bool is_secret)
{
    struct change change = variable_change(world->vault, world->dev, slice_of(name),
                                           slice_of(value), is_secret);
    change.document.version = change.expected + 1; /* as a store driver does */
    return change;
}

static void variable_is_restored_from_its_document(void **state)
{
    struct world *world = *state, again = { 0 };
    static const struct {
        const char *name, *value;
        bool is_secret;
    } cases[] = {
        { "A", "one", false },
        { "Z_9", "line\nline \xc3\xbc \"q\"", true },
        { "m.n-o", " ", false },
    };
    struct failure why;
    fill(&again, KEY_HEX, documents, document_count);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct change change =
            sealed(world, cases[i].name, cases[i].value, cases[i].is_secret);
        assert_int_equal(variables_restore(again.accounts, &change.document, &why), OK);
        change_finish(&change);
        const struct variable *found = variables_own(again.dev, slice_of(cases[i].name));
        assert_non_null(found);
        assert_string_equal(found->value.ptr, cases[i].value);
        assert_int_equal(found->is_secret, cases[i].is_secret);
        assert_int_equal(found->version, 1);
        assert_null(variables_own(again.prod, slice_of(cases[i].name)));
    }
    end(&again);
}

static void document_hides_the_value_and_differs_each_time(void **state)
{
    struct world *world = *state;
    struct change one = sealed(world, "A", "CANARY", false);
    struct change two = sealed(world, "A", "CANARY", false);
    assert_null(strstr(one.document.body->data, "CANARY"));
    assert_false(
        slice_equal(bytes_slice(one.document.body), bytes_slice(two.document.body)));
    change_finish(&one);
    change_finish(&two);
}

/* Each document is an attempt of an attacker with write access to the database. */
static void variable_document_does_not_open_in_another_place(void **state)
{
    struct world *world = *state;
    enum { ENVIRONMENT, NAME, VERSION, FLAG, KEY, KINDS };
    for (int kind = 0; kind < KINDS; kind++) {
        struct world again = { 0 };
        struct failure why = { 0 };
        struct change change = sealed(world, "A", "CANARY", true);
        struct document *document = &change.document;
        fill(&again, kind == KEY ? OTHER_HEX : KEY_HEX, documents, document_count);
        if (kind == ENVIRONMENT)
            document->env = 3;
        if (kind == VERSION)
            document->version++;
        if (kind == NAME || kind == FLAG) {
            struct bytes **text = kind == NAME ? &document->name : &document->body;
            struct buf edited = { 0 };
            struct slice whole = bytes_slice(*text);
            if (kind == NAME)
                buf_add_text(&edited, "B");
            else
                buf_print(&edited, "{\"secret\":false%s", strchr(whole.ptr, ','));
            bytes_unref(*text);
            *text = buf_to_bytes(&edited);
            buf_finish(&edited);
        }
        assert_int_equal(variables_restore(again.accounts, document, &why), ERR_INVALID);
        assert_null(strstr(why.text, "CANARY"));
        assert_non_null(strstr(why.text, "cannot decrypt"));
        assert_null(variables_own(again.dev, SLICE("A")));
        change_finish(&change);
        end(&again);
    }
}

static void a_damaged_document_is_an_error(void **state)
{
    struct world *world = *state;
    static const char *const bodies[] = { "",
                                          "{",
                                          "[]",
                                          "{\"secret\":true}",
                                          "{\"secret\":1,\"sealed\":\"x\"}",
                                          "{\"sealed\":\"x\"}" };
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        struct failure why = { 0 };
        struct document document = { .kind = DOC_VARIABLE,
                                     .env = 1,
                                     .version = 1,
                                     .name = bytes_create(SLICE("A")),
                                     .body = bytes_create(slice_of(bodies[i])) };
        assert_int_equal(variables_restore(world->accounts, &document, &why), ERR_INVALID);
        assert_non_null(strstr(why.text, "damaged"));
        document_finish(&document);
    }
}

static void variable_names_must_be_valid_in_a_process(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool is_valid;
    } cases[] = {
        { "A", true },    { "_", true },     { "9a", true },   { "npm.config-x", true },
        { "", false },    { "A=B", false },  { "A B", false }, { ".", false },
        { "..", false },  { "-x", false },   { "a/b", false }, { "\xc3\xbc", false },
        { "A\n", false }, { "\x01", false }, { "A\"", false }, { "$A", false },
    };
    char longest[VARIABLE_NAME_MAX + 2];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(variable_name_is_valid(slice_of(cases[i].name)),
                         cases[i].is_valid);
    memset(longest, 'x', sizeof(longest));
    assert_true(variable_name_is_valid((struct slice){ longest, VARIABLE_NAME_MAX }));
    assert_false(variable_name_is_valid((struct slice){ longest, VARIABLE_NAME_MAX + 1 }));
    assert_false(variable_name_is_valid((struct slice){ "a\0b", 3 }));
}

static void assert_walk(const struct account *account, const char *expected)
{
    struct variable_walk walk = { 0 };
    struct buf seen = { 0 };
    for (const struct variable *v; (v = variables_next(account, &walk));)
        buf_print(&seen, "%s=%s ", v->name, v->value.ptr);
    buf_add_char(&seen, '\0');
    assert_string_equal(seen.ptr, expected);
    buf_finish(&seen);
}

static void variables_are_sorted_and_can_be_replaced_and_removed(void **state)
{
    struct world *world = *state;
    static const char *const names[] = { "M", "B", "ZZ", "Z", "A", "Z.Z", "B" };
    assert_walk(world->dev, "");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char value[8];
        snprintf(value, sizeof(value), "%zu", i);
        variables_put(world->dev, slice_of(names[i]), slice_of(value), false, 1);
    }
    assert_walk(world->dev, "A=4 B=6 M=0 Z=3 Z.Z=5 ZZ=2 ");
    assert_int_equal(world->dev->variables->bytes, 1 + 1 + 1 + 1 + 3 + 2 + 6);
    variables_remove(world->dev, SLICE("M"));
    variables_remove(world->dev, SLICE("ZZ"));
    variables_remove(world->dev, SLICE("nothing"));
    assert_walk(world->dev, "A=4 B=6 Z=3 Z.Z=5 ");
    assert_int_equal(world->dev->variables->bytes, 1 + 1 + 1 + 3 + 4);
    assert_walk(world->prod, "");
}

static void change_of_an_existing_variable_expects_its_version(void **state)
{
    struct world *world = *state;
    variables_put(world->dev, SLICE("A"), SLICE("x"), false, 7);
    struct change set = sealed(world, "A", "y", false);
    struct change gone =
        variable_change(world->vault, world->dev, SLICE("A"), (struct slice){ 0 }, false);
    assert_int_equal(set.expected, 7);
    assert_int_equal(gone.expected, 7);
    assert_null(gone.document.body);
    change_finish(&set);
    change_finish(&gone);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, make_world, end_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_WORLD(variable_is_restored_from_its_document),
        IN_WORLD(document_hides_the_value_and_differs_each_time),
        IN_WORLD(variable_document_does_not_open_in_another_place),
        IN_WORLD(a_damaged_document_is_an_error),
        cmocka_unit_test(variable_names_must_be_valid_in_a_process),
        IN_WORLD(variables_are_sorted_and_can_be_replaced_and_removed),
        IN_WORLD(change_of_an_existing_variable_expects_its_version),
    };
    return cmocka_run_group_tests_name("variables", tests, NULL, NULL);
}
