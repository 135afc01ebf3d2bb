/* tenants: each organization keeps its user forever, even if the process is killed. */
#include "supervisor/versions/tenants.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/world/unit.h"

struct place {
    char folder[64], file[96];
};

static int create(void **state)
{
    struct place *place = calloc(1, sizeof(*place));
    snprintf(place->folder, sizeof(place->folder), "/tmp/runcast-tenants-XXXXXX");
    assert_non_null(mkdtemp(place->folder));
    snprintf(place->file, sizeof(place->file), "%s/supervise.users", place->folder);
    *state = place;
    return 0;
}

static int destroy(void **state)
{
    struct place *place = *state;
    unlink(place->file);
    rmdir(place->folder);
    free(place);
    return 0;
}

static struct tenants *open_range(const struct place *place, uid_t first, uid_t last)
{
    struct user_range users = { .first = first, .last = last };
    struct tenants *tenants = NULL;
    struct failure why = { 0 };
    if (tenants_open(place->folder, &users, true, &tenants, &why))
        fail_msg("%s", why.text);
    return tenants;
}

static unsigned uid_of(struct tenants *tenants, const char *organization)
{
    struct process_user user;
    struct failure why = { 0 };
    if (tenants_find(tenants, slice_of(organization), &user, &why))
        fail_msg("%s", why.text);
    assert_int_equal(user.uid, user.gid);
    return user.uid;
}

static void write_file(const struct place *place, const char *text)
{
    FILE *file = fopen(place->file, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void assert_file(const struct place *place, const char *wanted)
{
    char text[256] = "";
    FILE *file = fopen(place->file, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(text, wanted);
}

static void each_organization_has_the_next_uid_and_keeps_it(void **state)
{
    struct place *place = *state;
    struct stat found;
    struct tenants *tenants = open_range(place, 700, 709);
    assert_int_equal(uid_of(tenants, "org_a"), 700);
    assert_int_equal(uid_of(tenants, "org_b"), 701);
    assert_int_equal(uid_of(tenants, "org_a"), 700);
    tenants_close(tenants);
    assert_file(place, "700 org_a\n701 org_b\n");
    assert_int_equal(stat(place->file, &found), 0);
    assert_int_equal(found.st_mode & 0777, 0600);
    tenants = open_range(place, 700, 709);
    assert_int_equal(uid_of(tenants, "org_c"), 702);
    assert_int_equal(uid_of(tenants, "org_b"), 701);
    tenants_close(tenants);
}

static void exhausted_range_gives_no_uid_twice(void **state)
{
    struct place *place = *state;
    struct process_user user;
    struct failure why = { 0 };
    struct tenants *tenants = open_range(place, 700, 701);
    uid_of(tenants, "org_a");
    uid_of(tenants, "org_b");
    assert_int_equal(tenants_find(tenants, SLICE("org_c"), &user, &why), ERR_RULE);
    assert_string_equal(
        why.text,
        "--runner-user 700-701: no uid is left for another organization; extend the range");
    assert_int_equal(uid_of(tenants, "org_b"), 701);
    tenants_close(tenants);
}

static void another_range_never_gives_an_earlier_uid(void **state)
{
    struct place *place = *state;
    write_file(place, "700 org_a\n701 org_b\n702 org_c\n");
    struct tenants *tenants = open_range(place, 701, 710);
    assert_int_equal(uid_of(tenants, "org_a"), 703);
    assert_int_equal(uid_of(tenants, "org_b"), 701);
    tenants_close(tenants);
    assert_file(place, "700 org_a\n701 org_b\n702 org_c\n703 org_a\n");
    tenants = open_range(place, 700, 710);
    assert_int_equal(uid_of(tenants, "org_a"), 703);
    assert_int_equal(uid_of(tenants, "org_d"), 704);
    tenants_close(tenants);
}

/* The machine stopped while the line was written: no process has run as that user. */
static void incomplete_line_is_overwritten(void **state)
{
    struct place *place = *state;
    write_file(place, "700 org_a\n701 org_");
    struct tenants *tenants = open_range(place, 700, 709);
    assert_int_equal(uid_of(tenants, "org_c"), 701);
    tenants_close(tenants);
    assert_file(place, "700 org_a\n701 org_c\n");
}

static void invalid_line_is_rejected(void **state)
{
    struct place *place = *state;
    static const char *const wrong[] = { "700 org_a\nx org_b\n", "700 org_a\n0 org_b\n",
                                         "700 org_a\n701\n", "700 org_a\n\n" };
    struct user_range users = { .first = 700, .last = 709 };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        struct tenants *tenants = NULL;
        struct failure why = { 0 };
        write_file(place, wrong[i]);
        assert_int_equal(tenants_open(place->folder, &users, true, &tenants, &why),
                         ERR_INVALID);
        assert_non_null(strstr(why.text, "line 2: not a uid and an organization"));
    }
}

static void without_a_range_all_organizations_share_a_user(void **state)
{
    struct place *place = *state;
    struct user_range one = { .first = 700, .last = 700, .gid = 50 };
    struct process_user user;
    struct tenants *tenants;
    struct failure why = { 0 };
    assert_int_equal(tenants_open(place->folder, &one, false, &tenants, &why), OK);
    assert_int_equal(tenants_find(tenants, SLICE(""), &user, &why), OK);
    assert_int_equal(user.uid, 700);
    assert_int_equal(user.gid, 50);
    tenants_close(tenants);
    assert_int_equal(tenants_open(place->folder, NULL, false, &tenants, &why), OK);
    assert_int_equal(tenants_find(tenants, SLICE("org_a"), &user, &why), OK);
    assert_int_equal(user.uid, 0);
    tenants_close(tenants);
    assert_int_equal(access(place->file, F_OK), -1);
}

static void unnamed_organization_has_no_user(void **state)
{
    struct place *place = *state;
    struct process_user user;
    struct failure why = { 0 };
    struct tenants *tenants = open_range(place, 700, 709);
    assert_int_equal(tenants_find(tenants, SLICE(""), &user, &why), ERR_INVALID);
    tenants_close(tenants);
    assert_file(place, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, create, destroy)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_organization_has_the_next_uid_and_keeps_it),
        TEST(exhausted_range_gives_no_uid_twice),
        TEST(another_range_never_gives_an_earlier_uid),
        TEST(incomplete_line_is_overwritten),
        TEST(invalid_line_is_rejected),
        TEST(without_a_range_all_organizations_share_a_user),
        TEST(unnamed_organization_has_no_user),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
