/* backup_manifest.c - writes the manifest, and reads and checks every member of it. */
#include "server/backup/backup_manifest.h"

#include "base/json/members.h"
#include "base/json/scan.h"
#include "base/mem.h"
#include "base/table.h"
#include "base/text.h"

enum { FORMAT = 1, KEY_ID_DIGITS = KEY_ID_TEXT_MAX - 1, FIRST_CAPACITY = 16 };

static const char database[] = "runcast.db";

void backup_manifest_finish(struct backup_manifest *manifest)
{
    free(manifest->files);
    *manifest = (struct backup_manifest){ 0 };
}

/* ---- names ---- */

static bool is_hex(struct slice text, size_t len)
{
    for (size_t i = 0; i < text.len; i++)
        if (!strchr("0123456789abcdef", text.ptr[i]) || !text.ptr[i])
            return false;
    return text.len == len;
}

static bool is_key(struct slice name)
{
    static const char first[] = "encryption.key";
    if (!slice_starts(name, first))
        return false;
    struct slice rest = slice_from(name, sizeof(first) - 1);
    return !rest.len || slice_is(rest, ".next") ||
           (rest.ptr[0] == '.' && is_hex(slice_from(rest, 1), KEY_ID_DIGITS));
}

static bool is_of_deployment(struct slice name)
{
    static const char folder[] = "deployments/";
    static const char *const endings[] = { ".tar.gz", ".index.json", ".log" };
    if (!slice_starts(name, folder))
        return false;
    struct slice file = slice_from(name, sizeof(folder) - 1), id;
    slice_split(&file, '.', &id);
    for (size_t i = 0; file.ptr && i < sizeof(endings) / sizeof(endings[0]); i++)
        if (slice_is(file, endings[i] + 1))
            return text_is_id(id, "deployment");
    return false;
}

bool backup_name_is_right(struct slice name)
{
    return name.len < BACKUP_NAME_MAX &&
           (slice_is(name, database) || is_key(name) || is_of_deployment(name));
}

/* ---- files ---- */

void backup_manifest_add(struct backup_manifest *manifest, const char *name,
                         const struct file_facts *facts)
{
    if (manifest->count == manifest->capacity) {
        manifest->capacity = manifest->capacity ? 2 * manifest->capacity : FIRST_CAPACITY;
        manifest->files =
            mem_resize(manifest->files, manifest->capacity * sizeof(*manifest->files));
    }
    struct backup_file *file = &manifest->files[manifest->count++];
    snprintf(file->name, sizeof(file->name), "%s", name);
    file->facts = *facts;
}

const struct backup_file *backup_manifest_find(const struct backup_manifest *manifest,
                                               const char *name)
{
    for (size_t i = 0; i < manifest->count; i++)
        if (!strcmp(manifest->files[i].name, name))
            return &manifest->files[i];
    return NULL;
}

uint64_t backup_manifest_bytes(const struct backup_manifest *manifest)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < manifest->count; i++)
        sum += manifest->files[i].facts.bytes;
    return sum;
}

/* ---- writing ---- */

void backup_manifest_write(const struct backup_manifest *manifest, struct buf *out)
{
    buf_add_char(out, '{');
    members_add_number(out, "format", FORMAT);
    members_add_text(out, "runcast", slice_of(manifest->runcast));
    members_add_number(out, "schema", manifest->schema);
    members_add_text(out, "epoch", slice_of(manifest->epoch));
    members_add_time(out, "madeAt", manifest->made_at);
    if (manifest->key[0])
        members_add_text(out, "key", slice_of(manifest->key));
    members_add_bool(out, "holdsKey", manifest->holds_key);
    members_add_name(out, "files");
    buf_add_char(out, '[');
    for (size_t i = 0; i < manifest->count; i++) {
        const struct backup_file *file = &manifest->files[i];
        buf_add_text(out, i ? ",\n{" : "\n{");
        members_add_text(out, "name", slice_of(file->name));
        members_add_number(out, "bytes", (int64_t)file->facts.bytes);
        members_add_text(out, "sha256", slice_of(file->facts.sha256));
        buf_add_char(out, '}');
    }
    buf_add_text(out, "]}\n");
}

/* ---- reading ---- */

static enum err damaged(const char *what, struct failure *why)
{
    return explain(
        why, ERR_INVALID,
        "manifest.json is damaged or not written by runcast: %s; use another backup", what);
}

