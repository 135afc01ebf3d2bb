/* program_version.c - compares major versions. */
#include "supervisor/versions/program_version.h"

#include <stdio.h>
#include <stdlib.h>

enum { NODE_LEAST = 20 };

void program_version_add(struct program_version *version, struct slice text)
{
    size_t len = strlen(version->text), room = sizeof(version->text) - 1 - len;
    snprintf(version->text + len, room + 1, "%.*s",
             (int)(text.len < room ? text.len : room), text.ptr);
}

/* 0: the version names no Node. */
static long named_major(const char *runtime)
{
    return strncmp(runtime, "node-", 5) == 0 ? strtol(runtime + 5, NULL, 10) : 0;
}

/* 0: it was not asked, or prints no version. */
static long said_major(const struct program_version *version)
{
    return version->text[0] == 'v' ? strtol(version->text + 1, NULL, 10) : 0;
}

enum err program_version_check(struct program_version *version, const char *runtime,
                               const char *program, struct failure *why)
{
    long named = named_major(runtime);
    version->text[strcspn(version->text, "\r\n")] = '\0';
    if (said_major(version) >= NODE_LEAST)
        return OK;
    return explain(why, ERR_RULE,
                   "versions need Node %d or newer, and %s is %s: install a newer "
                   "one, and name it as in --node %ld=/opt/node/bin/node",
                   NODE_LEAST, program, version->text, named ? named : NODE_LEAST + 2);
}

bool program_version_hint(const struct program_version *version, const char *runtime,
                          char *out, size_t size)
{
    long named = named_major(runtime), said = said_major(version);
    if (!named || !said || named == said)
        return false;
    snprintf(
        out, size,
        "; the version names Node %ld and %s executed it: --node %ld=PATH names another "
        "one",
        named, version->text, named);
    return true;
}
