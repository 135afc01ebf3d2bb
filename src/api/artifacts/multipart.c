/* multipart.c - parses forms in pieces of any size.
 *
 *   preamble ─► divider ─► rest of its line ─► head ─► content ─► divider ─► …
 *                                 └─ "--": epilogue
 *
 * A divider begins with a line break, and none of its other bytes is a carriage return. So
 * when bytes that matched a divider stop matching, all of them were content, and none of
 * them can begin another divider. */
#include "api/artifacts/multipart.h"

#include <stdio.h>
#include <strings.h>

/* ---- parameters of headers ---- */

/* Returns the value of name in `; name="value"; other=value`, without its quotes; absent if
 * there is none. A quote inside quotes follows a backslash, which stays in the value. */
static struct slice parameter(struct slice text, const char *name)
{
    size_t name_len = strlen(name);
    while (text.len) {
        const char *next = memchr(text.ptr, ';', text.len);
        if (!next)
            break;
        text = slice_trim(slice_from(text, (size_t)(next - text.ptr) + 1));
        const char *equal = text.len ? memchr(text.ptr, '=', text.len) : NULL;
        if (!equal)
            break;
        struct slice key =
            slice_trim((struct slice){ text.ptr, (size_t)(equal - text.ptr) });
        struct slice value = slice_from(text, (size_t)(equal - text.ptr) + 1);
        size_t end = 0, begin = 0;
        if (value.len && value.ptr[0] == '"') {
            begin = end = 1;
            while (end < value.len && value.ptr[end] != '"')
                end += value.ptr[end] == '\\' && end + 1 < value.len ? 2 : 1;
        } else {
            while (end < value.len && value.ptr[end] != ';')
                end++;
        }
        struct slice found = { value.ptr + begin, end - begin };
        if (key.len == name_len && !strncasecmp(key.ptr, name, name_len))
            return begin ? found : slice_trim(found);
        text = slice_from(value, end);
    }
    return (struct slice){ 0 };
}

static bool is_boundary(struct slice text)
{
    static const char others[] = "'()+_,-./:=? ";
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                     (c >= 'A' && c <= 'Z') || (c && strchr(others, c));
        if (!plain)
            return false;
    }
    return text.len > 0 && text.len <= MULTIPART_BOUNDARY_MAX &&
           text.ptr[text.len - 1] != ' ';
}

enum err multipart_init(struct multipart *multipart, struct slice content_type)
{
    static const char form[] = "multipart/form-data";
    struct slice type = content_type, boundary;
    size_t len = sizeof(form) - 1;
    bool is_form = type.len >= len && !strncasecmp(type.ptr, form, len) &&
                   (type.len == len || type.ptr[len] == ';' || type.ptr[len] == ' ');
    if (!is_form)
        return explain(multipart->why, ERR_MEDIA_TYPE,
                       "The body must be multipart/form-data");
    boundary = parameter(type, "boundary");
    if (!is_boundary(boundary))
        return explain(multipart->why, ERR_INVALID,
                       "The content type multipart/form-data must have a boundary");
    multipart->divider_len = (size_t)snprintf(
        multipart->divider, sizeof(multipart->divider), "\r\n--%.*s", SLICE_ARG(boundary));
    multipart->matched = 2; /* the first divider may be at the very beginning */
    multipart->at = MULTIPART_PREAMBLE;
    return OK;
}

/* ---- a part ---- */

static enum err malformed(struct multipart *multipart, const char *what)
{
    return explain(multipart->why, ERR_INVALID, "The form is malformed: %s", what);
}

/* Returns the value of content-disposition in the lines of a head; absent if there is
 * none. */
static struct slice disposition(struct slice head)
{
    static const char name[] = "content-disposition:";
    size_t len = sizeof(name) - 1;
    struct slice line;
    while (slice_split(&head, '\n', &line))
        if (line.len >= len && !strncasecmp(line.ptr, name, len))
            return slice_trim(slice_from(line, len));
    return (struct slice){ 0 };
}

static enum err begin_part(struct multipart *multipart)
{
    struct slice value = disposition(buf_slice(&multipart->line));
    struct slice name = parameter(value, "name");
    if (!slice_starts(value, "form-data") || !name.ptr)
        return malformed(multipart, "a part has no name");
    if (++multipart->parts >
        (multipart->parts_max ? multipart->parts_max : MULTIPART_PARTS_MAX))
        return malformed(multipart, "it has too many parts");
    enum err err =
        multipart->on_part(multipart, name, parameter(value, "filename").ptr != NULL);
    buf_clear(&multipart->line);
    multipart->at = MULTIPART_CONTENT;
    return err;
}

