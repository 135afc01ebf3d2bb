/* terminal.h - prints untrusted text to a terminal.
 *
 * A terminal obeys some characters instead of showing them: they move the cursor, clear the
 * screen, or change the title of the window. Names of files, database tables and branches,
 * and texts of a manifest, may contain any of them. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "base/slice.h"

/* Returns the character at the front of UTF-8 text that a terminal would obey; otherwise 0.
 * Finds delete and the C1 controls (U+007F to U+009F), line separators, and characters that
 * change the direction of writing (U+2028 to U+202E, U+2066 to U+2069), but not the C0
 * controls (U+0000 to U+001F). *len: its length in bytes, if one is found. */
uint16_t terminal_interprets(struct slice text, size_t *len);

/* Prints the text, with "?" for each character that would be obeyed, except newline and
 * tab. */
void terminal_show(FILE *out, struct slice text);

/* Prints a line to stderr that says why the program failed. */
void terminal_print_failure(const char *reason);
