/* peer_commands.c - opens the commands of followers, and seals the responses. */
#include "server/operator/peer_commands.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/vault/secret.h"

enum { RUNNING_MAX = 64 };

struct peer_commands {
    struct peer_commands_options options;
    struct list running; // peer_command::link
    unsigned count;
};

struct peer_command {
    struct operator_call call;
    struct peer_commands *all;    /* NULL: it has been destroyed */
    struct source_follower *from; /* NULL: it has left */
    uint64_t number;
    struct list link; // peer_commands::running, while all is not NULL
};

static void answer(struct peer_commands *all, struct source_follower *to, uint64_t number,
                   struct slice text)
{
    struct repl_frame frame;
    leader_command_answer(all->options.vault, number, text, &frame);
    all->options.send(all->options.owner, to, &frame);
    repl_frame_finish(&frame);
}

static void on_done(struct operator_call *call, struct slice text)
{
    struct peer_command *command = container_of(call, struct peer_command, call);
    struct peer_commands *all = command->all;
    struct source_follower *from = command->from;
    if (all) {
        list_remove(&command->link);
        all->count--;
    }
    if (all && from)
        answer(all, from, command->number, text);
    operator_call_finish(call);
    free(command);
}

/* Splits the text into the actor and the line; false if either is too long. */
static bool read_text(struct operator_call *call, struct slice text)
{
    struct slice actor;
    bool is_whole = slice_split(&text, '\n', &actor) && text.ptr;
    if (!is_whole || actor.len >= sizeof(call->actor) || text.len >= sizeof(call->line) ||
        memchr(text.ptr, 0, text.len))
        return false;
    memcpy(call->actor, actor.ptr, actor.len);
    memcpy(call->line, text.ptr, text.len);
    return true;
}

static void begin(struct peer_commands *all, struct source_follower *from, uint64_t number,
                  struct slice text)
{
    struct peer_command *command = mem_new(struct peer_command);
    command->all = all;
    command->from = from;
    command->number = number;
    command->call.done = on_done;
    list_append(&all->running, &command->link);
    all->count++;
    if (read_text(&command->call, text))
        operator_call_begin(&command->call, all->options.operators);
    else
        on_done(&command->call, SLICE(OPERATOR_ERROR_MARK "malformed command"));
}

void peer_commands_take(struct peer_commands *commands, struct source_follower *from,
                        const struct repl_command *command)
{
    struct buf text = { 0 };
    if (leader_command_open(commands->options.vault, command, &text))
        answer(commands, from, command->number,
               SLICE(OPERATOR_ERROR_MARK
                     "the leading gateway lacks the encryption key that "
                     "sealed the command"));
    else if (commands->count >= RUNNING_MAX)
        answer(commands, from, command->number,
               SLICE(OPERATOR_ERROR_MARK "too many commands are in progress; try again"));
    else
        begin(commands, from, command->number, buf_slice(&text));
    secret_forget_buf(&text);
}

void peer_commands_leave(struct peer_commands *commands,
                         const struct source_follower *follower)
{
    list_each (link, &commands->running) {
        struct peer_command *command = container_of(link, struct peer_command, link);
        if (command->from == follower)
            command->from = NULL;
    }
}

struct peer_commands *peer_commands_create(const struct peer_commands_options *options)
{
    struct peer_commands *commands = mem_new(struct peer_commands);
    commands->options = *options;
    list_init(&commands->running);
    return commands;
}

void peer_commands_destroy(struct peer_commands *commands)
{
    if (!commands)
        return;
    list_each (link, &commands->running)
        container_of(link, struct peer_command, link)->all = NULL;
    free(commands);
}