/* Collects the head up to the empty line, which may be the first line. */
static enum err take_head(struct multipart *multipart, char c)
{
    struct buf *line = &multipart->line;
    buf_add_char(line, c);
    bool ends = (line->len == 2 && !memcmp(line->ptr, "\r\n", 2)) ||
                (line->len >= 4 && !memcmp(line->ptr + line->len - 4, "\r\n\r\n", 4));
    if (ends)
        return begin_part(multipart);
    return line->len < MULTIPART_HEAD_MAX
               ? OK
               : malformed(multipart, "the headers of a part are too long");
}

/* Collects the text after a divider: two hyphens, or white space and the end of the
 * line. */
static enum err take_line(struct multipart *multipart, char c)
{
    struct buf *line = &multipart->line;
    buf_add_char(line, c);
    if (line->len == 2 && !memcmp(line->ptr, "--", 2)) {
        buf_clear(line);
        multipart->at = MULTIPART_EPILOGUE;
    } else if (line->len >= 2 && !memcmp(line->ptr + line->len - 2, "\r\n", 2)) {
        bool blank = !slice_trim(buf_slice(line)).len;
        buf_clear(line);
        multipart->at = MULTIPART_HEAD;
        return blank ? OK : malformed(multipart, "a divider is followed by other text");
    } else if (line->len > MULTIPART_BOUNDARY_MAX) {
        return malformed(multipart, "a divider is followed by other text");
    }
    return OK;
}

/* ---- content ---- */

static enum err count_outside(struct multipart *multipart, size_t len)
{
    multipart->outside += len;
    return multipart->outside <= MULTIPART_OUTSIDE_MAX
               ? OK
               : malformed(multipart, "it has too many bytes outside of its parts");
}

static enum err hand_on(struct multipart *multipart, struct slice piece)
{
    if (multipart->at != MULTIPART_CONTENT)
        return count_outside(multipart, piece.len);
    return piece.len ? multipart->on_content(multipart, piece) : OK;
}

/* Passes on bytes that only looked like a divider. */
static enum err hand_on_matched(struct multipart *multipart)
{
    struct slice begun = { multipart->divider, multipart->matched };
    multipart->matched = 0;
    return hand_on(multipart, begun);
}

static enum err end_content(struct multipart *multipart)
{
    bool had_part = multipart->at == MULTIPART_CONTENT;
    multipart->matched = 0;
    multipart->at = MULTIPART_LINE;
    return had_part ? multipart->on_part_end(multipart) : OK;
}

/* Passes on everything before the next byte that may begin a divider. */
static enum err skip_to_break(struct multipart *multipart, struct slice *piece)
{
    const char *found = memchr(piece->ptr, '\r', piece->len);
    size_t len = found ? (size_t)(found - piece->ptr) : piece->len;
    enum err err = hand_on(multipart, (struct slice){ piece->ptr, len });
    *piece = slice_from(*piece, len);
    return err;
}

static enum err take_content(struct multipart *multipart, struct slice *piece)
{
    if (!multipart->matched && piece->ptr[0] != '\r')
        return skip_to_break(multipart, piece);
    if (piece->ptr[0] != multipart->divider[multipart->matched])
        return hand_on_matched(multipart);
    multipart->matched++;
    *piece = slice_from(*piece, 1);
    return multipart->matched == multipart->divider_len ? end_content(multipart) : OK;
}

static enum err take_epilogue(struct multipart *multipart, struct slice *piece)
{
    size_t len = piece->len;
    *piece = slice_from(*piece, len);
    return count_outside(multipart, len);
}

static enum err take_some(struct multipart *multipart, struct slice *piece)
{
    char c = piece->ptr[0];
    switch (multipart->at) {
    case MULTIPART_LINE: *piece = slice_from(*piece, 1); return take_line(multipart, c);
    case MULTIPART_HEAD: *piece = slice_from(*piece, 1); return take_head(multipart, c);
    case MULTIPART_EPILOGUE: return take_epilogue(multipart, piece);
    default: return take_content(multipart, piece);
    }
}

enum err multipart_feed(struct multipart *multipart, struct slice piece)
{
    enum err err = OK;
    while (!err && piece.len)
        err = take_some(multipart, &piece);
    return err;
}

enum err multipart_end(struct multipart *multipart)
{
    return multipart->at == MULTIPART_EPILOGUE
               ? OK
               : malformed(multipart, "it ends before its last divider");
}

void multipart_finish(struct multipart *multipart)
{
    buf_finish(&multipart->line);
}
