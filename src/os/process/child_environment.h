/* child_environment.h - builds a child's environment from scratch, name by name.
 *
 * The values may be secrets, so they are wiped at the end. The zero value is empty. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct child_environment {
    char **entries; /* "NAME=value", ended by NULL; NULL: none yet */
    size_t count, capacity;
};

/* A name must be added only once. */
void child_environment_add(struct child_environment *environment, const char *name,
                           struct slice value);
void child_environment_add_number(struct child_environment *environment, const char *name,
                                  int64_t number);

/* Returns the list for process_options::environment. */
const char *const *child_environment_list(const struct child_environment *environment);

void child_environment_finish(struct child_environment *environment);
