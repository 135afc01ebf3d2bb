/* forms.c - splits the lines of a command's usage at what separates its forms. */
#include "describe/forms.h"

#include <assert.h>

/* Where two spaces begin; what is before them is a form. */
static size_t gap(struct slice line)
{
    for (size_t i = 0; i + 1 < line.len; i++)
        if (line.ptr[i] == ' ' && line.ptr[i + 1] == ' ')
            return i;
    return line.len;
}

/* The forms of a line, without the name of the command; its ptr is NULL: it has none. */
static struct slice forms_of_line(struct slice line)
{
    line = slice_trim(line);
    line.len = gap(line);
    if (slice_starts(line, "| "))
        return slice_from(line, 2);
    if (!slice_starts(line, "runcast "))
        return (struct slice){ 0 };
    struct slice word, rest = slice_from(line, strlen("runcast "));
    slice_split(&rest, ' ', &word); /* "org", or "[serve]" */
    return rest.ptr ? rest : SLICE("");
}

static bool strip_brackets(struct slice *word)
{
    if (word->len && word->ptr[0] == '[')
        *word = slice_from(*word, 1);
    bool closes = word->len && word->ptr[word->len - 1] == ']';
    word->len -= closes;
    return closes;
}

static void add_option(struct form *form, struct slice name, bool closed,
                       struct slice *rest)
{
    assert(form->option_count < FORM_OPTIONS_MAX);
    struct form_option *option = &form->options[form->option_count++];
    *option = (struct form_option){ .name = name };
    if (closed || !rest->ptr || rest->ptr[0] == '[')
        return;
    slice_split(rest, ' ', &option->value);
    strip_brackets(&option->value);
}

static void read_form(struct form *form, struct slice text)
{
    struct slice word;
    while (slice_split(&text, ' ', &word)) {
        bool closed = strip_brackets(&word);
        if (slice_starts(word, "--"))
            add_option(form, word, closed, &text);
        else if (slice_is(word, "options"))
            form->takes_settings = true;
        else if (word.len && word.ptr[0] >= 'a')
            form->verb = word;
        else if (word.len)
            form->argument = word;
    }
}

void forms_each(const struct help_command *command, form_fn *each, void *owner)
{
    struct slice lines = slice_of(command->usage), line, one;
    while (slice_split(&lines, '\n', &line)) {
        struct slice forms = forms_of_line(line);
        while (slice_split(&forms, '|', &one)) {
            struct form form = { .command = command };
            read_form(&form, slice_trim(one));
            each(owner, &form);
        }
    }
}

static struct slice first_sentence(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] == '.' && (i + 1 == text.len || strchr(" \n", text.ptr[i + 1])))
            return (struct slice){ text.ptr, i };
    return text;
}

struct slice forms_summary(const struct help_command *command)
{
    struct slice lines = slice_of(command->usage), line;
    while (slice_split(&lines, '\n', &line)) {
        line = slice_trim(line);
        if (!slice_starts(line, "|") && slice_starts(line, "runcast "))
            line = slice_trim(slice_from(line, gap(line)));
        if (line.len && line.ptr[0] != '|')
            return line;
    }
    return first_sentence(slice_of(command->about));
}
