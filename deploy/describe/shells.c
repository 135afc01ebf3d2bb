/* shells.c - the tables as lines of completions, for shells that know nothing of runcast. */
#include "describe/describe.h"
#include "describe/forms.h"
#include "server/config/config_help.h"
#include "server/config/config_value.h"

/* What may stand for the words in capitals of forms and for the values of options. */
enum kind { KIND_ANY, KIND_FILE, KIND_FOLDER, KIND_WORDS };

struct values {
    enum kind kind;
    const char *words; /* of KIND_WORDS */
};

static struct values of_argument(struct slice argument)
{
    if (slice_is(argument, "DIR"))
        return (struct values){ KIND_FOLDER, NULL };
    if (slice_is(argument, "FILE"))
        return (struct values){ KIND_FILE, NULL };
    if (slice_is(argument, "ENV"))
        return (struct values){ KIND_WORDS, "dev staging prod preview" };
    return (struct values){ KIND_ANY, NULL };
}

/* Behind --env: the environments that versions and workers outside of dev have. */
static struct values of_option(const struct form_option *option)
{
    if (slice_is(option->name, "--env"))
        return (struct values){ KIND_WORDS, "staging prod preview" };
    return of_argument(option->value);
}

static struct values of_setting(enum config_setting which, struct buf *words)
{
    const char *const *choices = config_choices(which);
    for (size_t i = 0; choices && choices[i]; i++)
        buf_print(words, "%s%s", i ? " " : "", choices[i]);
    buf_add_char(words, '\0');
    if (choices)
        return (struct values){ KIND_WORDS, words->ptr };
    if (which == SETTING_data || which == SETTING_versions)
        return (struct values){ KIND_FOLDER, NULL };
    bool is_file =
        which == SETTING_ca_file || which == SETTING_tls_cert || which == SETTING_tls_key;
    return (struct values){ is_file ? KIND_FILE : KIND_ANY, NULL };
}

static bool has_flag(enum config_setting which)
{
    return config_settings[which].type != SETTING_IS_SECRET;
}

static bool has_value(enum config_setting which)
{
    return has_flag(which) && config_settings[which].type != SETTING_IS_FLAG;
}

/* ---- forms, for bash and zsh ---- */

/* Forms with the same words before them become one. */
struct merged {
    struct slice command, verb;
    struct slice argument;
    struct buf options, verbs;
    bool takes_settings;
};

struct merging {
    struct merged all[FORM_OPTIONS_MAX];
    size_t count;
};

static struct merged *find_merged(struct merging *merging, const struct form *form)
{
    for (size_t i = 0; i < merging->count; i++)
        if (slice_equal(merging->all[i].verb, form->verb))
            return &merging->all[i];
    if (merging->count == FORM_OPTIONS_MAX)
        return NULL;
    struct merged *made = &merging->all[merging->count++];
    *made = (struct merged){ .command = slice_of(form->command->name), .verb = form->verb };
    return made;
}

static void add_word(struct buf *words, struct slice word)
{
    if (words->len)
        buf_add_char(words, ' ');
    buf_add(words, word);
}

static void merge(void *owner, const struct form *form)
{
    struct merging *merging = owner;
    struct form alone = { .command = form->command };
    struct merged *own = find_merged(merging, form);
    struct merged *first = find_merged(merging, &alone);
    if (!own || !first)
        return;
    if (form->verb.len)
        add_word(&first->verbs, form->verb);
    if (form->argument.len)
        own->argument = form->argument;
    own->takes_settings |= form->takes_settings;
    for (size_t i = 0; i < form->option_count; i++)
        add_word(&own->options, form->options[i].name);
}

static void print_merged(const struct merged *merged, struct buf *out)
{
    buf_print(out, "    '%.*s%s%.*s') verbs='%.*s' options='%.*s' argument='%.*s'",
              SLICE_ARG(merged->command), merged->verb.len ? " " : "",
              SLICE_ARG(merged->verb), SLICE_ARG(buf_slice(&merged->verbs)),
              SLICE_ARG(buf_slice(&merged->options)), SLICE_ARG(merged->argument));
    buf_print(out, " settings=%d ;;\n", merged->takes_settings);
}

void shell_forms(struct buf *out)
{
    for (size_t i = 0; i < config_command_count; i++) {
        struct merging merging = { 0 };
        forms_each(&config_commands[i], merge, &merging);
        for (size_t k = 0; k < merging.count; k++) {
            print_merged(&merging.all[k], out);
            buf_finish(&merging.all[k].options);
            buf_finish(&merging.all[k].verbs);
        }
    }
}

