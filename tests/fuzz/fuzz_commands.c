/* fuzz_commands - input of operators: the line of a subcommand, or a key file.
 *
 * The first byte chooses one of them. A command is answered, and the accounts can be listed
 * after it. A valid key is unchanged after it was written and read again. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "accounts/account_command.h"
#include "base/list.h"
#include "base/text.h"
#include "base/vault/key_file.h"
#include "server/subcommands.h"
#include "tests/fuzz/judge.h"
#include "tests/support/world/api_world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct saying {
    struct account_command command;
    bool done;
};

static void on_done(struct account_command *command, enum err status)
{
    struct saying *saying = container_of(command, struct saying, command);
    assert(!status || command->write.why.text[0]);
    saying->done = true;
}

static void say(struct api_world *world, struct slice line)
{
    char *text = NULL;
    size_t len = 0;
    struct saying saying = { .command = { .accounts = world->accounts,
                                          .writer = world->writer,
                                          .out = open_memstream(&text, &len),
                                          .done = on_done } };
    struct account_command *command = &saying.command;
    const struct subcommand *row;
    enum err refused = account_command_read(command, line);
    if (!refused)
        refused = subcommand_read(subcommands, command->words, command->word_count, &row,
                                  &command->said, &command->write.why);
    if (!refused && row->change) {
        command->change = row->change;
        account_command_begin(command);
        for (int i = 0; !saying.done; i++) {
            assert(i < 1000);
            api_world_settle(world);
        }
    } else {
        assert(!refused || command->write.why.text[0]);
        account_command_forget(command);
    }
    fclose(saying.command.out);
    free(text);
}

/* Runs one command per line. */
static void take_lines(struct slice lines)
{
    static const char *const lists[] = {
        "[\"org\",\"list\"]",   "[\"project\",\"list\"]",      "[\"user\",\"list\"]",
        "[\"token\",\"list\"]", "[\"worker-token\",\"list\"]", "[\"keys\"]"
    };
    struct api_world world;
    struct slice line;
    judge_pause();
    api_world_open(&world);
    judge_resume();
    for (int i = 0; i < 20 && slice_split(&lines, '\n', &line); i++)
        say(&world, line);
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        say(&world, slice_of(lists[i]));
    judge_pause();
    api_world_close(&world);
    judge_resume();
}

static void take_key_file(struct slice content)
{
    char path[64], text[2 * KEY_LEN + 1];
    unsigned char key[KEY_LEN], again[KEY_LEN];
    struct failure why;
    int file = memfd_create("key", MFD_CLOEXEC);
    assert(file >= 0 && fchmod(file, 0600) == 0);
    assert(write(file, content.ptr, content.len) == (ssize_t)content.len);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    if (key_file_read(path, key, &why)) {
        assert(why.text[0]);
    } else {
        text_to_hex(key, KEY_LEN, text);
        assert(key_read((struct slice){ text, 2 * KEY_LEN }, again));
        assert(!memcmp(key, again, KEY_LEN));
    }
    close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size || size > 65536)
        return 0;
    struct slice rest = { (const char *)data + 1, size - 1 };
    if (data[0] & 1)
        take_lines(rest);
    else
        take_key_file(rest);
    return 0;
}
