/* manifest.c - reads and rewrites build.json and package.json.
 *
 * Members that are not rewritten keep their bytes. */
#include "supervisor/versions/manifest.h"

#include "base/json/members.h"
#include "base/json/scan.h"
#include "base/mem.h"
#include "base/text.h"

/* Members of build.json that are paths, and whether each is required. */
static const struct {
    const char *name;
    bool needed;
} paths[] = {
    { "indexControllerEntryPoint", true },
    { "runControllerEntryPoint", true },
    { "indexWorkerEntryPoint", true },
    { "runWorkerEntryPoint", true },
    { "loaderEntryPoint", false },
    { "initEntryPoint", false },
    { "configPath", true },
    { "outputPath", true },
};

enum {
    PATHS = sizeof(paths) / sizeof(paths[0]),
    PATH_BYTES_MAX = 1024,
    MOVED_DEPTH_MAX = 200
};

static const struct slice root = { MANIFEST_ROOT, sizeof(MANIFEST_ROOT) - 1 };

/* Returns the part of a path after the folder: "" or "/…"; absent if it is another path. */
static struct slice path_within(struct slice path, struct slice folder)
{
    bool inside = path.len >= folder.len && folder.len &&
                  memcmp(path.ptr, folder.ptr, folder.len) == 0 &&
                  (path.len == folder.len || path.ptr[folder.len] == '/');
    return inside ? slice_from(path, folder.len) : (struct slice){ 0 };
}

static bool has_plain_parts(struct slice rest)
{
    struct slice part;
    if (memchr(rest.ptr, 0, rest.len))
        return false;
    while (slice_split(&rest, '/', &part))
        if (slice_is(part, ".") || slice_is(part, ".."))
            return false;
    return true;
}

/* Returns true for the root, or a path below it without "." and "..". */
static bool is_path(struct slice value)
{
    struct bytes *text = members_text_of(value);
    struct slice rest = text ? path_within(bytes_slice(text), root) : (struct slice){ 0 };
    bool right = rest.ptr && text->len < PATH_BYTES_MAX && has_plain_parts(rest);
    bytes_unref(text);
    return right;
}

static enum err check_paths(struct slice object, struct failure *why)
{
    for (size_t i = 0; i < PATHS; i++) {
        struct slice value = scan_member(object, paths[i].name);
        bool absent = scan_type(value) == SCAN_NONE || scan_type(value) == SCAN_NULL;
        if (absent ? paths[i].needed : !is_path(value))
            return explain(why, ERR_INVALID, "build.json: %s must be a path below %s",
                           paths[i].name, MANIFEST_ROOT);
    }
    return OK;
}

static enum err check_files(struct slice object, struct failure *why)
{
    struct slice files = scan_member(object, "files"), file;
    if (scan_type(files) != SCAN_ARRAY)
        return explain(why, ERR_INVALID, "build.json: files must be a list");
    struct scan_members all = scan_members(files);
    while (scan_next_element(&all, &file))
        if (scan_type(file) != SCAN_OBJECT || !is_path(scan_member(file, "out")))
            return explain(why, ERR_INVALID, "build.json: a file must be below %s",
                           MANIFEST_ROOT);
    return OK;
}

static enum err take_text(struct slice object, const char *name, char **out,
                          struct failure *why)
{
    struct bytes *text = members_text(object, name);
    bool right = text && text->len && text->len < PATH_BYTES_MAX &&
                 !memchr(text->data, 0, text->len);
    if (right)
        *out = mem_text(bytes_slice(text));
    bytes_unref(text);
    return right ? OK : explain(why, ERR_INVALID, "build.json: %s must be a string", name);
}

/* Takes a checked path without the root: "node_modules/x.mjs". */
static enum err take_entry(struct slice object, const char *name, char **out,
                           struct failure *why)
{
    struct bytes *text = members_text(object, name);
    struct slice rest = path_within(bytes_slice(text), root);
    while (rest.len && rest.ptr[0] == '/')
        rest = slice_from(rest, 1);
    enum err refused = OK;
    if (rest.len)
        *out = mem_text(rest);
    else
        refused =
            explain(why, ERR_INVALID, "build.json: %s is not the name of a file", name);
    bytes_unref(text);
    return refused;
}

