/* config_help.c - the text of --help: for everything, or for one command. */
#include "server/config/config_help.h"

#include "server/config/config_value.h"

#define HELP_ACTION(...)
#define HELP_NOTE(name, lines) static const char name[] = lines;
#include "server/config/help.def"
#undef HELP_ACTION
#undef HELP_NOTE

static void print_row(const char *option, const char *help, struct buf *out)
{
    buf_print(out, "  %-34s %s", option, help);
}

/* Prints the flag of a setting and the kind of its value; for a secret, its variable. */
static void print_option(const struct setting *setting, struct buf *out)
{
    static const char *const values[] = {
        [SETTING_IS_TEXT] = " TEXT",     [SETTING_IS_LIST] = " TEXT",
        [SETTING_IS_NUMBER] = " NUMBER", [SETTING_IS_BYTES] = " SIZE",
        [SETTING_IS_DURATION] = " TIME", [SETTING_IS_FLAG] = "",
    };
    char option[CONFIG_NAME_MAX];
    if (setting->type == SETTING_IS_SECRET)
        config_variable_of((enum config_setting)(setting - config_settings), option);
    else
        snprintf(option, sizeof(option), "--%s%s", setting->name, values[setting->type]);
    print_row(option, setting->help, out);
    if (*setting->def && setting->type != SETTING_IS_FLAG)
        buf_print(out, " [%s]", setting->def);
    buf_add_char(out, '\n');
}

static void print_options(struct buf *out)
{
    static const struct {
        const char *option, *help;
    } actions[] = {
#define HELP_ACTION(option, action, help) { option, help },
#define HELP_NOTE(...)
#include "server/config/help.def"
#undef HELP_ACTION
#undef HELP_NOTE
    };
    buf_add_text(out, "options [default]\n");
    for (int i = 0; i < SETTING_COUNT; i++)
        print_option(&config_settings[i], out);
    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
        print_row(actions[i].option, actions[i].help, out);
        buf_add_char(out, '\n');
    }
}

static void print_all(const struct subcommand *table, struct buf *out)
{
    buf_add_text(out,
                 "runcast - manages runs of background tasks and streams every change\n\n");
    for (const struct subcommand *row = table; row->words; row++)
        if (row->about)
            subcommand_print_usage(table, row, out);
    buf_print(out, "  runcast help COMMAND         explains one of these\n\n%s\n",
              of_commands);
    print_options(out);
    buf_print(out, "\n%s\n%s", of_options, of_keys);
}

void config_print_help(const struct subcommand *table, const struct subcommand *first,
                       struct buf *out)
{
    if (!first || first == table) {
        print_all(table, out);
        return;
    }
    subcommand_print_usage(table, first, out);
    buf_print(out, "\n%s\n%s", first->about, first->place);
}
