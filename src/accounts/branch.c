/* branch.c - checks names of preview branches, and strips refs/heads/ from them. */
#include "accounts/branch.h"

#include "accounts/accounts.h"

static bool is_right_byte(char c)
{
    return (unsigned char)c > ' ' && c != 0x7f && !strchr("~^:?*[\\", c);
}

static bool ends(struct slice text, const char *with)
{
    size_t len = strlen(with);
    return text.len >= len && memcmp(text.ptr + text.len - len, with, len) == 0;
}

bool branch_name_is_right(struct slice name)
{
    if (!name.len || name.len > BRANCH_NAME_MAX || !text_is_utf8(name))
        return false;
    for (size_t i = 0; i < name.len; i++) {
        struct slice rest = slice_from(name, i);
        if (!is_right_byte(name.ptr[i]) || slice_starts(rest, "//") ||
            slice_starts(rest, "..") || slice_starts(rest, "@{"))
            return false;
    }
    return name.ptr[0] != '/' && !ends(name, "/") && !ends(name, ".lock");
}

struct slice branch_name_clean(struct slice ref)
{
    static const char *const prefixes[] = {
        "refs/heads/", "refs/remotes/", "refs/tags/",
        "refs/pull/",  "refs/merge/",   "refs/release/"
    };
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
        if (slice_starts(ref, prefixes[i]))
            return slice_from(ref, strlen(prefixes[i]));
    return slice_starts(ref, "refs/") ? SLICE("") : ref;
}
