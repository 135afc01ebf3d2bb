/* terminal.h - text that somebody else chose, shown to a person.
 *
 * A terminal obeys some characters instead of showing them: they move the cursor, clear what
 * stands there, change the title of the window. Names of files, of tables of a database, of
 * branches, and words of a manifest may have any. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "base/slice.h"

/* What a terminal would obey at the front of UTF-8, beside the first set of controls (U+0000 to
 * U+001F): delete and the second set (U+007F to U+009F), separators of lines, and those that turn
 * the direction of writing (U+2028 to U+202E, U+2066 to U+2069). 0: another one. len is that of
 * the character when one is found. */
uint16_t terminal_obeys(struct slice text, size_t *len);

/* Writes the text, with ? for what would be obeyed. Lines and tabs stay. */
void terminal_show(FILE *out, struct slice text);

/* Writes a line to stderr that says why the program did not do something. */
void terminal_complain(const char *reason);