/* ---- values, for bash and zsh ---- */

static void print_values(struct slice option, struct values values, struct buf *out)
{
    static const char *const kinds[] = { [KIND_ANY] = "any",
                                         [KIND_FILE] = "file",
                                         [KIND_FOLDER] = "folder",
                                         [KIND_WORDS] = "words" };
    buf_print(out, "    %.*s) kind=%s values='%s' ;;\n", SLICE_ARG(option),
              kinds[values.kind], values.words ? values.words : "");
}

static void print_option_values(void *owner, const struct form *form)
{
    struct buf *out = owner;
    for (size_t i = 0; i < form->option_count; i++) {
        const struct form_option *option = &form->options[i];
        struct buf line = { 0 };
        buf_print(&line, "    %.*s) ", SLICE_ARG(option->name));
        if (option->value.len &&
            (!out->len || !memmem(out->ptr, out->len, line.ptr, line.len)))
            print_values(option->name, of_option(option), out);
        buf_finish(&line);
    }
    if (form->argument.len && of_argument(form->argument).kind != KIND_ANY) {
        struct buf line = { 0 };
        buf_print(&line, "    %.*s) ", SLICE_ARG(form->argument));
        if (!out->len || !memmem(out->ptr, out->len, line.ptr, line.len))
            print_values(form->argument, of_argument(form->argument), out);
        buf_finish(&line);
    }
}

void shell_values(struct buf *out)
{
    for (int i = 0; i < SETTING_COUNT; i++) {
        char option[CONFIG_NAME_MAX + 2];
        struct buf words = { 0 };
        snprintf(option, sizeof(option), "--%s", config_settings[i].name);
        if (has_value((enum config_setting)i))
            print_values(slice_of(option), of_setting((enum config_setting)i, &words), out);
        buf_finish(&words);
    }
    print_values(SLICE("--config"), (struct values){ KIND_FILE, NULL }, out);
    for (size_t i = 0; i < config_command_count; i++)
        forms_each(&config_commands[i], print_option_values, out);
}

/* ---- lists, for bash and zsh ---- */

/* "--config" of "--config FILE". */
static struct slice action_name(const struct help_row *action)
{
    struct slice rest = slice_of(action->name), name;
    slice_split(&rest, ' ', &name);
    return name;
}

void bash_settings(struct buf *out)
{
    buf_add_text(out, "_runcast_settings='");
    for (int i = 0; i < SETTING_COUNT; i++)
        if (has_flag((enum config_setting)i))
            buf_print(out, "--%s ", config_settings[i].name);
    for (size_t i = 0; i < config_action_count; i++)
        buf_print(out, "%s%.*s", i ? " " : "", SLICE_ARG(action_name(&config_actions[i])));
    buf_add_text(out, "'\n");
}

void bash_commands(struct buf *out)
{
    buf_add_text(out, "_runcast_commands='");
    for (size_t i = 0; i < config_command_count; i++)
        buf_print(out, "%s ", config_commands[i].name);
    buf_add_text(out, "help'\n");
}

/* For single quotes; also with another sign that is to be meant as it is. */
static void add_quoted(struct buf *out, struct slice text, char sign)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i] == '\n' ? ' ' : text.ptr[i];
        if (c == '\'')
            buf_add_text(out, "'\\'");
        else if (c == sign)
            buf_add_char(out, '\\');
        buf_add_char(out, c);
    }
}

static void print_zsh_row(struct slice name, struct slice help, struct buf *out)
{
    buf_print(out, "        '%.*s:", SLICE_ARG(name));
    add_quoted(out, help, ':');
    buf_add_text(out, "'\n");
}

void zsh_settings(struct buf *out)
{
    for (int i = 0; i < SETTING_COUNT; i++) {
        char option[CONFIG_NAME_MAX + 2];
        snprintf(option, sizeof(option), "--%s", config_settings[i].name);
        if (has_flag((enum config_setting)i))
            print_zsh_row(slice_of(option), slice_of(config_settings[i].help), out);
    }
    for (size_t i = 0; i < config_action_count; i++)
        print_zsh_row(action_name(&config_actions[i]), slice_of(config_actions[i].help),
                      out);
}

void zsh_commands(struct buf *out)
{
    for (size_t i = 0; i < config_command_count; i++)
        print_zsh_row(slice_of(config_commands[i].name), forms_summary(&config_commands[i]),
                      out);
    print_zsh_row(SLICE("help"), SLICE("says what a command takes"), out);
}

