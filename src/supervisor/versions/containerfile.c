/* containerfile.c - finds the commands among the lines that the CLI writes. */
#include "supervisor/versions/containerfile.h"

#include "base/mem.h"
#include "base/text.h"

/* The lines that the CLI writes for each kind of bundle. */
struct shape {
    const char *package, *install, *copy;
    bool copies_again;
};

static const struct shape shapes[] = {
    { "COPY --chown=node:node package.json ./",
      "RUN npm i --no-audit --no-fund --no-save --no-package-lock",
      "COPY --chown=node:node . .", true },
    { "COPY --chown=bun:bun package.json ./", "RUN bun install --production --no-save",
      "COPY --chown=bun:bun . .", false },
};

static const char last_line[] = "RUN mkdir -p node_modules";

/* An instruction: a line, and the lines that continue it. */
struct instruction {
    struct buf text;
    bool whole; /* its last line is not continued */
};

static struct slice without_return(struct slice line)
{
    return line.len && line.ptr[line.len - 1] == '\r'
               ? (struct slice){ line.ptr, line.len - 1 }
               : line;
}

static bool is_nothing(struct slice line)
{
    line = slice_trim(line);
    return !line.len || line.ptr[0] == '#';
}

/* Reads an instruction without comments and empty lines inside it. Returns false at the
 * end. */
static bool next_instruction(struct slice *rest, struct instruction *instruction)
{
    struct slice line;
    buf_clear(&instruction->text);
    instruction->whole = false;
    while (slice_split(rest, '\n', &line)) {
        line = without_return(line);
        if (is_nothing(line))
            continue;
        bool goes_on = line.ptr[line.len - 1] == '\\';
        buf_add(&instruction->text, (struct slice){ line.ptr, line.len - goes_on });
        if (!goes_on) {
            instruction->whole = true;
            return true;
        }
    }
    return instruction->text.len > 0;
}

static bool is_stage(struct slice line)
{
    return slice_starts(line, "FROM ");
}

static bool is_build_stage(struct slice line)
{
    static const char name[] = " AS build";
    size_t len = sizeof(name) - 1;
    return is_stage(line) && line.len > len &&
           memcmp(line.ptr + line.len - len, name, len) == 0;
}

/* Takes a command for the shell. Returns false for options of the builder or lists of
 * arguments. */
static bool take_command(struct containerfile *file, struct slice line)
{
    if (!slice_starts(line, "RUN ") || file->count == CONTAINERFILE_COMMANDS_MAX)
        return false;
    struct slice command = slice_trim(slice_from(line, 4));
    if (!command.len || slice_starts(command, "--") || command.ptr[0] == '[' ||
        slice_starts(command, "<<") || memchr(command.ptr, 0, command.len))
        return false;
    if (!file->commands)
        file->commands = mem_new_array(char *, CONTAINERFILE_COMMANDS_MAX);
    file->commands[file->count++] = mem_text(command);
    return true;
}

/* Finds the consecutive lines "package", "install" and "copy" of one shape. */
static const struct shape *find_shape(struct slice *rest, struct instruction *instruction)
{
    const struct shape *shape = NULL;
    while (!shape && next_instruction(rest, instruction)) {
        struct slice line = buf_slice(&instruction->text);
        if (is_stage(line))
            return NULL;
        for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
            if (slice_is(line, shapes[i].package))
                shape = &shapes[i];
    }
    if (!shape || !next_instruction(rest, instruction) ||
        !slice_is(buf_slice(&instruction->text), shape->install) ||
        !next_instruction(rest, instruction) ||
        !slice_is(buf_slice(&instruction->text), shape->copy))
        return NULL;
    return shape;
}

/* Reads what follows the copy: commands, the second copy, and the CLI's last line. */
static bool read_commands(struct slice *rest, const struct shape *shape,
                          struct instruction *instruction, struct containerfile *file)
{
    bool copied = !shape->copies_again, ended = false;
    while (next_instruction(rest, instruction)) {
        struct slice line = buf_slice(&instruction->text);
        if (is_stage(line))
            return copied;
        if (!instruction->whole || ended)
            return false;
        if (!copied && slice_is(line, shape->copy))
            copied = true;
        else if (copied && slice_is(line, last_line))
            ended = true;
        else if ((copied && shape->copies_again) || !take_command(file, line))
            return false;
    }
    return false;
}

enum err containerfile_read(struct slice text, struct containerfile *file,
                            struct failure *why)
{
    struct instruction instruction = { 0 };
    bool found = false;
    *file = (struct containerfile){ 0 };
    while (!found && next_instruction(&text, &instruction))
        found = is_build_stage(buf_slice(&instruction.text));
    const struct shape *shape = found ? find_shape(&text, &instruction) : NULL;
    bool right = shape && read_commands(&text, shape, &instruction, file);
    buf_finish(&instruction.text);
    return right ? OK
                 : explain(why, ERR_INVALID,
                           "unknown CLI version: cannot find the build commands in its "
                           "Containerfile");
}

void containerfile_finish(struct containerfile *file)
{
    for (size_t i = 0; i < file->count; i++)
        free(file->commands[i]);
    free(file->commands);
    *file = (struct containerfile){ 0 };
}
