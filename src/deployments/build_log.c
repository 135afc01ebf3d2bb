/* build_log.c - finds secrets in texts, by their first eight bytes.
 *
 *   text:  … i n g   s u p e r s e c r e t   f o r …
 *                   └── 8 bytes ──┘ ─► a bit of their hash ─► the patterns that begin so
 *
 * So a text costs one look for each of its bytes, however many secrets there are. */
#include "deployments/build_log.h"

#include <stdlib.h>

#include "base/mem.h"
#include "vault/secret.h"
#include "json/scan.h"

enum { SLACK = BUILD_LOG_MAX / 4 };

static const char redacted[] = "<redacted>";

static uint64_t begin_of(const char *text)
{
    uint64_t begin;
    memcpy(&begin, text, sizeof(begin));
    return begin;
}

static unsigned hash_of(uint64_t begin)
{
    return (unsigned)((begin * UINT64_C(0x9e3779b97f4a7c15)) >> 52); /* 12 bits */
}

/* ---- patterns ---- */

static void add_one(struct secret_filter *filter, struct slice value)
{
    if (value.len < SECRET_LEAST)
        return;
    filter->patterns =
        mem_resize(filter->patterns, (filter->count + 1) * sizeof(struct secret_pattern));
    filter->patterns[filter->count++] = (struct secret_pattern){
        .begin = begin_of(value.ptr), .text = mem_text(value), .len = value.len
    };
    unsigned hash = hash_of(begin_of(value.ptr));
    filter->begins[hash / 64] |= UINT64_C(1) << hash % 64;
    if (value.len > filter->longest)
        filter->longest = value.len;
}

void secret_filter_add(struct secret_filter *filter, struct slice value)
{
    struct buf escaped = { 0 };
    add_one(filter, value);
    buf_add_escaped(&escaped, value);
    if (!slice_equal(buf_slice(&escaped), value))
        add_one(filter, buf_slice(&escaped));
    secret_forget_buf(&escaped);
}

void secret_filter_add_all(struct secret_filter *filter, struct slice object)
{
    struct scan_members members = scan_members(object);
    struct slice key, value;
    while (scan_next_member(&members, &key, &value)) {
        struct buf text = { 0 };
        if (scan_string(value, &text))
            secret_filter_add(filter, buf_slice(&text));
        secret_forget_buf(&text);
    }
}

static int compare(const void *a, const void *b)
{
    const struct secret_pattern *left = a, *right = b;
    if (left->begin != right->begin)
        return left->begin < right->begin ? -1 : 1;
    return (left->len < right->len) - (left->len > right->len);
}

void secret_filter_sort(struct secret_filter *filter)
{
    if (filter->count)
        qsort(filter->patterns, filter->count, sizeof(struct secret_pattern), compare);
}

void secret_filter_finish(struct secret_filter *filter)
{
    for (size_t i = 0; i < filter->count; i++) {
        secret_wipe(filter->patterns[i].text, filter->patterns[i].len);
        free(filter->patterns[i].text);
    }
    free(filter->patterns);
    *filter = (struct secret_filter){ 0 };
}

/* ---- texts ---- */

/* The length of the secret that the text begins with; 0: with none. It has eight bytes. */
static size_t match(const struct secret_filter *filter, struct slice text)
{
    uint64_t begin = begin_of(text.ptr);
    unsigned hash = hash_of(begin);
    if (!(filter->begins[hash / 64] & UINT64_C(1) << hash % 64))
        return 0;
    size_t low = 0, high = filter->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (filter->patterns[middle].begin < begin)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < filter->count && filter->patterns[low].begin == begin; low++) {
        const struct secret_pattern *pattern = &filter->patterns[low];
        if (pattern->len <= text.len && !memcmp(pattern->text, text.ptr, pattern->len))
            return pattern->len;
    }
    return 0;
}

/* Up to `until`; returns where that ended, which is behind a secret that goes on beyond it. */
static size_t apply_until(const struct secret_filter *filter, struct slice text,
                          size_t until, struct buf *out)
{
    size_t at = 0, plain = 0;
    while (filter->count && at < until && text.len - at >= SECRET_LEAST) {
        size_t len = match(filter, slice_from(text, at));
        if (!len) {
            at++;
            continue;
        }
        buf_add(out, (struct slice){ text.ptr + plain, at - plain });
        buf_add_text(out, redacted);
        plain = at += len;
    }
    if (at < until)
        at = until;
    if (at > plain)
        buf_add(out, (struct slice){ text.ptr + plain, at - plain });
    return at;
}

void secret_filter_apply(const struct secret_filter *filter, struct slice text,
                         struct buf *out)
{
    apply_until(filter, text, text.len, out);
}

/* ---- a log ---- */

struct slice build_log_text(const struct build_log *log)
{
    struct slice text = buf_slice(&log->text);
    if (text.len <= BUILD_LOG_MAX)
        return text;
    text = slice_from(text, text.len - BUILD_LOG_MAX);
    const char *line = memchr(text.ptr, '\n', text.len);
    return line ? slice_from(text, (size_t)(line - text.ptr) + 1) : text;
}

static void cut(struct build_log *log)
{
    buf_drop(&log->text, log->text.len - build_log_text(log).len);
}

/* What may still be the beginning of a secret is held back. */
void build_log_add(struct build_log *log, const struct secret_filter *filter,
                   struct slice piece)
{
    size_t back = filter->longest ? filter->longest - 1 : 0;
    buf_add(&log->held, piece);
    if (log->held.len > back) {
        size_t taken =
            apply_until(filter, buf_slice(&log->held), log->held.len - back, &log->text);
        buf_drop(&log->held, taken);
    }
    if (log->text.len > BUILD_LOG_MAX + SLACK) /* not with each piece */
        cut(log);
}

void build_log_end(struct build_log *log, const struct secret_filter *filter)
{
    secret_filter_apply(filter, buf_slice(&log->held), &log->text);
    buf_finish(&log->held);
    cut(log);
}

void build_log_finish(struct build_log *log)
{
    buf_finish(&log->text);
    buf_finish(&log->held);
}
