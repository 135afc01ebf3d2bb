/* ignored.c - collects names of ignored members and parameters, encoded, each once. */
#include "base/json/ignored.h"

#include <ctype.h>

#include "base/json/scan.h"

static const char between[] = ", ";

/* One path, encoded; it did not fit if len exceeds the size of text. */
struct path {
    char text[IGNORED_BYTES_MAX];
    size_t len;
};

static void add(struct path *path, char c)
{
    if (path->len < sizeof(path->text))
        path->text[path->len] = c;
    path->len++;
}

static void add_text(struct path *path, const char *text)
{
    while (*text)
        add(path, *text++);
}

static void add_encoded(struct path *path, struct slice name, const char *harmless)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < name.len && path->len < sizeof(path->text); i++) {
        unsigned char c = (unsigned char)name.ptr[i];
        if (c < 0x80 && (isalnum(c) || (c && strchr(harmless, c)))) {
            add(path, (char)c);
        } else {
            add(path, '%');
            add(path, digits[c >> 4]);
            add(path, digits[c & 15]);
        }
    }
}

static bool is_named(const struct ignored *ignored, struct slice name)
{
    struct slice rest = buf_slice(&ignored->names), one;
    while (slice_split(&rest, ',', &one))
        if (slice_equal(slice_trim(one), name))
            return true;
    return false;
}

static void keep(struct ignored *ignored, const struct path *path)
{
    struct slice name = { path->text, path->len };
    size_t comma = ignored->count ? sizeof(between) - 1 : 0;
    if (ignored->names.len + comma + path->len > IGNORED_BYTES_MAX ||
        is_named(ignored, name))
        return;
    buf_add(&ignored->names, (struct slice){ between, comma });
    buf_add(&ignored->names, name);
    ignored->count++;
}

static bool is_full(const struct ignored *ignored)
{
    return !ignored || ignored->count == IGNORED_NAMES_MAX;
}

void ignored_add_member(struct ignored *ignored, const char *where, struct slice raw_key)
{
    struct path path = { .len = 0 };
    struct buf name = { 0 };
    /* One byte may be spelled with six at most. */
    if (is_full(ignored) || raw_key.len > (size_t)IGNORED_BYTES_MAX * 6)
        return;
    scan_unescape(raw_key, &name);
    add_text(&path, where);
    add_encoded(&path, buf_slice(&name), "_-$@");
    buf_finish(&name);
    keep(ignored, &path);
}

static bool is_known(struct slice raw_key, const char *const *known)
{
    for (; *known; known++)
        if (scan_key_is(raw_key, slice_of(*known)))
            return true;
    return false;
}

void ignored_add_others(struct ignored *ignored, const char *where, struct slice object,
                        const char *const *known)
{
    struct slice key, value;
    struct scan_members members = scan_members(object);
    if (scan_type(object) != SCAN_OBJECT)
        return;
    while (scan_next_member(&members, &key, &value))
        if (!is_known(key, known))
            ignored_add_member(ignored, where, key);
}

void ignored_add_parameter(struct ignored *ignored, struct slice name)
{
    struct path path = { .len = 0 };
    if (is_full(ignored))
        return;
    add_encoded(&path, name, "_-$@.[]");
    keep(ignored, &path);
}

void ignored_finish(struct ignored *ignored)
{
    buf_finish(&ignored->names);
}