static bool is_some_list(struct slice value)
{
    struct slice element;
    struct scan_members all = scan_members(value);
    return scan_type(value) == SCAN_ARRAY && scan_next_element(&all, &element);
}

static enum err read_image(struct slice object, struct manifest *manifest,
                           struct failure *why)
{
    struct slice image = scan_member(object, "image"), name;
    if (scan_type(image) == SCAN_NONE || scan_type(image) == SCAN_NULL)
        return OK;
    if (scan_type(image) != SCAN_OBJECT)
        return explain(why, ERR_INVALID, "build.json: image must be an object");
    enum scan_type base = scan_type(scan_member(image, "base"));
    enum scan_type build_base = scan_type(scan_member(image, "buildBase"));
    manifest->has_base = base == SCAN_STRING || build_base == SCAN_STRING;
    manifest->has_instructions = is_some_list(scan_member(image, "instructions"));
    struct slice packages = scan_member(image, "pkgs");
    if (!is_some_list(packages))
        return OK;
    struct scan_members all = scan_members(packages);
    manifest->packages = mem_new_array(struct bytes *, MANIFEST_PACKAGES_MAX);
    while (scan_next_element(&all, &name)) {
        struct bytes *text = members_text_of(name);
        if (!text || manifest->package_count == MANIFEST_PACKAGES_MAX) {
            bytes_unref(text);
            return explain(why, ERR_INVALID, "build.json: pkgs must be names, at most %d",
                           MANIFEST_PACKAGES_MAX);
        }
        manifest->packages[manifest->package_count++] = text;
    }
    return OK;
}

/* Reads the first two numbers of "4.8.3". Returns false if it is not a version. */
static bool read_release(const char *version, uint64_t *major, uint64_t *minor)
{
    struct slice rest = slice_of(version), first, second;
    return slice_split(&rest, '.', &first) && slice_split(&rest, '.', &second) &&
           rest.ptr && !text_to_u64(first, major) && !text_to_u64(second, minor);
}

static enum err check_cli(const struct manifest *manifest, struct failure *why)
{
    uint64_t major, minor;
    if (!read_release(manifest->cli_version, &major, &minor) || major < 4 ||
        (major == 4 && minor < 4))
        return explain(why, ERR_INVALID,
                       "the bundle was made by trigger.dev %.40s; upgrade to 4.4 or newer",
                       manifest->cli_version);
    return OK;
}

bool manifest_is_untested(const struct manifest *manifest)
{
    uint64_t major = 0, minor = 0;
    read_release(manifest->cli_version, &major, &minor);
    return major != 4 || minor != 8;
}

enum err manifest_read(struct slice text, struct manifest *manifest, struct failure *why)
{
    *manifest = (struct manifest){ 0 };
    if (!scan_is_json(text) || scan_type(text) != SCAN_OBJECT)
        return explain(why, ERR_INVALID, "build.json is not a JSON object");
    enum err refused = check_paths(text, why);
    if (!refused)
        refused = check_files(text, why);
    if (!refused)
        refused =
            take_entry(text, "indexControllerEntryPoint", &manifest->index_controller, why);
    if (!refused)
        refused =
            take_entry(text, "runControllerEntryPoint", &manifest->run_controller, why);
    if (!refused)
        refused = take_text(text, "runtime", &manifest->runtime, why);
    if (!refused)
        refused = take_text(text, "contentHash", &manifest->content_hash, why);
    if (!refused)
        refused = take_text(text, "cliPackageVersion", &manifest->cli_version, why);
    if (!refused)
        refused = check_cli(manifest, why);
    return refused ? refused : read_image(text, manifest, why);
}

