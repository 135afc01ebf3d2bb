/* subcommand.c - finds rows of the table by words, and prints usage. */
#include "server/config/subcommand.h"

#include <string.h>

#include "base/usage.h"
#include "server/config/closest.h"
#include "server/config/config_value.h"

enum { DOES_COLUMN = 31, FORM_INDENT = 23, USAGE_WIDTH = 76 };

/* ---- rows ---- */

static struct slice name_of(const struct subcommand *row)
{
    return (struct slice){ row->words, strcspn(row->words, " ") };
}

/* Returns the words after the name: "create", or "". */
static struct slice form_of(const struct subcommand *row)
{
    size_t len = name_of(row).len;
    return slice_of(row->words + len + (row->words[len] == ' '));
}

static bool is_of_command(const struct subcommand *row, const struct subcommand *first)
{
    return row->words && (row == first || !row->about);
}

const struct subcommand *subcommand_first(const struct subcommand *table, const char *name)
{
    for (const struct subcommand *row = table; row->words; row++)
        if (slice_is(name_of(row), name))
            return row;
    return NULL;
}

enum option_kind subcommand_option(const struct subcommand *table, struct slice name)
{
    for (const struct subcommand *row = table; row->words; row++) {
        struct slice form = form_of(row), rest = slice_of(row->usage);
        struct usage_part part;
        if (slice_starts(form, "--") && slice_equal(slice_from(form, 2), name))
            return OPTION_SWITCH;
        while (usage_next(&rest, &part))
            if (usage_is_option(&part) && slice_equal(slice_from(part.name, 2), name))
                return part.value.len ? OPTION_WITH_VALUE : OPTION_SWITCH;
    }
    return OPTION_UNKNOWN;
}

/* ---- words ---- */

enum err subcommand_check_name(const struct subcommand *table, const char *name,
                               struct failure *why)
{
    struct closest closest = { .given = slice_of(name) };
    if (subcommand_first(table, name))
        return OK;
    for (const struct subcommand *row = table; row->words; row++)
        closest_offer(&closest, name_of(row));
    if (closest.found.ptr)
        return explain(why, ERR_USAGE, "%.60s: not a command; did you mean %.*s?", name,
                       SLICE_ARG(closest.found));
    return explain(why, ERR_USAGE, "%.60s: not a command; runcast help lists all commands",
                   name);
}

static enum err refuse_form(const struct subcommand *first, const char *word,
                            struct failure *why)
{
    struct closest closest = { .given = slice_of(word) };
    struct slice name = name_of(first);
    for (const struct subcommand *row = first; is_of_command(row, first); row++)
        if (form_of(row).len)
            closest_offer(&closest, form_of(row));
    if (closest.found.ptr)
        return explain(why, ERR_USAGE, "%.*s %.60s: not a command; did you mean %.*s %.*s?",
                       SLICE_ARG(name), word, SLICE_ARG(name), SLICE_ARG(closest.found));
    return explain(why, ERR_USAGE,
                   "%.*s %.60s: not a command; runcast help %.*s lists its commands",
                   SLICE_ARG(name), word, SLICE_ARG(name));
}

/* Refuses a command without a form, and lists the forms: "create, list, rename or
 * delete". */
static enum err refuse_missing_form(const struct subcommand *first, struct failure *why)
{
    struct slice name = name_of(first);
    struct buf forms = { 0 };
    for (const struct subcommand *row = first; is_of_command(row, first); row++)
        buf_print(&forms, "%s%.*s",
                  row == first                    ? ""
                  : is_of_command(row + 1, first) ? ", "
                                                  : " or ",
                  SLICE_ARG(form_of(row)));
    explain(why, ERR_USAGE,
            "%.*s: incomplete; use runcast %.*s %.*s (runcast help %.*s explains them)",
            SLICE_ARG(name), SLICE_ARG(name), SLICE_ARG(buf_slice(&forms)),
            SLICE_ARG(name));
    buf_finish(&forms);
    return ERR_USAGE;
}

