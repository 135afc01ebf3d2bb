/* Parts around a child: the tail of its output, its cgroup, user and order, and its
 * fake. */
#include "tests/support/world/unit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "os/process/cgroup.h"
#include "os/process/launch_order.h"
#include "os/process/tail.h"
#include "os/process/user.h"
#include "tests/support/fakes/fake_process.h"

/* --- tail ------------------------------------------------------------------------------ */

static void assert_text(struct slice text, const char *expected)
{
    if (!slice_is(text, expected))
        fail_msg("'%.*s' is not '%s'", SLICE_ARG(text), expected);
}

static void a_tail_keeps_the_last_bytes(void **state)
{
    (void)state;
    struct tail tail;
    tail_init(&tail, 8);
    assert_text(tail_text(&tail), "");
    tail_add(&tail, SLICE("abc"));
    assert_text(tail_text(&tail), "abc");
    tail_add(&tail, SLICE("defgh"));
    assert_text(tail_text(&tail), "abcdefgh");
    tail_add(&tail, SLICE("ij"));
    assert_text(tail_text(&tail), "cdefghij");
    tail_add(&tail, SLICE("k"));
    tail_add(&tail, SLICE("0123456789ABC"));
    assert_text(tail_text(&tail), "56789ABC");
    assert_int_equal(tail.dropped, 16);
    tail_finish(&tail);
}

/* Compares with a plain implementation, for pieces of all lengths. */
static void tail_of_many_pieces_is_their_end(void **state)
{
    (void)state;
    struct tail tail;
    struct buf all = { 0 };
    tail_init(&tail, 37);
    for (int i = 0; i < 500; i++) {
        char piece[100];
        size_t len = (size_t)(i * 31 % 97);
        for (size_t at = 0; at < len; at++)
            piece[at] = (char)('a' + (i + (int)at) % 26);
        tail_add(&tail, (struct slice){ piece, len });
        buf_add(&all, (struct slice){ piece, len });
        size_t kept = all.len < 37 ? all.len : 37;
        struct slice expected = slice_from(buf_slice(&all), all.len - kept);
        if (i % 3 == 0)
            assert_true(slice_equal(tail_text(&tail), expected));
    }
    buf_finish(&all);
    tail_finish(&tail);
}

static void a_tail_begins_with_a_whole_character(void **state)
{
    (void)state;
    struct tail tail;
    tail_init(&tail, 4);
    tail_add(&tail, SLICE("x\xe2\x82\xac"
                          "ab"));
    assert_text(tail_text(&tail), "ab");
    tail_finish(&tail);
}

static void tail_returns_its_last_lines(void **state)
{
    (void)state;
    struct tail tail;
    tail_init(&tail, 64);
    assert_text(tail_lines(&tail, 3, 100), "");
    tail_add(&tail, SLICE("one\ntwo\n\nthree\n"));
    assert_text(tail_lines(&tail, 1, 100), "three\n");
    assert_text(tail_lines(&tail, 2, 100), "\nthree\n");
    assert_text(tail_lines(&tail, 3, 100), "two\n\nthree\n");
    assert_text(tail_lines(&tail, 9, 100), "one\ntwo\n\nthree\n");
    assert_text(tail_lines(&tail, 9, 8), "\nthree\n");
    assert_text(tail_lines(&tail, 9, 3), "ee\n");
    assert_text(tail_lines(&tail, 0, 100), "");
    tail_finish(&tail);
}

/* --- groups ---------------------------------------------------------------------------- */

static char root[] = "/tmp/runcast-groups-XXXXXX";

static void assert_file(const char *name, const char *expected)
{
    char path[256], text[64] = "";
    snprintf(path, sizeof(path), "%s/%s", root, name);
    FILE *file = fopen(path, "re");
    if (!file)
        fail_msg("there is no %s", path);
    size_t len = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[len] = '\0';
    assert_string_equal(text, expected);
}

