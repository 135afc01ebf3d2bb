/* member.c - checks and reads single members of tasks, queues and limits. */
#include "api/registration/member.h"

#include <math.h>
#include <stdio.h>

#include "runcast/run.h"

enum {
    NAME_BYTES_MAX = 256,
    PATH_BYTES_MAX = 1024,
    QUEUE_LIMIT_MAX = 100000,
};

enum err member_refuse(const struct member_location *location, const char *member,
                       const char *rule)
{
    return explain(location->why, ERR_INVALID, "metadata.%s[%zu].%s: %s", location->list,
                   location->index, member, rule);
}

bool member_is_set(const json_t *value)
{
    return value && !json_is_null(value);
}

enum err member_read_name(const struct member_location *location, const json_t *value,
                          const char *member, struct bytes **name)
{
    if (!member_is_set(value))
        return OK;
    size_t len = json_string_length(value);
    if (!json_is_string(value) || !len || len > NAME_BYTES_MAX)
        return member_refuse(location, member, "must be a string of 1 to 256 bytes");
    *name = bytes_create_shared((struct slice){ json_string_value(value), len });
    return OK;
}

enum err member_read_path(const struct member_location *location, const json_t *value,
                          const char *member, struct bytes **path)
{
    if (!json_is_string(value))
        return OK;
    if (json_string_length(value) > PATH_BYTES_MAX)
        return member_refuse(location, member, "must be a string of at most 1024 bytes");
    *path = bytes_create_shared(
        (struct slice){ json_string_value(value), json_string_length(value) });
    return OK;
}

enum err member_read_number(const struct member_location *location, const json_t *value,
                            const char *member, double max, double *number)
{
    if (!member_is_set(value))
        return OK;
    double given = json_number_value(value);
    if (!json_is_number(value) || !isfinite(given) || given < 0)
        return member_refuse(location, member, "must be a number of 0 or more");
    *number = given > max ? max : given;
    return OK;
}

bool member_is_whole(const json_t *value)
{
    return json_is_number(value) &&
           floor(json_number_value(value)) == json_number_value(value);
}

enum err member_read_whole(const struct member_location *location, const json_t *value,
                           const char *member, double max, double *number)
{
    if (member_is_set(value) && !location->is_stored && !member_is_whole(value))
        return member_refuse(location, member, "must be a whole number of 0 or more");
    return member_read_number(location, value, member, max, number);
}

enum err member_read_limit(const struct member_location *location, const json_t *value,
                           const char *member, uint32_t *limit)
{
    double given = json_number_value(value), number = -1;
    bool is_right = member_is_whole(value) && given >= 0 && given <= QUEUE_LIMIT_MAX;
    *limit = UINT32_MAX;
    if (member_is_set(value) && !location->is_stored && !is_right)
        return member_refuse(location, member, "must be a whole number from 0 to 100000");
    if (member_read_number(location, value, member, QUEUE_LIMIT_MAX, &number))
        return ERR_INVALID;
    if (number >= 0)
        *limit = (uint32_t)number;
    return OK;
}

enum err member_read_preset(const struct member_location *location, const json_t *value,
                            const char *member, int *machine)
{
    enum machine preset;
    const char *name = json_string_value(value);
    bool is_known = name && !machine_from_name(slice_of(name), &preset);
    *machine = is_known ? (int)preset : -1;
    if (member_is_set(value) && !location->is_stored && !is_known)
        return member_refuse(location, member,
                             "must be micro, small-1x, small-2x, medium-1x, "
                             "medium-2x, large-1x or large-2x");
    return OK;
}
