/* child_environment.c - a growing array of NAME=value texts. */
#include "os/process/child_environment.h"

#include <inttypes.h>

#include "base/buf.h"
#include "base/mem.h"

enum { FIRST_CAPACITY = 32, NUMBER_TEXT = 24 };

static void make_room(struct child_environment *environment)
{
    if (environment->count + 1 < environment->capacity)
        return;
    environment->capacity =
        environment->capacity ? 2 * environment->capacity : FIRST_CAPACITY;
    environment->entries =
        mem_resize(environment->entries, environment->capacity * sizeof(char *));
}

void child_environment_add(struct child_environment *environment, const char *name,
                           struct slice value)
{
    size_t name_len = strlen(name);
    make_room(environment);
    char *entry = mem_alloc(name_len + 1 + value.len + 1);
    memcpy(entry, name, name_len);
    entry[name_len] = '=';
    if (value.len)
        memcpy(entry + name_len + 1, value.ptr, value.len);
    environment->entries[environment->count++] = entry;
    environment->entries[environment->count] = NULL;
}

void child_environment_add_number(struct child_environment *environment, const char *name,
                                  int64_t number)
{
    char text[NUMBER_TEXT];
    snprintf(text, sizeof(text), "%" PRId64, number);
    child_environment_add(environment, name, slice_of(text));
}

const char *const *child_environment_list(const struct child_environment *environment)
{
    static const char *const none[] = { NULL };
    return environment->entries ? (const char *const *)environment->entries : none;
}

void child_environment_finish(struct child_environment *environment)
{
    for (size_t i = 0; i < environment->count; i++) {
        explicit_bzero(environment->entries[i], strlen(environment->entries[i]));
        free(environment->entries[i]);
    }
    free(environment->entries);
    *environment = (struct child_environment){ 0 };
}
