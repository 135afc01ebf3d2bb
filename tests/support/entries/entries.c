/* entries.c - main of a program that holds several test files.
 *
 *   test_sqlite_store [PATTERN]              through a link of the file's name
 *   unit_store test_sqlite_store [PATTERN]   by the program's own name
 *
 * It runs one of the files, so that each file gets its own process; with a PATTERN (`*` and
 * `?`) only the tests whose names match it. */
#include "tests/support/entries/entries.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct test_entry *find(const char *name)
{
    const struct test_entry *entry = test_entries;
    while (entry->name && strcmp(entry->name, name) != 0)
        entry++;
    return entry->name ? entry : NULL;
}

static int print_usage(const char *program)
{
    const struct test_entry *entry;
    fprintf(stderr, "usage: %s NAME [PATTERN], where NAME is one of\n", program);
    for (entry = test_entries; entry->name; entry++)
        fprintf(stderr, "    %s\n", entry->name);
    return 2;
}

int main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    const struct test_entry *entry = find(slash ? slash + 1 : argv[0]);
    char **arguments = argv + 1;
    if (!entry && argc > 1)
        entry = find(*arguments++);
    if (!entry)
        return print_usage(argv[0]);
    if (*arguments)
        cmocka_set_test_filter(*arguments);
    return entry->run();
}
