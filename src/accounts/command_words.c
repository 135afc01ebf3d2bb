/* command_words.c - helpers of the subcommands: options, rejections, default project. */
#include "accounts/command_words.h"

#include "base/text.h"

enum err command_misuse(struct account_command *command, const char *text)
{
    return explain(&command->write.why, ERR_USAGE, "%s", text);
}

enum err command_refuse(struct account_command *command, const char *text)
{
    return explain(&command->write.why, ERR_INVALID, "%s", text);
}

const char *command_option(const struct account_command *command, const char *name)
{
    return said_option(&command->said, name);
}

bool command_is_name(const char *text)
{
    return account_name_is_right(slice_of(text));
}

enum err command_find_project(struct account_command *command)
{
    const struct list *all = accounts_projects(command->accounts);
    const char *given = command_option(command, "--project");
    if (given)
        command->project = accounts_project(command->accounts, slice_of(given));
    else if (!list_empty(all) && all->next == all->prev)
        command->project = container_of(all->next, struct project, link);
    if (command->project)
        return OK;
    return command_refuse(
        command, given ? "project not found; runcast project list shows them"
                 : list_empty(all)
                     ? "there are no projects; runcast project create creates one"
                     : "there are several projects; choose one with --project REF");
}

void command_print_time(FILE *out, int64_t unix_ms)
{
    char text[TIME_TEXT_LEN + 1];
    text_from_time(unix_ms, text);
    fprintf(out, "%.10s", unix_ms ? text : "-");
}
