/* leader_commands.c - seals commands and their outputs, and finds the command of an output. */
#include "server/peers/leader_commands.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/bytes.h"
#include "base/vault/secret.h"

enum { CONTEXT_MAX = 64 };

/* Frames of both directions and of other numbers do not open as this one. */
static struct slice context_of(enum repl_kind kind, uint64_t number, char text[CONTEXT_MAX])
{
    snprintf(text, CONTEXT_MAX, "peer %s %" PRIu64,
             kind == REPL_COMMAND ? "command" : "answer", number);
    return slice_of(text);
}

static void make_frame(const struct vault *vault, enum repl_kind kind, uint64_t number,
                       struct slice text, struct repl_frame *frame)
{
    char context[CONTEXT_MAX];
    struct buf sealed = { 0 };
    vault_seal(vault, context_of(kind, number, context), text, &sealed);
    *frame = (struct repl_frame){ .kind = kind,
                                  .command = { .number = number,
                                               .text = bytes_create(buf_slice(&sealed)) } };
    buf_finish(&sealed);
}

static enum err open_frame(const struct vault *vault, enum repl_kind kind,
                           const struct repl_command *command, struct buf *text)
{
    char context[CONTEXT_MAX];
    return vault_unseal_message(vault, context_of(kind, command->number, context),
                                bytes_slice(command->text), text);
}

/* ---- the follower's side ---- */

void leader_commands_init(struct leader_commands *commands, const struct vault *vault)
{
    *commands = (struct leader_commands){ .vault = vault };
    list_init(&commands->pending);
}

bool leader_commands_may_add(struct leader_commands *commands, int64_t now_ms)
{
    if (now_ms - commands->second_ms >= 1000) {
        commands->second_ms = now_ms;
        commands->in_second = 0;
    }
    return commands->count < LEADER_COMMANDS_MAX &&
           commands->in_second < LEADER_COMMANDS_PER_S;
}

static void leave(struct leader_commands *commands, struct leader_command *command)
{
    list_remove(&command->link);
    commands->count--;
}

void leader_commands_add(struct leader_commands *commands, struct leader_command *command,
                         struct slice line, struct repl_frame *frame)
{
    command->number = ++commands->number;
    commands->count++;
    commands->in_second++;
    list_append(&commands->pending, &command->link);
    make_frame(commands->vault, REPL_COMMAND, command->number, line, frame);
}

static struct leader_command *find(const struct leader_commands *commands, uint64_t number)
{
    list_each (link, &commands->pending) {
        struct leader_command *command = container_of(link, struct leader_command, link);
        if (command->number == number)
            return command;
    }
    return NULL;
}

/* So it is after the rotation of a key that this gateway was not given. */
static const char lacks_key[] =
    "the leading gateway may have carried this out, but responds with an encryption key "
    "that "
    "this gateway lacks; restart this one with both keys, that of the leader as "
    "RUNCAST_NEXT_ENCRYPTION_KEY";

void leader_commands_take(struct leader_commands *commands,
                          const struct repl_command *answer)
{
    struct leader_command *command = find(commands, answer->number);
    struct buf output = { 0 };
    if (!command)
        return;
    enum err refused = open_frame(commands->vault, REPL_ANSWER, answer, &output);
    leave(commands, command);
    command->done(command, buf_slice(&output), refused ? lacks_key : NULL);
    secret_forget_buf(&output);
}

void leader_commands_end(struct leader_commands *commands, const char *why)
{
    while (!list_empty(&commands->pending)) {
        struct leader_command *command =
            container_of(commands->pending.next, struct leader_command, link);
        leave(commands, command);
        command->done(command, (struct slice){ 0 }, why);
    }
}

/* ---- the leader's side ---- */

enum err leader_command_open(const struct vault *vault, const struct repl_command *command,
                             struct buf *line)
{
    return open_frame(vault, REPL_COMMAND, command, line);
}

void leader_command_answer(const struct vault *vault, uint64_t number, struct slice output,
                           struct repl_frame *frame)
{
    make_frame(vault, REPL_ANSWER, number, output, frame);
}
