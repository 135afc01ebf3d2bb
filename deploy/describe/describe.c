/* describe.c - fills a template of a man page or completion with what the program knows of itself.
 *
 *   describe <runcast.1.scd.in >runcast.1.scd
 *
 * A line that is "@part@" gives way to the lines of that part, which are made of the tables that
 * --help is made of; all others stay as they are. Built and used by the build, never installed. */
#include "describe/describe.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"

static const struct {
    const char *line;
    part_fn *part;
} parts[] = {
    { "@man-version@", man_version },         { "@man-commands@", man_commands },
    { "@man-options@", man_options },         { "@man-actions@", man_actions },
    { "@man-settings@", man_settings },       { "@man-of-options@", man_of_options },
    { "@man-of-keys@", man_of_keys },         { "@man-limits@", man_limits },
    { "@man-close-codes@", man_close_codes }, { "@shell-forms@", shell_forms },
    { "@shell-values@", shell_values },       { "@bash-settings@", bash_settings },
    { "@bash-commands@", bash_commands },     { "@zsh-settings@", zsh_settings },
    { "@zsh-commands@", zsh_commands },       { "@fish-lines@", fish_lines },
};

static part_fn *find(struct slice line)
{
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (slice_is(line, parts[i].line))
            return parts[i].part;
    return NULL;
}

int main(void)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t len;
    while ((len = getline(&line, &room, stdin)) > 0) {
        struct slice text = slice_trim((struct slice){ line, (size_t)len });
        struct buf out = { 0 };
        part_fn *part = find(text);
        if (part) {
            part(&out);
        } else if (text.len > 1 && text.ptr[0] == '@' && text.ptr[text.len - 1] == '@') {
            fprintf(stderr, "describe: there is no part %.*s\n", SLICE_ARG(text));
            return 1;
        } else {
            buf_add(&out, (struct slice){ line, (size_t)len });
        }
        fwrite(out.ptr, 1, out.len, stdout);
        buf_finish(&out);
    }
    free(line);
    return ferror(stdin) || fflush(stdout) ? 1 : 0;
}