/* Returns false if it is missing, too long, or contains a zero byte. */
static bool read_text(struct slice object, const char *name, char *out, size_t size)
{
    struct bytes *text = members_text(object, name);
    bool fits = text && text->len < size && !memchr(text->data, 0, text->len);
    if (fits)
        snprintf(out, size, "%s", text->data);
    bytes_unref(text);
    return fits;
}

static bool read_time(struct slice object, const char *name, int64_t *unix_ms)
{
    char text[TIME_TEXT_LEN + 1];
    return read_text(object, name, text, sizeof(text)) &&
           text_to_time(slice_of(text), unix_ms) == OK;
}

static enum err read_head(struct slice text, struct backup_manifest *manifest,
                          struct failure *why)
{
    int64_t format;
    if (!scan_is_json(text) || scan_type(text) != SCAN_OBJECT ||
        !members_number(text, "format", &format))
        return damaged("it is not whole", why);
    if (format != FORMAT)
        return explain(
            why, ERR_INVALID,
            "the backup was made by a newer runcast; restore it with that version");
    manifest->holds_key = members_is_true(text, "holdsKey");
    read_text(text, "key", manifest->key, sizeof(manifest->key));
    if (!read_text(text, "runcast", manifest->runcast, sizeof(manifest->runcast)) ||
        !read_text(text, "epoch", manifest->epoch, sizeof(manifest->epoch)) ||
        !members_number(text, "schema", &manifest->schema) ||
        !read_time(text, "madeAt", &manifest->made_at))
        return damaged("a member is missing", why);
    if (manifest->key[0] && !is_hex(slice_of(manifest->key), KEY_ID_DIGITS))
        return damaged("its key is not the id of a key", why);
    return OK;
}

static enum err read_file(struct slice element, struct backup_manifest *manifest,
                          struct failure *why)
{
    struct backup_file file = { 0 };
    bool is_object = scan_type(element) == SCAN_OBJECT;
    struct bytes *name = is_object ? members_text(element, "name") : NULL;
    bool is_right = name && backup_name_is_right(bytes_slice(name));
    int64_t bytes = -1;
    if (is_right)
        snprintf(file.name, sizeof(file.name), "%s", name->data);
    else
        explain(why, ERR_INVALID,
                "manifest.json names \"%.*s\", which is not a file of a backup: the "
                "manifest was changed; use another backup",
                SLICE_ARG(text_clip(bytes_slice(name))));
    bytes_unref(name);
    if (!is_right)
        return ERR_INVALID;
    if (!members_number(element, "bytes", &bytes) || bytes < 0 ||
        !read_text(element, "sha256", file.facts.sha256, sizeof(file.facts.sha256)) ||
        !is_hex(slice_of(file.facts.sha256), FILE_PASS_HASH - 1))
        return damaged("size or hash of a file is missing", why);
    file.facts.bytes = (uint64_t)bytes;
    backup_manifest_add(manifest, file.name, &file.facts);
    return OK;
}

static struct slice key_of(const void *value)
{
    return slice_of(((const struct backup_file *)value)->name);
}

static bool has_twice(struct backup_manifest *manifest)
{
    struct table names;
    bool twice = false;
    table_init(&names, key_of);
    for (size_t i = 0; !twice && i < manifest->count; i++) {
        twice = table_find(&names, key_of(&manifest->files[i])) != NULL;
        if (!twice)
            table_insert(&names, &manifest->files[i]);
    }
    table_finish(&names);
    return twice;
}

static enum err read_all(struct slice text, struct backup_manifest *manifest,
                         struct failure *why)
{
    struct slice files, element;
    enum err err = read_head(text, manifest, why);
    if (err)
        return err;
    files = scan_member(text, "files");
    if (scan_type(files) != SCAN_ARRAY)
        return damaged("it names no files", why);
    struct scan_members elements = scan_members(files);
    while (!err && scan_next_element(&elements, &element)) {
        if (manifest->count == BACKUP_FILES_MAX)
            return damaged("it names too many files", why);
        err = read_file(element, manifest, why);
    }
    if (err)
        return err;
    if (has_twice(manifest))
        return damaged("it names a file twice", why);
    return backup_manifest_find(manifest, database) ? OK
                                                    : damaged("it names no database", why);
}

enum err backup_manifest_read(struct slice text, struct backup_manifest *manifest,
                              struct failure *why)
{
    struct backup_manifest read = { 0 };
    enum err err = read_all(text, &read, why);
    if (err)
        backup_manifest_finish(&read);
    else
        *manifest = read;
    return err;
}
