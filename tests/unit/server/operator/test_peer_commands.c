/* Commands of followers at the leader: carried out and answered, unless the follower has left
 * or the command cannot be read. */
#include "tests/support/world/unit.h"

#include <poll.h>
#include <string.h>

#include "base/mem.h"
#include "server/operator/peer_commands.h"
#include "server/subcommands.h"
#include "tests/support/world/api_world.h"

#define OTHER "a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1"

enum { RUNNING_MAX = 64 };

struct scene {
    struct api_world world;
    struct operators *operators;
    struct peer_commands *commands;
    const struct vault *vault; /* of the accounts */
    struct source_follower follower;
    struct leader_commands sent; /* by the follower */
    unsigned answers;
    struct buf text; /* of the last answer */
};

static void on_send(void *owner, struct source_follower *to, const struct repl_frame *frame)
{
    struct scene *scene = owner;
    char context[64];
    assert_ptr_equal(to, &scene->follower);
    assert_int_equal(frame->kind, REPL_ANSWER);
    buf_clear(&scene->text);
    snprintf(context, sizeof(context), "peer answer %u", (unsigned)frame->command.number);
    assert_int_equal(vault_unseal_message(scene->vault, slice_of(context),
                                          bytes_slice(frame->command.text), &scene->text),
                     OK);
    scene->answers++;
}

static void ignore(struct leader_command *command, struct slice output, const char *why)
{
    (void)command;
    (void)output;
    (void)why;
}

/* Sends a text, which must begin with the line of its actor, sealed with a key. */
static void send_sealed(struct scene *scene, const struct vault *vault, const char *text)
{
    struct leader_command command = { .done = ignore };
    struct repl_frame frame;
    scene->sent.vault = vault;
    leader_commands_add(&scene->sent, &command, slice_of(text), &frame);
    list_remove(&command.link);
    peer_commands_take(scene->commands, &scene->follower, &frame.command);
    repl_frame_finish(&frame);
}

static void send_line(struct scene *scene, const char *line)
{
    char text[256];
    snprintf(text, sizeof(text), "uid 0, pid 1 at b\n%s", line);
    send_sealed(scene, scene->vault, text);
}

static bool has_answer(const struct scene *scene, const char *part)
{
    return memmem(scene->text.ptr, scene->text.len, part, strlen(part)) != NULL;
}

/* A thread writes the changes. */
static void pass(struct scene *scene)
{
    poll(NULL, 0, 1);
    api_world_settle(&scene->world);
}

static void until_answered(struct scene *scene, unsigned answers)
{
    while (scene->answers < answers)
        pass(scene);
    assert_int_equal(scene->answers, answers);
}

static void command_is_carried_out_and_answered(void **state)
{
    struct scene *scene = *state;
    send_line(scene, "[\"org\",\"create\",\"Made here\"]");
    until_answered(scene, 1);
    assert_true(has_answer(scene, "created organization made-here"));
    send_line(scene, "[\"org\",\"list\"]");
    until_answered(scene, 2);
    assert_true(has_answer(scene, "Made here"));
    send_line(scene, "[\"org\",\"create\",\"Made here\"]");
    until_answered(scene, 3);
    assert_true(has_answer(scene, "error: the organization made-here already exists"));
}

static void command_without_meaning_is_refused(void **state)
{
    struct scene *scene = *state;
    send_line(scene, "gibberish");
    assert_true(has_answer(scene, "error: unknown command of the gateway"));
    send_sealed(scene, scene->vault, "no line of an actor");
    assert_true(has_answer(scene, "error: malformed command"));
    send_sealed(scene, scene->vault, "");
    assert_true(has_answer(scene, "error: malformed command"));
    assert_int_equal(scene->answers, 3);
}

static void command_that_another_key_sealed_is_refused(void **state)
{
    struct scene *scene = *state;
    struct vault *other;
    struct failure why;
    assert_int_equal(vault_open(SLICE(OTHER), NULL, &other, &why), OK);
    send_sealed(scene, other, "an actor\n[\"org\",\"list\"]");
    assert_true(has_answer(scene, "error: the leading gateway lacks the encryption key"));
    vault_close(other);
}

static void follower_that_has_left_gets_no_answer(void **state)
{
    struct scene *scene = *state;
    send_line(scene, "[\"org\",\"create\",\"Made here\"]");
    peer_commands_leave(scene->commands, &scene->follower);
    send_line(scene, "[\"org\",\"list\"]"); /* carried out after it */
    until_answered(scene, 1);
    assert_true(has_answer(scene, "Made here"));
}

static void commands_beyond_the_limit_are_refused(void **state)
{
    struct scene *scene = *state;
    for (int i = 0; i < RUNNING_MAX; i++)
        send_line(scene, "[\"org\",\"create\",\"Made here\"]");
    assert_int_equal(scene->answers, 0);
    send_line(scene, "[\"org\",\"list\"]");
    assert_int_equal(scene->answers, 1);
    assert_true(has_answer(scene, "error: too many commands are in progress"));
    until_answered(scene, RUNNING_MAX + 1);
}

static void command_outlives_the_service(void **state)
{
    struct scene *scene = *state;
    send_line(scene, "[\"org\",\"create\",\"Made here\"]");
    peer_commands_destroy(scene->commands);
    scene->commands = NULL;
    while (!accounts_organization(scene->world.accounts, SLICE("made-here")))
        pass(scene);
    api_world_settle(&scene->world);
    assert_int_equal(scene->answers, 0);
}

static int open_scene(void **state)
{
    struct scene *scene = mem_new(struct scene);
    api_world_open(&scene->world);
    scene->vault = accounts_vault(scene->world.accounts);
    const struct operators_options operators = { .commands = subcommands,
                                                 .accounts = scene->world.accounts,
                                                 .writer = scene->world.writer,
                                                 .name = "a" };
    scene->operators = operators_create(&operators);
    operators_lead(scene->operators);
    const struct peer_commands_options options = { .vault = scene->vault,
                                                   .operators = scene->operators,
                                                   .send = on_send,
                                                   .owner = scene };
    scene->commands = peer_commands_create(&options);
    leader_commands_init(&scene->sent, scene->vault);
    *state = scene;
    return 0;
}

static int close_scene(void **state)
{
    struct scene *scene = *state;
    peer_commands_destroy(scene->commands);
    operators_destroy(scene->operators);
    api_world_close(&scene->world);
    buf_finish(&scene->text);
    free(scene);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(command_is_carried_out_and_answered),
        TEST(command_without_meaning_is_refused),
        TEST(command_that_another_key_sealed_is_refused),
        TEST(follower_that_has_left_gets_no_answer),
        TEST(commands_beyond_the_limit_are_refused),
        TEST(command_outlives_the_service),
    };
    return cmocka_run_group_tests_name("peer_commands", tests, NULL, NULL);
}
