/* man.c - the tables as parts of man pages. */
#include "describe/describe.h"
#include "runcast/protocol.h"
#include "server/config/config_help.h"
#include "server/config/config_value.h"

/* Text whose signs mean nothing to scdoc. */
static void add_plain(struct buf *out, struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (strchr("\\*_`#<>[]|~+-", text.ptr[i]) && text.ptr[i])
            buf_add_char(out, '\\');
        buf_add_char(out, text.ptr[i]);
    }
}

static void add_bold(struct buf *out, const char *text)
{
    buf_add_char(out, '*');
    add_plain(out, slice_of(text));
    buf_add_char(out, '*');
}

/* Lines as a paragraph; to scdoc spaces before a line would mean something. */
static void add_paragraph(struct buf *out, struct slice lines)
{
    struct slice rest = slice_trim(lines), line;
    while (slice_split(&rest, '\n', &line)) {
        add_plain(out, slice_trim(line));
        buf_add_char(out, '\n');
    }
    buf_add_char(out, '\n');
}

void man_version(struct buf *out)
{
    buf_add_text(out, "This page is of version " RUNCAST_VERSION ".\n\n");
}

/* ---- commands ---- */

static void add_usage(struct buf *out, const char *usage)
{
    buf_print(out, "```\n%s```\n\n", usage);
}

/* What the help of the command says behind its usage, paragraph by paragraph. */
static void add_help(struct buf *out, const struct help_command *command)
{
    struct buf help = { 0 };
    config_print_help(command->name, &help);
    struct slice rest = slice_from(buf_slice(&help), strlen(command->usage));
    for (const char *end; (end = memmem(rest.ptr, rest.len, "\n\n", 2));) {
        struct slice paragraph = { rest.ptr, (size_t)(end - rest.ptr) };
        if (slice_trim(paragraph).len)
            add_paragraph(out, paragraph);
        rest = slice_from(rest, paragraph.len + 2);
    }
    add_paragraph(out, rest);
    buf_finish(&help);
}

void man_commands(struct buf *out)
{
    for (size_t i = 0; i < config_command_count; i++) {
        const struct help_command *command = &config_commands[i];
        buf_print(out, "## %s\n\n", command->name);
        add_usage(out, command->usage);
        if (*command->about)
            add_help(out, command);
    }
    add_paragraph(out, slice_of(config_help_of_commands));
}

/* ---- options and settings ---- */

void man_options(struct buf *out)
{
    for (int i = 0; i < SETTING_COUNT; i++) {
        const struct setting *setting = &config_settings[i];
        if (setting->type == SETTING_IS_SECRET)
            continue;
        buf_print(out, "*--%s*%s%s%s\n\t", setting->name,
                  *config_help_value(setting) ? " _" : "", config_help_value(setting),
                  *config_help_value(setting) ? "_" : "");
        add_plain(out, slice_of(setting->help));
        buf_add_text(out, "\n\n");
    }
}

void man_actions(struct buf *out)
{
    for (size_t i = 0; i < config_action_count; i++) {
        add_bold(out, config_actions[i].name);
        buf_add_text(out, "\n\t");
        add_plain(out, slice_of(config_actions[i].help));
        buf_add_text(out, "\n\n");
    }
}

static void describe_choices(const char *const *choices, struct buf *out)
{
    for (size_t i = 0; choices[i]; i++) {
        buf_add_text(out, !i ? "" : choices[i + 1] ? ", " : " or ");
        buf_add_text(out, choices[i]);
    }
}

static void describe_value(enum config_setting which, struct buf *out)
{
    const struct setting *setting = &config_settings[which];
    if (config_choices(which))
        describe_choices(config_choices(which), out);
    else if (setting->type == SETTING_IS_LIST)
        buf_add_text(out, "words with spaces between");
    else if (setting->type == SETTING_IS_SECRET)
        buf_add_text(out, "a secret, no flag");
    else if (setting->type == SETTING_IS_TEXT)
        buf_add_text(out, "a text");
    else
        config_describe_value(setting, out);
}

/* A long list with spaces, which it may have, so that lines can end in it. */
static void add_default(struct buf *out, const struct setting *setting)
{
    struct slice rest = slice_of(*setting->def ? setting->def : "empty"), part;
    for (const char *comma = ""; slice_split(&rest, ',', &part); comma = ", ") {
        buf_add_text(out, comma);
        add_plain(out, part);
    }
}

