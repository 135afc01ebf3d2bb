/* site: one supervisor at a time uses a folder, and removes files that another one left. */
#include "supervisor/versions/site.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "tests/support/world/unit.h"

enum { DEPTH = 300 };

struct place {
    uv_loop_t uv;
    struct loop *loop;
    char top[64], folder[96];
};

static int create(void **state)
{
    struct place *place = calloc(1, sizeof(*place));
    snprintf(place->top, sizeof(place->top), "/tmp/runcast-site-XXXXXX");
    assert_non_null(mkdtemp(place->top));
    snprintf(place->folder, sizeof(place->folder), "%s/versions", place->top);
    uv_loop_init(&place->uv);
    place->loop = loop_create(&place->uv);
    *state = place;
    return 0;
}

static int destroy(void **state)
{
    struct place *place = *state;
    char command[160];
    loop_destroy(place->loop);
    uv_run(&place->uv, UV_RUN_DEFAULT);
    uv_loop_close(&place->uv);
    snprintf(command, sizeof(command), "rm -rf %s", place->top);
    assert_int_equal(system(command), 0);
    free(place);
    return 0;
}

static struct site *open_site(struct place *place)
{
    struct failure why = { 0 };
    struct site *site = NULL;
    if (site_open(place->loop, place->folder, &site, &why))
        fail_msg("%s", why.text);
    return site;
}

static void lock_names_its_holder(void **state)
{
    struct place *place = *state;
    int status, told[2];
    char byte;
    assert_int_equal(site_holder(place->folder), 0);
    assert_int_equal(pipe(told), 0);
    pid_t child = fork();
    if (!child) {
        struct failure why;
        struct site *site;
        bool opened = site_open(place->loop, place->folder, &site, &why) == OK;
        if (write(told[1], opened ? "y" : "n", 1) == 1)
            pause();
        _exit(0);
    }
    assert_int_equal(read(told[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    assert_int_equal(site_holder(place->folder), child);
    struct failure why = { 0 };
    struct site *site;
    assert_int_equal(site_open(place->loop, place->folder, &site, &why), ERR_CONFLICT);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    assert_int_equal(site_holder(place->folder), 0);
    site_close(open_site(place));
    close(told[0]);
    close(told[1]);
}

static void only_children_of_an_earlier_supervisor_are_killed(void **state)
{
    struct place *place = *state;
    int status;
    struct site *site = open_site(place);
    pid_t orphan = fork();
    if (!orphan) {
        setpgid(0, 0);
        pause();
        _exit(0);
    }
    pid_t other = fork();
    if (!other) {
        pause();
        _exit(0);
    }
    site_add_child(site, orphan);
    site_add_child(site, other);
    site_drop_child(site, other);
    site_close(site);
    site = open_site(place);
    assert_int_equal(waitpid(orphan, &status, 0), orphan);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(waitpid(other, &status, WNOHANG), 0);
    kill(other, SIGKILL);
    waitpid(other, &status, 0);
    site_close(site);
}

/* Makes DEPTH nested folders, with a link out of them at the bottom. */
static void nest(const char *scratch, const char *victim)
{
    int folder = open(scratch, O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < DEPTH; i++) {
        assert_int_equal(mkdirat(folder, "d", 0700), 0);
        int next = openat(folder, "d", O_RDONLY | O_DIRECTORY);
        close(folder);
        folder = next;
    }
    assert_int_equal(symlinkat(victim, folder, "link"), 0);
    close(folder);
}

static void scratch_is_removed_however_deep_and_links_are_not_followed(void **state)
{
    struct place *place = *state;
    struct failure why = { 0 };
    char victim[128], inside[160], *scratch;
    struct site *site = open_site(place);
    snprintf(victim, sizeof(victim), "%s/victim", place->top);
    snprintf(inside, sizeof(inside), "%s/file", victim);
    assert_int_equal(mkdir(victim, 0700), 0);
    close(open(inside, O_WRONLY | O_CREAT, 0600));
    struct process_user user = { 0 };
    assert_int_equal(site_make_scratch(site, "runner-a", user, &scratch, &why), OK);
    char link[200];
    snprintf(link, sizeof(link), "%s/link", scratch);
    assert_int_equal(symlink(victim, link), 0);
    nest(scratch, victim);
    site_remove_scratch(site, "runner-a");
    assert_false(site_is_idle(site));
    while (!site_is_idle(site))
        uv_run(&place->uv, UV_RUN_ONCE);
    assert_int_not_equal(access(scratch, F_OK), 0);
    assert_int_equal(access(inside, F_OK), 0);
    free(scratch);
    assert_int_equal(site_make_scratch(site, "runner-b", user, &scratch, &why), OK);
    nest(scratch, victim);
    site_close(site);
    site = open_site(place); /* left by a process that died */
    site_remove_left(site);
    char *again;
    assert_int_equal(site_make_scratch(site, "runner-b", user, &again, &why), OK);
    assert_int_equal(rmdir(again), 0); /* nothing of the earlier one is in it */
    free(again);
    while (!site_is_idle(site))
        uv_run(&place->uv, UV_RUN_ONCE);
    assert_int_not_equal(access(scratch, F_OK), 0);
    assert_int_equal(access(inside, F_OK), 0);
    free(scratch);
    site_close(site);
}

static void folder_writable_by_others_is_rejected(void **state)
{
    struct place *place = *state;
    struct failure why = { 0 };
    struct site *site;
    site_close(open_site(place));
    chmod(place->folder, 0777);
    assert_int_equal(site_open(place->loop, place->folder, &site, &why), ERR_INVALID);
    assert_non_null(strstr(why.text, "other users can write"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lock_names_its_holder, create, destroy),
        cmocka_unit_test_setup_teardown(only_children_of_an_earlier_supervisor_are_killed,
                                        create, destroy),
        cmocka_unit_test_setup_teardown(
            scratch_is_removed_however_deep_and_links_are_not_followed, create, destroy),
        cmocka_unit_test_setup_teardown(folder_writable_by_others_is_rejected, create,
                                        destroy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