/* ---- fish ---- */

static void add_fish_values(struct values values, struct buf *out)
{
    switch (values.kind) {
    case KIND_ANY: buf_add_text(out, " -x"); break;
    case KIND_FILE: buf_add_text(out, " -r -F"); break;
    case KIND_FOLDER: buf_add_text(out, " -x -a '(__fish_complete_directories)'"); break;
    case KIND_WORDS: buf_print(out, " -x -a '%s'", values.words); break;
    }
}

static void add_fish_help(struct slice help, struct buf *out)
{
    buf_add_text(out, " -d '");
    add_quoted(out, help, '\0');
    buf_add_text(out, "'\n");
}

/* Where a form begins: behind its command, and behind its second word if it has one. */
static void add_fish_place(const struct form *form, struct buf *out)
{
    buf_print(out, "complete -c runcast -n '__fish_seen_subcommand_from %s",
              form->command->name);
    if (form->verb.len)
        buf_print(out, "; and __fish_seen_subcommand_from %.*s", SLICE_ARG(form->verb));
    buf_add_char(out, '\'');
}

static void print_fish_form(void *owner, const struct form *form)
{
    struct buf *out = owner;
    struct form alone = { .command = form->command };
    if (form->verb.len) {
        add_fish_place(&alone, out);
        buf_print(out, " -a %.*s\n", SLICE_ARG(form->verb));
    }
    struct values argument = of_argument(form->argument);
    if (argument.kind != KIND_ANY) {
        add_fish_place(form, out);
        buf_add_text(out, argument.kind == KIND_FILE ? " -a '(__fish_complete_path)'"
                          : argument.kind == KIND_FOLDER
                              ? " -a '(__fish_complete_directories)'"
                              : "");
        if (argument.kind == KIND_WORDS)
            buf_print(out, " -a '%s'", argument.words);
        buf_add_char(out, '\n');
    }
    for (size_t i = 0; i < form->option_count; i++) {
        const struct form_option *option = &form->options[i];
        add_fish_place(form, out);
        buf_print(out, " -l %.*s", SLICE_ARG(slice_from(option->name, 2)));
        if (option->value.len)
            add_fish_values(of_option(option), out);
        buf_add_char(out, '\n');
    }
}

static void note_settings(void *owner, const struct form *form)
{
    bool *takes = owner;
    *takes |= form->takes_settings;
}

/* As the option of a line: where settings may stand. */
static void add_fish_condition(struct buf *out)
{
    buf_add_text(out, " -n 'not __fish_seen_subcommand_from help");
    for (size_t i = 0; i < config_command_count; i++) {
        bool takes = false;
        forms_each(&config_commands[i], note_settings, &takes);
        if (!takes)
            buf_print(out, " %s", config_commands[i].name);
    }
    buf_add_char(out, '\'');
}

static void print_fish_settings(struct buf *out)
{
    for (int i = 0; i < SETTING_COUNT; i++) {
        struct buf words = { 0 };
        if (has_flag((enum config_setting)i)) {
            buf_print(out, "complete -c runcast -l %s", config_settings[i].name);
            if (i != SETTING_data)
                add_fish_condition(out);
            if (has_value((enum config_setting)i))
                add_fish_values(of_setting((enum config_setting)i, &words), out);
            add_fish_help(slice_of(config_settings[i].help), out);
        }
        buf_finish(&words);
    }
    for (size_t i = 0; i < config_action_count; i++) {
        struct slice name = action_name(&config_actions[i]);
        buf_print(out, "complete -c runcast -l %.*s", SLICE_ARG(slice_from(name, 2)));
        if (strcmp(config_actions[i].name + name.len, " FILE") == 0)
            add_fish_values((struct values){ KIND_FILE, NULL }, out);
        add_fish_help(slice_of(config_actions[i].help), out);
    }
}

void fish_lines(struct buf *out)
{
    for (size_t i = 0; i < config_command_count; i++) {
        const struct help_command *command = &config_commands[i];
        buf_print(out, "complete -c runcast -n __fish_use_subcommand -a %s", command->name);
        add_fish_help(forms_summary(command), out);
        forms_each(command, print_fish_form, out);
        buf_print(out, "complete -c runcast -n '__fish_seen_subcommand_from help' -a %s\n",
                  command->name);
    }
    buf_add_text(out, "complete -c runcast -n __fish_use_subcommand -a help"
                      " -d 'says what a command takes'\n");
    print_fish_settings(out);
}