/* Returns how many of the words belong to the row; 0: it is another row. */
static size_t match(const struct subcommand *row, const char *const *words, size_t count)
{
    struct slice form = form_of(row);
    if (!slice_is(name_of(row), words[0]))
        return 0;
    return !form.len ? 1 : count > 1 && slice_is(form, words[1]) ? 2 : 0;
}

enum err subcommand_check_topic(const struct subcommand *table, const char *const *words,
                                size_t count, struct failure *why)
{
    const struct subcommand *first = subcommand_first(table, words[0]);
    bool is_form = count < 2;
    for (const struct subcommand *row = first; is_of_command(row, first); row++)
        is_form = is_form || match(row, words, count) == 2;
    if (!is_form)
        return refuse_form(first, words[1], why);
    if (count > 2)
        return explain(why, ERR_USAGE, "%.60s: not for runcast help %s %s", words[2],
                       words[0], words[1]);
    return OK;
}

static bool has_argument(const struct subcommand *row)
{
    struct slice rest = slice_of(row->usage);
    struct usage_part part;
    while (usage_next(&rest, &part))
        if (usage_is_argument(&part))
            return true;
    return false;
}

enum err subcommand_read(const struct subcommand *table, const char *const *words,
                         size_t count, const struct subcommand **row, struct said *said,
                         struct failure *why)
{
    const struct subcommand *found = NULL;
    size_t taken = 0;
    bool has_forms = false;
    enum err refused = subcommand_check_name(table, count ? words[0] : "", why);
    if (refused)
        return refused;
    const struct subcommand *first = subcommand_first(table, words[0]);
    for (const struct subcommand *one = first; is_of_command(one, first); one++) {
        size_t matched = match(one, words, count);
        has_forms = has_forms || form_of(one).len;
        if (matched > taken) {
            taken = matched;
            found = one;
        }
    }
    bool is_form = count > 1 && words[1][0] != '-';
    if (has_forms && taken < 2 && is_form && (!found || !has_argument(found)))
        return refuse_form(first, words[1], why);
    if (!found)
        return refuse_missing_form(first, why);
    *row = found;
    return usage_read(found->words, found->usage, words + taken, count - taken, said, why);
}

/* ---- usage ---- */

/* Appends a form to the current line, or to a new line if that is full. */
static void join_form(const struct subcommand *row, size_t *column, struct buf *out)
{
    struct buf form = { 0 };
    buf_print(&form, " | %.*s%s%s", SLICE_ARG(form_of(row)), *row->usage ? " " : "",
              row->usage);
    struct slice text = buf_slice(&form);
    if (*column + text.len > USAGE_WIDTH) {
        buf_print(out, "\n%*s", FORM_INDENT, "");
        text = slice_from(text, 1);
        *column = FORM_INDENT;
    }
    buf_add(out, text);
    *column += text.len;
    buf_finish(&form);
}

/* Appends a form on a separate line, with its description after it or below it. */
static void print_form(const struct subcommand *row, bool is_default, size_t *column,
                       struct buf *out)
{
    size_t before = out->len;
    buf_print(out, "  runcast %s%s%s%s%s", is_default ? "[" : "", row->words,
              is_default ? "]" : "", *row->usage ? " " : "", row->usage);
    *column = out->len - before;
    if (!*row->does)
        return;
    bool fits = *column + 2 <= DOES_COLUMN;
    buf_print(out, "%s%*s%s", fits ? "" : "\n",
              fits ? (int)(DOES_COLUMN - *column) : DOES_COLUMN, "", row->does);
}

void subcommand_print_usage(const struct subcommand *table, const struct subcommand *first,
                            struct buf *out)
{
    size_t column = 0;
    for (const struct subcommand *row = first; is_of_command(row, first); row++) {
        if (row != first && !*row->does && !*row[-1].does) {
            join_form(row, &column, out);
            continue;
        }
        if (row != first)
            buf_add_char(out, '\n');
        print_form(row, row == table, &column, out);
    }
    buf_add_char(out, '\n');
}
