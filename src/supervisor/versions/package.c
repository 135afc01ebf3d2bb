/* package.c - looks at two members of package.json. */
#include "supervisor/versions/package.h"

#include "base/json/scan.h"

enum err package_has_dependencies(struct slice text, bool *has, struct failure *why)
{
    struct slice name, value;
    if (!scan_is_json(text) || scan_type(text) != SCAN_OBJECT)
        return explain(why, ERR_INVALID, "package.json is not a JSON object");
    struct slice needed = scan_member(text, "dependencies");
    struct scan_members members = scan_members(needed);
    *has = scan_type(needed) == SCAN_OBJECT && scan_next_member(&members, &name, &value);
    return OK;
}

bool package_without_workspaces(struct slice text, struct buf *out)
{
    struct scan_members members = scan_members(text);
    struct slice name, value;
    bool is_first = true;
    if (!scan_member(text, "workspaces").ptr)
        return false;
    buf_add_char(out, '{');
    while (scan_next_member(&members, &name, &value)) {
        if (slice_is(name, "workspaces"))
            continue;
        buf_print(out, "%s\"%.*s\":%.*s", is_first ? "" : ",", SLICE_ARG(name),
                  SLICE_ARG(value));
        is_first = false;
    }
    buf_add_char(out, '}');
    return true;
}
