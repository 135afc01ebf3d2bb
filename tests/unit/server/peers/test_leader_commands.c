/* Subcommands between a follower and the leader: sealed, answered once, and ended with the
 * connection. */
#include "tests/support/world/unit.h"

#include "base/mem.h"
#include "server/peers/leader_commands.h"

#define KEY "5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e"
#define OTHER "a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1"

struct command {
    struct leader_command command;
    char output[64], why[256];
    unsigned ends;
};

static void on_done(struct leader_command *done, struct slice output, const char *why)
{
    struct command *command = container_of(done, struct command, command);
    snprintf(command->output, sizeof(command->output), "%.*s", SLICE_ARG(output));
    snprintf(command->why, sizeof(command->why), "%s", why ? why : "");
    command->ends++;
}

static struct vault *open_vault(const char *key)
{
    struct vault *vault;
    struct failure why;
    assert_int_equal(vault_open(slice_of(key), NULL, &vault, &why), OK);
    return vault;
}

static void answer(struct leader_commands *commands, const struct vault *vault,
                   uint64_t number, const char *output)
{
    struct repl_frame frame;
    leader_command_answer(vault, number, slice_of(output), &frame);
    leader_commands_take(commands, &frame.command);
    repl_frame_finish(&frame);
}

static void each_command_gets_its_own_output_once(void **state)
{
    struct vault *vault = open_vault(KEY);
    struct leader_commands commands;
    struct command all[2] = { { .command.done = on_done }, { .command.done = on_done } };
    (void)state;
    leader_commands_init(&commands, vault);
    for (size_t i = 0; i < 2; i++) {
        struct repl_frame frame;
        struct buf line = { 0 };
        leader_commands_add(&commands, &all[i].command, SLICE("[\"keys\"]"), &frame);
        assert_null(memmem(frame.command.text->data, frame.command.text->len, "keys", 4));
        assert_int_equal(leader_command_open(vault, &frame.command, &line), OK);
        assert_true(slice_is(buf_slice(&line), "[\"keys\"]"));
        buf_finish(&line);
        repl_frame_finish(&frame);
    }
    answer(&commands, vault, 2, "the second");
    answer(&commands, vault, 1, "the first");
    answer(&commands, vault, 1, "again");
    answer(&commands, vault, 3, "unknown");
    assert_string_equal(all[0].output, "the first");
    assert_string_equal(all[1].output, "the second");
    assert_int_equal(all[0].ends + all[1].ends, 2);
    assert_string_equal(all[0].why, "");
    vault_close(vault);
}

static void add(struct leader_commands *commands, struct command *command)
{
    struct repl_frame frame;
    command->command.done = on_done;
    leader_commands_add(commands, &command->command, SLICE("[]"), &frame);
    repl_frame_finish(&frame);
}

/* The leader would cut the replication of a follower that sends too much. */
static void floods_are_refused(void **state)
{
    struct vault *vault = open_vault(KEY);
    struct leader_commands commands;
    struct command all[LEADER_COMMANDS_MAX] = { 0 }, one = { 0 };
    unsigned sent = 0;
    (void)state;
    leader_commands_init(&commands, vault);
    for (; leader_commands_may_add(&commands, 5000); sent++)
        add(&commands, &all[sent]);
    assert_int_equal(sent, LEADER_COMMANDS_MAX);
    leader_commands_end(&commands, "lost");
    for (; leader_commands_may_add(&commands, 5999); sent++) {
        add(&commands, &one);
        answer(&commands, vault, commands.number, "done");
    }
    assert_int_equal(sent, LEADER_COMMANDS_PER_S);
    assert_true(leader_commands_may_add(&commands, 6000));
    vault_close(vault);
}

static void text_of_another_key_number_or_direction_does_not_open(void **state)
{
    struct vault *vault = open_vault(KEY), *other = open_vault(OTHER);
    struct leader_commands commands;
    struct command one = { .command.done = on_done };
    struct repl_frame frame;
    struct buf line = { 0 };
    (void)state;
    leader_commands_init(&commands, vault);
    leader_commands_add(&commands, &one.command, SLICE("gateways"), &frame);
    assert_int_equal(leader_command_open(other, &frame.command, &line), ERR_INVALID);
    frame.command.number++;
    assert_int_equal(leader_command_open(vault, &frame.command, &line), ERR_INVALID);
    frame.command.number--;
    assert_int_equal(line.len, 0);
    leader_commands_take(&commands, &frame.command); /* reflected to its sender */
    assert_int_equal(one.ends, 1);
    assert_string_equal(one.output, "");
    assert_true(strstr(one.why, "restart this one with both keys"));
    repl_frame_finish(&frame);
    buf_finish(&line);
    vault_close(other);
    vault_close(vault);
}

static void commands_end_with_the_connection(void **state)
{
    struct vault *vault = open_vault(KEY);
    struct leader_commands commands;
    struct command one = { .command.done = on_done };
    struct repl_frame frame;
    (void)state;
    leader_commands_init(&commands, vault);
    leader_commands_add(&commands, &one.command, SLICE("gateways"), &frame);
    leader_commands_end(&commands, "lost");
    leader_commands_end(&commands, "lost again");
    answer(&commands, vault, 1, "late");
    assert_int_equal(one.ends, 1);
    assert_string_equal(one.why, "lost");
    repl_frame_finish(&frame);
    vault_close(vault);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_command_gets_its_own_output_once),
        cmocka_unit_test(floods_are_refused),
        cmocka_unit_test(text_of_another_key_number_or_direction_does_not_open),
        cmocka_unit_test(commands_end_with_the_connection),
    };
    return cmocka_run_group_tests_name("leader_commands", tests, NULL, NULL);
}