void man_settings(struct buf *out)
{
    for (int i = 0; i < SETTING_COUNT; i++) {
        const struct setting *setting = &config_settings[i];
        char variable[CONFIG_NAME_MAX];
        struct buf value = { 0 };
        config_variable_of((enum config_setting)i, variable);
        describe_value((enum config_setting)i, &value);
        add_bold(out, setting->name);
        buf_add_text(out, " = ");
        add_plain(out, buf_slice(&value));
        buf_add_text(out, "\n\t");
        add_plain(out, slice_of(setting->help));
        buf_add_text(out, ".\n\n\tDefault: ");
        add_default(out, setting);
        buf_add_text(out, ". Variable: ");
        add_plain(out, slice_of(variable));
        buf_add_text(out, ".\n\n");
        buf_finish(&value);
    }
}

void man_of_options(struct buf *out)
{
    add_paragraph(out, slice_of(config_help_of_options));
}

void man_of_keys(struct buf *out)
{
    add_paragraph(out, slice_of(config_help_of_keys));
}

/* ---- runs.v1 ---- */

void man_limits(struct buf *out)
{
    static const struct {
        long long number;
        const char *what;
    } rows[] = {
        { PROTOCOL_SUBSCRIPTIONS, "subscriptions of a connection (setting subscriptions)" },
        { PROTOCOL_WATCHES, "watches of a connection, and subscriptions with counts" },
        { PROTOCOL_WATCH_LIMIT, "runs of a watch" },
        { PROTOCOL_WATCHED, "different filters that are watched in an environment" },
        { PROTOCOL_TAGS, "tags of a filter" },
        { PROTOCOL_FILTER_BYTES, "bytes of the tags and tasks of all filters" },
        { PROTOCOL_MESSAGE_BYTES, "bytes of a message" },
        { PROTOCOL_STRANGER_BYTES, "bytes of a message before the token" },
        { PROTOCOL_FRAGMENTS, "fragments of a message" },
        { PROTOCOL_MESSAGES_PER_S, "messages a second" },
        { PROTOCOL_BURST, "messages at once" },
        { PROTOCOL_FRAME_BYTES, "bytes of a frame of the gateway; a larger run alone" },
        { PROTOCOL_HELLO_MS, "ms until the first message brings the token" },
        { PROTOCOL_PING_MS, "ms between pings" },
        { PROTOCOL_STALL_MS, "ms without a sign of life" },
        { PROTOCOL_EXPIRING_MS, "ms before the end of the token: expiring" },
        { PROTOCOL_EXPIRED_GRACE_MS, "ms behind it: the socket is closed" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        buf_print(out, "*%lld*\n\t%s\n\n", rows[i].number, rows[i].what);
}

void man_close_codes(struct buf *out)
{
    static const struct {
        enum protocol_close code;
        const char *why;
    } rows[] = {
        { CLOSE_BAD_MESSAGE, "a message is not understood" },
        { CLOSE_BAD_TOKEN, "the token is none, or was revoked" },
        { CLOSE_FORBIDDEN, "the token does not allow it" },
        { CLOSE_LIMIT, "too many different sets of fields in this environment" },
        { CLOSE_VERSION, "the version is not spoken (not sent by this gateway)" },
        { CLOSE_INTERNAL, "the gateway has failed (not sent by this one)" },
        { CLOSE_TOKEN_EXPIRED, "the token has expired: come with a new one" },
        { CLOSE_TOO_FAR_BEHIND, "the client is too far behind" },
        { CLOSE_OVERLOAD, "too many messages, or connections of the environment" },
        { CLOSE_DRAIN, "the gateway stops" },
        { CLOSE_MOVED, "the environment is elsewhere (not sent by this gateway)" },
    };
    static const char *const next[] = { [RECONNECT_NEVER] = "do not come back",
                                        [RECONNECT_LATER] = "come back with back-off",
                                        [RECONNECT_NOW] = "come back at once" };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        buf_print(out, "*%d*\n\t%s; %s\n\n", rows[i].code, rows[i].why,
                  next[protocol_reconnect(rows[i].code)]);
}
