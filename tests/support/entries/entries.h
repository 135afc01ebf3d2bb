/* entries.h - the table of test files that one program holds; the build writes it.
 *
 * An entry without a name ends it. */
#pragma once

struct test_entry {
    const char *name; /* of the file, without .c */
    int (*run)(void);
};

extern const struct test_entry test_entries[];
