/* subcommands.c - the table of subcommands; may include headers of every folder. */
#include "server/subcommands.h"

#include "accounts/command_words.h"
#include "server/cli/remote_command.h"
#include "server/cli/remote_session.h"
#include "server/gateway/gateway.h"
#include "server/gateway/health.h"
#include "server/role/supervise_role.h"
#include "server/serve.h"

#define COMMAND_PLACE(name, help) static const char name[] = help;
#define COMMAND(...)
#define COMMAND_FORM(...)
#include "server/subcommands.def"
#undef COMMAND_PLACE
#undef COMMAND
#undef COMMAND_FORM

/* clang-format off */
const struct subcommand subcommands[] = {
#define COMMAND_PLACE(name, help)
#define COMMAND(words, usage, does, place, about, ...) \
    { words, usage, does, about, place, __VA_ARGS__ },
#define COMMAND_FORM(words, usage, does, ...) { words, usage, does, NULL, NULL, __VA_ARGS__ },
#include "server/subcommands.def"
#undef COMMAND_PLACE
#undef COMMAND
#undef COMMAND_FORM
    { .words = NULL },
};
/* clang-format on */
