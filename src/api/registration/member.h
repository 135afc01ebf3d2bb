/* member.h - reads the members of a registration, with errors that say where a mistake is. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/error.h"

/* Where a mistake is, like "metadata.tasks[3].queue". */
struct member_location {
    const char *list;
    size_t index;
    bool is_stored; /* accepted before, maybe by other rules */
    struct failure *why;
};

enum err member_refuse(const struct member_location *location, const char *member,
                       const char *rule);

bool member_is_set(const json_t *value);

/* Reads the name of a task or queue; *name stays NULL if unset. */
enum err member_read_name(const struct member_location *location, const json_t *value,
                          const char *member, struct bytes **name);

/* Reads where the task is in the worker's sources, which is only handed back to it. */
enum err member_read_path(const struct member_location *location, const json_t *value,
                          const char *member, struct bytes **path);

/* Reads a number of at most max; leaves it alone if unset. */
enum err member_read_number(const struct member_location *location, const json_t *value,
                            const char *member, double max, double *number);

bool member_is_whole(const json_t *value);

/* The same for a number without a fraction: cutting that off could make a limit of 0. */
enum err member_read_whole(const struct member_location *location, const json_t *value,
                           const char *member, double max, double *number);

/* Reads a limit of a queue; UINT32_MAX if unset. */
enum err member_read_limit(const struct member_location *location, const json_t *value,
                           const char *member, uint32_t *limit);

/* Reads the name of a machine; -1 if unset. A stored name that is unknown counts as
 * none. */
enum err member_read_preset(const struct member_location *location, const json_t *value,
                            const char *member, int *machine);
