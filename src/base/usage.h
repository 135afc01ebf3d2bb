/* usage.h - parses a command's words by its usage text, which help shows, too.
 *
 *   "NAME --email EMAIL [--org SLUG]"
 *
 * A word in capitals is the argument of the command. An option takes a value if the next
 * word is not an option and does not begin with a bracket. Words in brackets are optional;
 * all others are required. "[options]" stands for settings, which are not among the words.
 * A missing --confirm is left to the command, which then only reports what it would do. */
#pragma once

#include "base/error.h"
#include "base/slice.h"

enum { USAGE_WORDS_MAX = 16 };

struct usage_part {
    struct slice name;  /* "NAME", "--email" or "options" */
    struct slice value; /* of an option: "EMAIL"; empty: it takes no value */
    bool optional;
};

/* Takes the next part off the front of a usage. Returns false at its end. */
bool usage_next(struct slice *rest, struct usage_part *part);

bool usage_is_option(const struct usage_part *part);
bool usage_is_argument(const struct usage_part *part);

/* The words of a command, parsed by its usage; borrowed. */
struct said {
    const char *argument; /* NULL: not given */
    struct {
        struct slice name;
        const char *value; /* "" if the option takes no value */
    } options[USAGE_WORDS_MAX];
    size_t option_count;
};

/* Parses the words that follow a command, at most USAGE_WORDS_MAX. An option and its value
 * are one word ("--org=acme") or two. ERR_USAGE, with a reason for the operator, if the
 * usage does not allow the words. */
enum err usage_read(const char *command, const char *usage, const char *const *words,
                    size_t count, struct said *said, struct failure *why);

/* Returns the value of an option; the last one if repeated. NULL if it was not given. */
const char *said_option(const struct said *said, const char *name);
