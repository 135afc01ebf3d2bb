/* bundle_names.c - checks the names in an archive, and keeps them in a table. */
#include "os/archive/bundle_names.h"

#include "base/mem.h"
#include "base/text.h"
#include "os/archive/bundle.h"

struct bundle_name {
    bool is_folder;
    size_t len;
    char text[];
};

static struct slice key_of(const void *value)
{
    const struct bundle_name *name = value;
    return (struct slice){ name->text, name->len };
}

void bundle_names_init(struct bundle_names *names, uint32_t max)
{
    *names = (struct bundle_names){ .max = max };
    table_init(&names->table, key_of);
}

void bundle_names_finish(struct bundle_names *names)
{
    size_t at = 0;
    for (void *name; (name = table_next(&names->table, &at));)
        free(name);
    table_finish(&names->table);
}

static bool has_control(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.ptr[i] < 0x20 || text.ptr[i] == 0x7f)
            return true;
    return false;
}

static enum err check_parts(struct slice name, struct failure *why)
{
    struct slice rest = name, part;
    unsigned depth = 0;
    while (slice_split(&rest, '/', &part)) {
        if (!part.len || slice_is(part, ".") || slice_is(part, ".."))
            return explain(why, ERR_INVALID,
                           "the name \"%.*s\" has the forbidden part \"%.*s\"",
                           SLICE_ARG(text_clip(name)), SLICE_ARG(part));
        if (part.len > BUNDLE_PART_MAX)
            return explain(why, ERR_INVALID, "part of a name too long (max %d bytes)",
                           BUNDLE_PART_MAX);
        if (++depth > BUNDLE_DEPTH_MAX)
            return explain(why, ERR_INVALID, "too many parts in the name \"%.*s\" (max %d)",
                           SLICE_ARG(text_clip(name)), BUNDLE_DEPTH_MAX);
    }
    return OK;
}

enum err bundle_name_read(const char *text, struct slice *name, struct failure *why)
{
    struct slice whole = slice_of(text);
    if (!whole.len)
        return explain(why, ERR_INVALID, "an entry has no name");
    if (whole.len > BUNDLE_NAME_MAX)
        return explain(why, ERR_INVALID, "name too long (max %d bytes)", BUNDLE_NAME_MAX);
    if (!text_is_utf8(whole))
        return explain(why, ERR_INVALID, "a name is not UTF-8");
    if (has_control(whole))
        return explain(why, ERR_INVALID, "a name has a control character");
    if (whole.ptr[0] == '/')
        return explain(why, ERR_INVALID, "the name \"%.*s\" is absolute",
                       SLICE_ARG(text_clip(whole)));
    struct slice rest = whole;
    while (slice_starts(rest, "./"))
        rest = slice_from(rest, 2);
    if (rest.len && rest.ptr[rest.len - 1] == '/')
        rest.len--;
    if (slice_is(rest, "."))
        rest.len = 0;
    enum err err = rest.len ? check_parts(rest, why) : OK;
    if (!err)
        *name = rest;
    return err;
}

static enum err put(struct bundle_names *names, struct slice text, bool is_folder,
                    struct failure *why)
{
    if (names->table.count >= names->max)
        return explain(why, ERR_TOO_LARGE,
                       "too many files and folders (max %u, setting deploy-files)",
                       names->max);
    struct bundle_name *name = mem_new_flex(struct bundle_name, text.len + 1);
    name->is_folder = is_folder;
    name->len = text.len;
    memcpy(name->text, text.ptr, text.len);
    table_insert(&names->table, name);
    names->files += !is_folder;
    names->folders += is_folder;
    return OK;
}

static enum err add_folder(struct bundle_names *names, struct slice text,
                           struct failure *why)
{
    const struct bundle_name *there = table_find(&names->table, text);
    if (!there)
        return put(names, text, true, why);
    if (there->is_folder)
        return OK;
    return explain(why, ERR_INVALID, "\"%.*s\" is both a file and a folder",
                   SLICE_ARG(text_clip(text)));
}

enum err bundle_names_add(struct bundle_names *names, struct slice name, bool is_folder,
                          struct failure *why)
{
    for (size_t i = 0; i < name.len; i++)
        if (name.ptr[i] == '/') {
            enum err err = add_folder(names, (struct slice){ name.ptr, i }, why);
            if (err)
                return err;
        }
    if (is_folder)
        return name.len ? add_folder(names, name, why) : OK;
    const struct bundle_name *there = table_find(&names->table, name);
    if (!there)
        return put(names, name, false, why);
    return explain(why, ERR_INVALID,
                   there->is_folder ? "\"%.*s\" is both a file and a folder"
                                    : "\"%.*s\" occurs twice",
                   SLICE_ARG(text_clip(name)));
}
