/* tar.c - reads tar in blocks of 512 bytes; checks sizes before using them. */
#include "os/archive/tar.h"

#include <string.h>

#include "base/text.h"

/* Offsets of the fields of a header: POSIX.1-2017, pax, "ustar Interchange Format". */
enum {
    NAME_AT = 0,
    NAME_SIZE = 100,
    MODE_AT = 100,
    MODE_SIZE = 8,
    SIZE_AT = 124,
    SIZE_SIZE = 12,
    CHECKSUM_AT = 148,
    CHECKSUM_SIZE = 8,
    TYPE_AT = 156,
    MAGIC_AT = 257,
    MAGIC_SIZE = 6,
    PREFIX_AT = 345,
    PREFIX_SIZE = 155,
};

enum { HEADERS_PER_FILE = 4, HEADERS_MORE = 16 };

void tar_init(struct tar *tar, int file, const atomic_bool *canceled,
              const struct bundle_limits *limits)
{
    memset(tar, 0, sizeof(*tar));
    gunzip_init(&tar->gunzip, file, canceled);
    tar->limits = limits;
}

void tar_finish(struct tar *tar)
{
    gunzip_finish(&tar->gunzip);
}

/* ---- bytes ---- */

static enum err tar_refuse(const char *reason, struct failure *why)
{
    return explain(why, ERR_INVALID, "cannot read the archive: %s", reason);
}

/* Reads len bytes. *got is less only if the archive ends. */
static enum err read_up_to(struct tar *tar, char *to, size_t len, size_t *got,
                           struct failure *why)
{
    size_t more = 1;
    enum err err = OK;
    for (*got = 0; !err && more && *got < len; *got += more)
        err = gunzip_read(&tar->gunzip, to + *got, len - *got, &more, why);
    return err;
}

static enum err read_all(struct tar *tar, char *to, size_t len, struct failure *why)
{
    size_t got;
    enum err err = read_up_to(tar, to, len, &got, why);
    return err || got == len ? err : tar_refuse("it ends too early", why);
}

