/* forms.h - the forms in which a command is said, read out of its help (config_help.h).
 *
 *   "  runcast org create NAME [--slug SLUG] | list\n"
 *        org create: argument NAME, option --slug with a SLUG behind it
 *        org list */
#pragma once

#include "base/slice.h"
#include "server/config/config_help.h"

enum { FORM_OPTIONS_MAX = 8 };

struct form_option {
    struct slice name;  /* "--slug" */
    struct slice value; /* "SLUG"; empty: none */
};

struct form {
    const struct help_command *command;
    struct slice verb;     /* "create"; empty: there is no second word */
    struct slice argument; /* "NAME"; empty: none */
    struct form_option options[FORM_OPTIONS_MAX];
    size_t option_count;
    bool takes_settings; /* "[options]" */
};

typedef void form_fn(void *owner, const struct form *form);

/* Calls each for each form of the command, in the order of its help. */
void forms_each(const struct help_command *command, form_fn *each, void *owner);

/* What the command does, in a few words: those behind its first form, else the first sentence of
 * what its help says more. */
struct slice forms_summary(const struct help_command *command);
