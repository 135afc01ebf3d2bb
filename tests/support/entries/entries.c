/* entries.c - main of a program that holds several test files.
 *
 * It runs one of them: the one that the program was started as, through a link of that name, or
 * the one that its argument names. Each gets a process of its own that way. */
#include "tests/support/entries/entries.h"

#include <stdio.h>
#include <string.h>

static const struct test_entry *find(const char *name)
{
    const struct test_entry *entry = test_entries;
    while (entry->name && strcmp(entry->name, name) != 0)
        entry++;
    return entry->name ? entry : NULL;
}

int main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    const struct test_entry *entry = find(slash ? slash + 1 : argv[0]);
    if (!entry && argc > 1)
        entry = find(argv[1]);
    if (entry)
        return entry->run();
    fprintf(stderr, "usage: %s NAME, where NAME is one of\n", argv[0]);
    for (entry = test_entries; entry->name; entry++)
        fprintf(stderr, "    %s\n", entry->name);
    return 2;
}