static unsigned padding_of(uint64_t size)
{
    return (unsigned)((TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK);
}

enum err tar_read(struct tar *tar, struct slice *piece, struct failure *why)
{
    size_t len = tar->left < TAR_READ_SIZE ? (size_t)tar->left : TAR_READ_SIZE;
    enum err err = read_all(tar, tar->bytes, len, why);
    if (err)
        return err;
    tar->left -= len;
    *piece = (struct slice){ tar->bytes, len };
    if (len || !tar->padding)
        return OK;
    err = read_all(tar, tar->block, tar->padding, why);
    tar->padding = 0;
    return err;
}

static enum err skip_content(struct tar *tar, struct failure *why)
{
    struct slice piece;
    enum err err;
    do
        err = tar_read(tar, &piece, why);
    while (!err && piece.len);
    return err;
}

/* ---- fields ---- */

/* Reads base 256, which GNU tar writes for numbers that exceed octal digits. */
static bool read_binary(const unsigned char *field, size_t len, uint64_t *number)
{
    uint64_t value = field[0] & 0x3f;
    if (field[0] & 0x40) /* negative */
        return false;
    for (size_t i = 1; i < len; i++) {
        if (value > INT64_MAX >> 8)
            return false;
        value = value << 8 | field[i];
    }
    *number = value;
    return true;
}

/* Reads octal digits between spaces and zeros; 0 if there are none. */
static bool read_number(const char *field, size_t len, uint64_t *number)
{
    uint64_t value = 0;
    size_t i = 0;
    if (field[0] & 0x80)
        return read_binary((const unsigned char *)field, len, number);
    while (i < len && field[i] == ' ')
        i++;
    for (; i < len && field[i] >= '0' && field[i] <= '7'; i++)
        value = value << 3 | (unsigned)(field[i] - '0'); /* at most 12 digits */
    *number = value;
    return i == len || field[i] == ' ' || !field[i];
}

/* Returns true if the checksum is the sum of all bytes, with spaces for the field itself.
 * Old programs add the bytes as signed ones. */
static bool has_checksum(const char *block)
{
    uint64_t said;
    unsigned sum = 0;
    int signed_sum = 0;
    for (size_t i = 0; i < TAR_BLOCK; i++) {
        bool is_own = i >= CHECKSUM_AT && i < CHECKSUM_AT + CHECKSUM_SIZE;
        sum += is_own ? ' ' : (unsigned char)block[i];
        signed_sum += is_own ? ' ' : (signed char)block[i];
    }
    return read_number(block + CHECKSUM_AT, CHECKSUM_SIZE, &said) &&
           (said == sum || (signed_sum >= 0 && said == (unsigned)signed_sum));
}

static bool is_empty(const char *block)
{
    return !block[0] && memcmp(block, block + 1, TAR_BLOCK - 1) == 0;
}

static struct slice field_of(const char *block, size_t at, size_t size)
{
    return (struct slice){ block + at, strnlen(block + at, size) };
}

static enum err set_name(struct tar *tar, struct slice first, struct slice last,
                         struct failure *why)
{
    size_t len = first.len ? first.len + 1 + last.len : last.len;
    if (len > BUNDLE_NAME_MAX)
        return explain(why, ERR_INVALID, "name too long (max %d bytes)", BUNDLE_NAME_MAX);
    if (last.len && memchr(last.ptr, 0, last.len))
        return explain(why, ERR_INVALID, "a name has a control character");
    char *to = tar->name;
    if (first.len) {
        memcpy(to, first.ptr, first.len);
        to += first.len;
        *to++ = '/';
    }
    if (last.len)
        memcpy(to, last.ptr, last.len);
    to[last.len] = '\0';
    return OK;
}

/* ---- headers that precede an entry ---- */

/* Counts the bytes of an extended header before they are read. */
static enum err count_extended(struct tar *tar, uint64_t size, struct failure *why)
{
    if (size > TAR_EXTENDED_MAX)
        return explain(why, ERR_INVALID,
                       "extended header of the archive too large (max %d bytes)",
                       TAR_EXTENDED_MAX);
    tar->extended += size;
    if (tar->extended <= tar->limits->unpacked_max)
        return OK;
    return explain(why, ERR_TOO_LARGE,
                   "the extended headers of the archive together are too large (max %llu "
                   "bytes, setting deploy-unpacked)",
                   (unsigned long long)tar->limits->unpacked_max);
}

/* Reads the whole content of a header into tar->bytes. */
static enum err read_extended(struct tar *tar, uint64_t size, struct slice *text,
                              struct failure *why)
{
    enum err err = count_extended(tar, size, why);
    err = err ? err : read_all(tar, tar->bytes, (size_t)size, why);
    err = err ? err : read_all(tar, tar->block, padding_of(size), why);
    *text = (struct slice){ tar->bytes, err ? 0 : (size_t)size };
    return err;
}

static enum err take_long_name(struct tar *tar, uint64_t size, bool is_link,
                               struct failure *why)
{
    struct slice text;
    if (size > BUNDLE_NAME_MAX + 1)
        return explain(why, ERR_INVALID, "name too long (max %d bytes)", BUNDLE_NAME_MAX);
    enum err err = read_extended(tar, size, &text, why);
    tar->is_link |= is_link;
    if (err || is_link)
        return err;
    text.len = strnlen(text.ptr, text.len);
    tar->has_name = true;
    return set_name(tar, (struct slice){ 0 }, text, why);
}

/* Members of Solaris, star and GNU tar, in this order. */
static bool says_sparse(struct slice name)
{
    return slice_starts(name, "SUN.holes") || slice_is(name, "SCHILY.realsize") ||
           slice_starts(name, "GNU.sparse.");
}

/* Uses records with a name, a size or a kind; ignores others. An empty value revokes an
 * earlier one. */
static enum err take_record(struct tar *tar, struct slice name, struct slice value,
                            struct failure *why)
{
    if (slice_is(name, "path")) {
        tar->has_name = value.len != 0;
        return set_name(tar, (struct slice){ 0 }, value, why);
    }
    if (slice_is(name, "linkpath"))
        tar->is_link = value.len != 0;
    if (slice_is(name, "size")) {
        tar->has_size = value.len != 0;
        if (tar->has_size && text_to_u64(value, &tar->size))
            return tar_refuse("a pax header has a size that is not a number", why);
    }
    tar->is_sparse |= says_sparse(name);
    return OK;
}

/* Cuts off "LENGTH NAME=VALUE\n", where LENGTH counts all of it. */
static bool cut_record(struct slice *rest, struct slice *name, struct slice *value)
{
    uint64_t len;
    const char *space = memchr(rest->ptr, ' ', rest->len);
    struct slice digits = { rest->ptr, space ? (size_t)(space - rest->ptr) : 0 };
    if (text_to_u64(digits, &len) || len > rest->len || len < digits.len + 2 ||
        rest->ptr[len - 1] != '\n')
        return false;
    struct slice record = { space + 1, (size_t)len - digits.len - 2 };
    const char *equals = memchr(record.ptr, '=', record.len);
    if (!equals)
        return false;
    *name = (struct slice){ record.ptr, (size_t)(equals - record.ptr) };
    *value = slice_from(record, name->len + 1);
    *rest = slice_from(*rest, (size_t)len);
    return true;
}

static enum err take_pax(struct tar *tar, uint64_t size, struct failure *why)
{
    struct slice rest, name, value;
    enum err err = read_extended(tar, size, &rest, why);
    while (!err && rest.len)
        err = cut_record(&rest, &name, &value) ? take_record(tar, name, value, why)
                                               : tar_refuse("a pax header is damaged", why);
    return err;
}

/* Reads a global header, which applies to all later entries. git archive writes a comment
 * there; no program writes a name. */
static enum err take_global(struct tar *tar, uint64_t size, struct failure *why)
{
    enum err err = take_pax(tar, size, why);
    if (!err && (tar->has_name || tar->has_size || tar->is_link || tar->is_sparse))
        return tar_refuse("a global pax header has the name or size of a file", why);
    return err;
}

/* ---- entries ---- */

static const char *kind_of(const struct tar *tar, char type)
{
    if (tar->is_link || type == '1' || type == '2')
        return "a link";
    if (tar->is_sparse || type == 'S')
        return "a file with holes";
    switch (type) {
    case '3':
    case '4': return "a device";
    case '6': return "a pipe";
    case '\0':
    case '0':
    case '5':
    case '7': return NULL;
    default: return "of an unknown kind";
    }
}

/* Old programs write a folder as an empty file whose name ends with a slash. */
static bool names_folder(const struct tar *tar, uint64_t size)
{
    size_t len = strlen(tar->name);
    return !size && len && tar->name[len - 1] == '/';
}

static enum err take_entry(struct tar *tar, char type, uint64_t size,
                           struct tar_entry *entry, struct failure *why)
{
    uint64_t mode;
    enum err err = OK;
    bool is_posix = memcmp(tar->block + MAGIC_AT, "ustar", MAGIC_SIZE) == 0;
    if (!tar->has_name)
        err = set_name(tar, field_of(tar->block, PREFIX_AT, is_posix ? PREFIX_SIZE : 0),
                       field_of(tar->block, NAME_AT, NAME_SIZE), why);
    if (err)
        return err;
    if (!read_number(tar->block + MODE_AT, MODE_SIZE, &mode))
        return tar_refuse("a header is damaged", why);
    size = tar->has_size ? tar->size : size;
    if (size > INT64_MAX)
        return tar_refuse("a size is too large", why);
    bool is_folder = type == '5' || names_folder(tar, size);
    *entry = (struct tar_entry){ .name = tar->name,
                                 .kind = kind_of(tar, type),
                                 .is_folder = is_folder,
                                 .executable = (mode & 0111) != 0,
                                 .size = is_folder ? 0 : size };
    tar->left = entry->size;
    tar->padding = padding_of(entry->size);
    return OK;
}

/* Reads a header. An archive may end with an empty block, or without one. */
static enum err read_block(struct tar *tar, bool *ended, struct failure *why)
{
    size_t got;
    bool is_first = !tar->headers++;
    uint64_t most = (uint64_t)HEADERS_PER_FILE * tar->limits->files_max + HEADERS_MORE;
    if (tar->headers > most)
        return explain(why, ERR_TOO_LARGE,
                       "too many headers in the archive (max %llu, which is %d for each "
                       "file of the setting deploy-files)",
                       (unsigned long long)most, HEADERS_PER_FILE);
    enum err err = read_up_to(tar, tar->block, TAR_BLOCK, &got, why);
    if (err)
        return err;
    *ended = (!got && !is_first) || (got == TAR_BLOCK && is_empty(tar->block));
    if (*ended || (got == TAR_BLOCK && has_checksum(tar->block)))
        return OK;
    if (is_first)
        return explain(why, ERR_INVALID, "the archive is not a tar archive in gzip");
    return tar_refuse(got < TAR_BLOCK ? "it ends too early" : "a header is damaged", why);
}

static enum err next_entry(struct tar *tar, struct tar_entry *entry, bool *ended,
                           struct failure *why)
{
    for (;;) {
        enum err err = read_block(tar, ended, why);
        uint64_t size;
        if (err || *ended)
            return err;
        char type = tar->block[TYPE_AT];
        if (!read_number(tar->block + SIZE_AT, SIZE_SIZE, &size))
            return tar_refuse("a header is damaged", why);
        switch (type) {
        case 'L': err = take_long_name(tar, size, false, why); break;
        case 'K': err = take_long_name(tar, size, true, why); break;
        case 'x':
        case 'X': err = take_pax(tar, size, why); break;
        case 'g': err = take_global(tar, size, why); break;
        default: return take_entry(tar, type, size, entry, why);
        }
        if (err)
            return err;
    }
}

enum err tar_next(struct tar *tar, struct tar_entry *entry, bool *ended,
                  struct failure *why)
{
    enum err err = skip_content(tar, why);
    tar->has_name = tar->has_size = tar->is_link = tar->is_sparse = false;
    return err ? err : next_entry(tar, entry, ended, why);
}