void manifest_finish(struct manifest *manifest)
{
    free(manifest->index_controller);
    free(manifest->run_controller);
    free(manifest->runtime);
    free(manifest->content_hash);
    free(manifest->cli_version);
    for (size_t i = 0; i < manifest->package_count; i++)
        bytes_unref(manifest->packages[i]);
    free(manifest->packages);
    *manifest = (struct manifest){ 0 };
}

/* ---- moving to other folders ---- */

/* Appends a string value, rewritten if it is the path from or below it.
 *
 * Appends other values unchanged. */
static void add_moved(struct slice value, struct slice from, const char *to,
                      struct buf *out)
{
    struct bytes *text = members_text_of(value);
    struct slice rest = text ? path_within(bytes_slice(text), from) : (struct slice){ 0 };
    if (rest.ptr) {
        struct buf path = { 0 };
        buf_add_text(&path, to);
        buf_add(&path, rest);
        buf_add_json(out, buf_slice(&path));
        buf_finish(&path);
    } else {
        buf_add(out, value);
    }
    bytes_unref(text);
}

static bool is_path_member(struct slice key)
{
    for (size_t i = 0; i < PATHS; i++)
        if (scan_key_is(key, slice_of(paths[i].name)))
            return true;
    return false;
}

/* Adds a comma unless this is the first member or element. */
static void add_comma(struct buf *out)
{
    char last = out->ptr[out->len - 1];
    if (last != '{' && last != '[')
        buf_add_char(out, ',');
}

static void add_key(struct slice key, struct buf *out)
{
    add_comma(out);
    buf_add_char(out, '"');
    buf_add(out, key);
    buf_add_text(out, "\":");
}

static void add_file(struct slice file, const char *folder, struct buf *out)
{
    struct scan_members members = scan_members(file);
    struct slice key, value;
    add_comma(out);
    buf_add_char(out, '{');
    while (scan_next_member(&members, &key, &value)) {
        add_key(key, out);
        if (scan_key_is(key, SLICE("out")))
            add_moved(value, root, folder, out);
        else
            buf_add(out, value);
    }
    buf_add_char(out, '}');
}

void manifest_move(struct slice text, const char *folder, struct buf *out)
{
    struct scan_members members = scan_members(text);
    struct slice key, value, file;
    buf_add_char(out, '{');
    while (scan_next_member(&members, &key, &value)) {
        add_key(key, out);
        if (is_path_member(key)) {
            add_moved(value, root, folder, out);
        } else if (scan_key_is(key, SLICE("files"))) {
            struct scan_members files = scan_members(value);
            buf_add_char(out, '[');
            while (scan_next_element(&files, &file))
                add_file(file, folder, out);
            buf_add_char(out, ']');
        } else {
            buf_add(out, value);
        }
    }
    buf_add_char(out, '}');
}

/* Recursive, so bounded: paths deeper than MOVED_DEPTH_MAX levels stay as they are. */
static void move_value(struct slice value, struct slice from, const char *to,
                       unsigned depth, struct buf *out)
{
    enum scan_type type = scan_type(value);
    struct slice key, inner;
    if (depth == MOVED_DEPTH_MAX) {
        buf_add(out, value);
    } else if (type == SCAN_OBJECT) {
        struct scan_members members = scan_members(value);
        buf_add_char(out, '{');
        while (scan_next_member(&members, &key, &inner)) {
            add_key(key, out);
            move_value(inner, from, to, depth + 1, out);
        }
        buf_add_char(out, '}');
    } else if (type == SCAN_ARRAY) {
        struct scan_members elements = scan_members(value);
        buf_add_char(out, '[');
        while (scan_next_element(&elements, &inner)) {
            add_comma(out);
            move_value(inner, from, to, depth + 1, out);
        }
        buf_add_char(out, ']');
    } else if (type == SCAN_STRING) {
        add_moved(value, from, to, out);
    } else {
        buf_add(out, value);
    }
}

void index_move(struct slice text, const char *from, const char *to, struct buf *out)
{
    move_value(slice_trim(text), slice_of(from), to, 0, out);
}

/* ---- package.json ---- */

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