static void cgroup_limits_are_written_to_files(void **state)
{
    (void)state;
    struct failure why;
    char path[CGROUP_PATH_MAX], control[256];
    snprintf(root, sizeof(root), "/tmp/runcast-groups-XXXXXX");
    assert_non_null(mkdtemp(root));
    assert_int_equal(cgroup_prepare(root, &why), OK);
    assert_file("cgroup.subtree_control", "+pids");
    struct cgroup_limits limits = { .memory = (uint64_t)640 << 20,
                                    .cpu_weight = 50,
                                    .cpu_thousandth = 500 };
    assert_int_equal(cgroup_make(root, "run_1", &limits, path, &why), OK);
    assert_file("run_1/memory.max", "671088640");
    assert_file("run_1/cpu.weight", "50");
    assert_file("run_1/cpu.max", "50000 100000");
    assert_file("run_1/pids.max", "256");
    limits = (struct cgroup_limits){ .pids = 9 };
    assert_int_equal(cgroup_make(root, "run_1", &limits, path, &why), OK);
    assert_file("run_1/pids.max", "9");
    assert_int_equal(cgroup_remove(path, &why), OK);
    assert_int_equal(cgroup_remove(path, &why), OK);
    assert_int_equal(access(path, F_OK), -1);
    snprintf(control, sizeof(control), "%s/cgroup.subtree_control", root);
    unlink(control);
    rmdir(root);
    assert_int_equal(cgroup_prepare(root, &why), ERR_FORBIDDEN);
    assert_int_equal(cgroup_make(root, "run_1", &limits, path, &why), ERR_FORBIDDEN);
}

/* --- users ----------------------------------------------------------------------------- */

static void assert_refused(const char *text, const char *reason)
{
    struct user_range range;
    struct failure why = { 0 };
    assert_int_equal(user_resolve(text, &range, &why), ERR_INVALID);
    assert_string_equal(why.text, reason);
}

static void user_may_be_a_name_a_number_or_a_range(void **state)
{
    (void)state;
    struct user_range range;
    struct failure why;
    assert_int_equal(user_resolve("nobody", &range, &why), OK);
    assert_true(range.first && range.first == range.last && range.gid);
    assert_int_equal(user_resolve("54321", &range, &why), OK);
    struct process_user user = user_of(&range, range.first);
    assert_int_equal(user.uid, 54321);
    assert_int_equal(user.gid, 54321);
    assert_int_equal(user_resolve("70000-70009", &range, &why), OK);
    user = user_of(&range, 70003);
    assert_int_equal(user.uid, 70003);
    assert_int_equal(user.gid, 70003);
}

static void root_and_invalid_users_are_rejected(void **state)
{
    (void)state;
    assert_refused("", "user missing");
    assert_refused("root", "root: children never run as root");
    assert_refused("0", "0: children never run as root");
    assert_refused("0-9", "0-9: children never run as root");
    assert_refused("no-such-user", "no-such-user: user not found");
    assert_refused("12-", "12-: user not found");
    assert_refused("9-8", "9-8: invalid range: it ends before it begins");
    assert_refused("1-1", "1-1: 1 is the uid of the user daemon; choose unused uids");
    assert_refused("4294967295", "4294967295: 4294967295 is not a uid");
    assert_refused("1-4294967296", "1-4294967296: 4294967296 is not a uid");
}

/* --- orders ---------------------------------------------------------------------------- */

static void order_is_read_as_it_was_written(void **state)
{
    (void)state;
    const char *const arguments[] = { "a", "", "c d", NULL };
    const char *const environment[] = { "A=1", NULL };
    struct launch_order order = { .spawner = 77,
                                  .options = { .program = "/bin/a",
                                               .arguments = arguments,
                                               .environment = environment,
                                               .user = { 5, 6 },
                                               .limits = { 1, 2, UINT64_C(1) << 40 },
                                               .namespaces = PROCESS_NAMESPACES_OFF,
                                               .oom_score_adj = 300 } };
    struct launch_order read = { 0 };
    struct buf bytes = { 0 };
    launch_order_write(&order, &bytes);
    assert_true(launch_order_read(buf_slice(&bytes), &read));
    assert_int_equal(read.spawner, 77);
    assert_string_equal(read.options.program, "/bin/a");
    assert_string_equal(read.options.directory, "/");
    assert_string_equal(read.options.cgroup, "");
    assert_string_equal(read.options.arguments[2], "c d");
    assert_null(read.options.arguments[3]);
    assert_string_equal(read.options.environment[0], "A=1");
    assert_null(read.options.environment[1]);
    assert_memory_equal(&read.options.user, &order.options.user, sizeof(read.options.user));
    assert_memory_equal(&read.options.limits, &order.options.limits,
                        sizeof(read.options.limits));
    assert_int_equal(read.options.namespaces, PROCESS_NAMESPACES_OFF);
    assert_int_equal(read.options.oom_score_adj, 300);
    free((char **)read.options.arguments);
    free((char **)read.options.environment);
    buf_finish(&bytes);
}

