/* usage.c - splits a usage text into its parts, and parses a command's words by it. */
#include "base/usage.h"

#include <assert.h>
#include <string.h>

/* Returns true if there was a closing bracket. */
static bool strip_brackets(struct slice *word)
{
    if (slice_starts(*word, "["))
        *word = slice_from(*word, 1);
    bool closes = word->len && word->ptr[word->len - 1] == ']';
    word->len -= closes;
    return closes;
}

bool usage_next(struct slice *rest, struct usage_part *part)
{
    *part = (struct usage_part){ 0 };
    if (!slice_split(rest, ' ', &part->name) || !part->name.len)
        return false;
    part->optional = slice_starts(part->name, "[");
    bool closes = strip_brackets(&part->name);
    if (!closes && usage_is_option(part) && rest->len && !strchr("[-", rest->ptr[0])) {
        slice_split(rest, ' ', &part->value);
        strip_brackets(&part->value);
    }
    return true;
}

bool usage_is_option(const struct usage_part *part)
{
    return slice_starts(part->name, "--");
}

bool usage_is_argument(const struct usage_part *part)
{
    return part->name.ptr[0] >= 'A' && part->name.ptr[0] <= 'Z';
}

/* ---- words ---- */

static const char *find_said(const struct said *said, struct slice name)
{
    for (size_t i = said->option_count; i > 0; i--)
        if (slice_equal(said->options[i - 1].name, name))
            return said->options[i - 1].value;
    return NULL;
}

struct usage_reading {
    const char *command;
    struct slice usage;
    struct said *said;
    struct failure *why;
};

static int topic_len(const struct usage_reading *reading)
{
    return (int)strcspn(reading->command, " ");
}

static bool find_option(const struct usage_reading *reading, struct slice name,
                        struct usage_part *part)
{
    struct slice rest = reading->usage;
    while (usage_next(&rest, part))
        if (usage_is_option(part) && slice_equal(part->name, name))
            return true;
    return false;
}

static bool takes_argument(const struct usage_reading *reading)
{
    struct slice rest = reading->usage;
    struct usage_part part;
    while (usage_next(&rest, &part))
        if (usage_is_argument(&part))
            return true;
    return false;
}

/* Takes an option, and moves to the word that has its value. */
static enum err take_option(const struct usage_reading *reading, const char *const *words,
                            size_t count, size_t *at)
{
    struct said *said = reading->said;
    struct usage_part option;
    struct slice rest = slice_of(words[*at]), name;
    slice_split(&rest, '=', &name);
    if (!find_option(reading, name, &option) || (rest.ptr && !option.value.len))
        return explain(reading->why, ERR_USAGE,
                       "%.60s: not an option of runcast %s; runcast help %.*s lists them",
                       words[*at], reading->command, topic_len(reading), reading->command);
    if (option.value.len && !rest.ptr && ++*at == count)
        return explain(reading->why, ERR_USAGE, "%.*s: needs a value", SLICE_ARG(name));
    said->options[said->option_count].name = name;
    said->options[said->option_count++].value = rest.ptr           ? rest.ptr
                                                : option.value.len ? words[*at]
                                                                   : "";
    return OK;
}

static enum err take_argument(const struct usage_reading *reading, const char *word)
{
    if (reading->said->argument || !takes_argument(reading))
        return explain(reading->why, ERR_USAGE,
                       "%.60s: not for runcast %s; runcast help %.*s explains it", word,
                       reading->command, topic_len(reading), reading->command);
    reading->said->argument = word;
    return OK;
}

static bool is_missing(const struct said *said, const struct usage_part *part)
{
    if (part->optional || slice_is(part->name, "--confirm"))
        return false;
    return usage_is_option(part) ? !find_said(said, part->name) : !said->argument;
}

static enum err check_needed(const struct usage_reading *reading)
{
    struct slice rest = reading->usage;
    struct usage_part part;
    while (usage_next(&rest, &part))
        if (is_missing(reading->said, &part))
            return explain(reading->why, ERR_USAGE,
                           "%.*s%s%.*s is missing; use runcast %s %.*s (runcast help %.*s "
                           "explains it)",
                           SLICE_ARG(part.name), part.value.len ? " " : "",
                           SLICE_ARG(part.value), reading->command,
                           SLICE_ARG(reading->usage), topic_len(reading), reading->command);
    return OK;
}

enum err usage_read(const char *command, const char *usage, const char *const *words,
                    size_t count, struct said *said, struct failure *why)
{
    struct usage_reading reading = { command, slice_of(usage), said, why };
    enum err refused = OK;
    assert(count <= USAGE_WORDS_MAX);
    *said = (struct said){ 0 };
    for (size_t at = 0; !refused && at < count; at++)
        refused = strncmp(words[at], "--", 2) == 0
                      ? take_option(&reading, words, count, &at)
                      : take_argument(&reading, words[at]);
    return refused ? refused : check_needed(&reading);
}

const char *said_option(const struct said *said, const char *name)
{
    return find_said(said, slice_of(name));
}