/* --- the fake -------------------------------------------------------------------------- */

struct heard {
    struct process process;
    struct buf output;
    int ends;
    struct process_end end;
};

static void on_output(struct process *process, enum process_pipe pipe, struct slice text)
{
    struct heard *heard = container_of(process, struct heard, process);
    assert_int_equal(pipe, PROCESS_STDERR);
    buf_add(&heard->output, text);
}

static void on_ended(struct process *process, const struct process_end *end)
{
    struct heard *heard = container_of(process, struct heard, process);
    heard->ends++;
    heard->end = *end;
}

static const struct process_events heard_events = { on_output, on_ended };

static void fake_process_keeps_the_contract(void **state)
{
    (void)state;
    const char *const arguments[] = { "node", "index.mjs", NULL };
    const char *const environment[] = { "HOME=/tmp", "A=", NULL };
    struct process_options options = { .program = "node",
                                       .arguments = arguments,
                                       .environment = environment,
                                       .deadline_ms = 500 };
    struct loop *loop = loop_create(NULL);
    struct fake_children *fake = fake_children_create(loop);
    struct processes *processes = fake_children_processes(fake);
    struct heard heard = { 0 };
    struct failure why;

    fake_children_refuse_next(fake, "no room");
    assert_int_equal(
        process_spawn(processes, &heard.process, &options, &heard_events, &why),
        ERR_NO_ROOM);
    assert_string_equal(why.text, "no room");
    assert_int_equal(
        process_spawn(processes, &heard.process, &options, &heard_events, &why), OK);
    struct child *child = fake_children_find(fake, 0);
    assert_string_equal(fake_process_program(child), "node");
    assert_string_equal(fake_process_argument(child, 1), "index.mjs");
    assert_null(fake_process_argument(child, 2));
    assert_string_equal(fake_process_variable(child, "HOME"), "/tmp");
    assert_string_equal(fake_process_variable(child, "A"), "");
    assert_null(fake_process_variable(child, "B"));

    fake_process_write(child, PROCESS_STDERR, SLICE("said"));
    assert_int_equal(heard.output.len, 0);
    loop_turn(loop, 0);
    assert_text(buf_slice(&heard.output), "said");
    process_signal(&heard.process, SIGTERM);
    process_kill(&heard.process, SIGUSR1);
    assert_int_equal(fake_process_signal(child, 0), -SIGTERM);
    assert_int_equal(fake_process_signal(child, 1), SIGUSR1);

    process_pause(&heard.process, PROCESS_STDERR);
    fake_process_write(child, PROCESS_STDERR, SLICE(" more"));
    fake_process_end(child, PROCESS_EXITED, 3);
    loop_turn(loop, 0);
    assert_int_equal(heard.ends, 0);
    process_resume(&heard.process, PROCESS_STDERR);
    loop_turn(loop, 0);
    assert_text(buf_slice(&heard.output), "said more");
    assert_int_equal(heard.ends, 1);
    assert_int_equal(heard.end.status, 3);

    process_spawn(processes, &heard.process, &options, &heard_events, &why);
    loop_turn(loop, 499);
    assert_int_equal(heard.ends, 1);
    loop_turn(loop, 1);
    loop_turn(loop, 0);
    assert_int_equal(heard.ends, 2);
    assert_true(heard.end.overdue);
    assert_int_equal(fake_children_count(fake), 0);
    assert_int_equal(fake_children_spawned(fake), 2);
    buf_finish(&heard.output);
    fake_children_destroy(fake);
    loop_destroy(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tail_keeps_the_last_bytes),
        cmocka_unit_test(tail_of_many_pieces_is_their_end),
        cmocka_unit_test(a_tail_begins_with_a_whole_character),
        cmocka_unit_test(tail_returns_its_last_lines),
        cmocka_unit_test(cgroup_limits_are_written_to_files),
        cmocka_unit_test(user_may_be_a_name_a_number_or_a_range),
        cmocka_unit_test(root_and_invalid_users_are_rejected),
        cmocka_unit_test(order_is_read_as_it_was_written),
        cmocka_unit_test(fake_process_keeps_the_contract),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
