/* secret_filter.c - finds any number of secrets in one pass (Aho and Corasick, 1975).
 *
 *   secrets: abcd, abx, bcy           text: … a b c y …
 *
 *        ┌─ b ─ c ─ d                 root ─a─► a ─b─► ab ─c─► abc
 *   root ┤   a  └─ x                                            │ no y: fall back to "bc"
 *        └─ b ─ c ─ y                              bc ─y─► bcy, a secret ends here
 *
 * The patterns are sorted, so the trie is built level by level. The children of a node are
 * adjacent, ascending by their byte: those of node n begin at nodes[n].children and end
 * before nodes[n + 1].children. The fallback of a node is the longest suffix of its text
 * that is also in the trie.
 *
 * A fallback makes the matched text shorter by at least one byte, and each byte of the text
 * makes it longer by at most one. So a text of n bytes takes at most 2n steps. Each is a
 * binary search among at most 256 children, so it looks at nine nodes at most: SECRET_LOOKS
 * per byte. Building takes as many steps for each pattern. Both are counted, for the tests.
 *
 * Secrets that overlap are replaced together: the rest of the second one would still be
 * part of a secret. */
#include "api/deployments/secret_filter.h"

#include <stdlib.h>

#include "base/json/scan.h"
#include "base/mem.h"
#include "base/vault/secret.h"

struct secret_pattern {
    char *text;
    size_t len;
};

struct secret_node {
    uint32_t children; /* the first one; if equal to that of the next node: none */
    uint32_t fallback;
    uint32_t ends; /* bytes of the longest pattern that ends here; 0: none */
    unsigned char byte;
};

/* The patterns that go through a node. */
struct pattern_range {
    uint32_t from, to;
};

/* Nodes before next have their children. */
struct secret_building {
    uint32_t next, level_end;     /* level_end: the first node of the next level */
    size_t depth;                 /* of node next */
    struct pattern_range *ranges; /* of the nodes of this level, */
    struct pattern_range *below;  /* and of the next one */
    uint32_t level_begin;
};

/* Bytes of a text, counted from its beginning. */
struct secret_hole {
    uint64_t from, to;
};

static const char redacted[] = "<redacted>";

enum { NODES_AT_ONCE = 64 };

/* ---- patterns ---- */

static void add_one(struct secret_filter *filter, struct slice value)
{
    if (value.len < SECRET_LEAST)
        return;
    if ((filter->count & (filter->count - 1)) == 0) /* full: it doubles */
        filter->patterns = mem_resize(filter->patterns, 2 * (filter->count + 1) *
                                                            sizeof(struct secret_pattern));
    filter->patterns[filter->count++] =
        (struct secret_pattern){ .text = mem_text(value), .len = value.len };
    filter->bytes += value.len;
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
    size_t least = left->len < right->len ? left->len : right->len;
    int order = memcmp(left->text, right->text, least);
    return order ? order : (left->len > right->len) - (left->len < right->len);
}

static void forget_patterns(struct secret_filter *filter)
{
    for (size_t i = 0; i < filter->count; i++) {
        secret_wipe(filter->patterns[i].text, filter->patterns[i].len);
        free(filter->patterns[i].text);
    }
    free(filter->patterns);
    filter->patterns = NULL;
    filter->count = 0;
}

static void end_building(struct secret_filter *filter)
{
    if (filter->building) {
        free(filter->building->ranges);
        free(filter->building->below);
    }
    free(filter->building);
    filter->building = NULL;
}

void secret_filter_finish(struct secret_filter *filter)
{
    forget_patterns(filter);
    end_building(filter);
    if (filter->nodes)
        secret_wipe(filter->nodes, filter->node_count * sizeof(struct secret_node));
    free(filter->nodes);
    secret_wipe(filter, sizeof(*filter));
}

/* ---- the trie ---- */

/* Returns 0 if it has no child with this byte. Counts the nodes that it looks at. */
static uint32_t child(const struct secret_filter *filter, uint32_t node, unsigned char byte,
                      uint64_t *looks)
{
    const struct secret_node *nodes = filter->nodes;
    ++*looks;
    if (!node)
        return filter->first[byte];
    uint32_t low = nodes[node].children, high = nodes[node + 1].children;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        ++*looks;
        if (nodes[middle].byte == byte)
            return middle;
        if (nodes[middle].byte < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

static uint32_t step(const struct secret_filter *filter, uint32_t node, unsigned char byte,
                     uint64_t *looks)
{
    uint32_t next = child(filter, node, byte, looks);
    while (!next && node) {
        node = filter->nodes[node].fallback;
        next = child(filter, node, byte, looks);
    }
    return next;
}

static void add_child(struct secret_filter *filter, unsigned char byte,
                      struct pattern_range range)
{
    struct secret_building *building = filter->building;
    uint32_t parent = building->next, place = filter->node_count++;
    const struct secret_pattern *shortest = &filter->patterns[range.from];
    struct secret_node *node = &filter->nodes[place];
    node->byte = byte;
    node->fallback =
        parent ? step(filter, filter->nodes[parent].fallback, byte, &filter->looks) : 0;
    node->ends = shortest->len == building->depth + 1 ? (uint32_t)shortest->len
                                                      : filter->nodes[node->fallback].ends;
    building->below[place - building->level_end] = range;
    if (!parent)
        filter->first[byte] = place;
}

static void add_children(struct secret_filter *filter)
{
    struct secret_building *building = filter->building;
    const struct secret_pattern *patterns = filter->patterns;
    struct pattern_range range = building->ranges[building->next - building->level_begin];
    size_t depth = building->depth;
    filter->nodes[building->next].children = filter->node_count;
    while (range.from < range.to && patterns[range.from].len == depth)
        range.from++;
    while (range.from < range.to) {
        unsigned char byte = (unsigned char)patterns[range.from].text[depth];
        struct pattern_range same = { range.from, range.from + 1 };
        while (same.to < range.to && (unsigned char)patterns[same.to].text[depth] == byte)
            same.to++;
        add_child(filter, byte, same);
        range.from = same.to;
    }
    building->next++;
    filter->nodes[building->next].children = filter->node_count;
}

static void begin_level(const struct secret_filter *filter)
{
    struct secret_building *building = filter->building;
    struct pattern_range *ranges = building->ranges;
    building->ranges = building->below;
    building->below = ranges;
    building->level_begin = building->level_end;
    building->level_end = filter->node_count;
    building->depth++;
}

/* Memory that is not needed is never touched: patterns that begin alike share nodes. */
static void begin_building(struct secret_filter *filter)
{
    struct secret_building *building = mem_new(struct secret_building);
    qsort(filter->patterns, filter->count, sizeof(struct secret_pattern), compare);
    filter->nodes = mem_new_array(struct secret_node, filter->bytes + 2);
    filter->node_count = 1;
    building->ranges = mem_new_array(struct pattern_range, filter->count);
    building->below = mem_new_array(struct pattern_range, filter->count);
    building->ranges[0] = (struct pattern_range){ 0, (uint32_t)filter->count };
    building->level_end = 1;
    filter->building = building;
}

bool secret_filter_prepare(struct secret_filter *filter, struct timeslice *timeslice)
{
    if (filter->count && !filter->building)
        begin_building(filter);
    while (filter->building && timeslice_left_every(timeslice, NODES_AT_ONCE)) {
        struct secret_building *building = filter->building;
        add_children(filter);
        if (building->next == filter->node_count) {
            end_building(filter);
            forget_patterns(filter);
        } else if (building->next == building->level_end) {
            begin_level(filter);
        }
    }
    return !filter->building;
}

/* ---- texts ---- */

/* Adds a secret that ends at the current end of the text, and joins those that it
 * overlaps. */
static void add_hole(struct secret_scan *scan, size_t len)
{
    struct secret_hole hole = { scan->read - len, scan->read };
    while (scan->hole_count && scan->holes[scan->hole_count - 1].to > hole.from) {
        uint64_t from = scan->holes[--scan->hole_count].from;
        hole.from = from < hole.from ? from : hole.from;
    }
    scan->holes = mem_resize(scan->holes, (scan->hole_count + 1) * sizeof(hole));
    scan->holes[scan->hole_count++] = hole;
}

/* Emits the first bytes that are held. A hole that begins before them has already been
 * emitted; one that ends after them stays. */
static void emit(struct secret_scan *scan, size_t bytes, struct buf *out)
{
    uint64_t begin = scan->read - scan->held.len, end = begin + bytes, at = begin;
    const char *text = scan->held.ptr;
    size_t done = 0;
    for (size_t i = 0; i < scan->hole_count && scan->holes[i].from < end; i++) {
        const struct secret_hole *hole = &scan->holes[i];
        if (hole->from >= begin) {
            buf_add(out, (struct slice){ text + (at - begin), hole->from - at });
            buf_add_text(out, redacted);
        }
        at = hole->to < end ? hole->to : end;
        done += hole->to <= end;
    }
    if (at < end)
        buf_add(out, (struct slice){ text + (at - begin), end - at });
    buf_drop(&scan->held, bytes);
    scan->hole_count -= done;
    if (done)
        memmove(scan->holes, scan->holes + done, scan->hole_count * sizeof(*scan->holes));
}

/* A secret that ends in a later piece begins in the last `longest - 1` bytes of this
 * one. */
void secret_scan_add(struct secret_scan *scan, const struct secret_filter *filter,
                     struct slice piece, struct buf *out)
{
    size_t back = filter->longest ? filter->longest - 1 : 0;
    buf_add(&scan->held, piece);
    scan->read += filter->nodes ? 0 : piece.len;
    for (size_t i = 0; filter->nodes && i < piece.len; i++) {
        scan->read++;
        scan->node = step(filter, scan->node, (unsigned char)piece.ptr[i], &scan->looks);
        if (filter->nodes[scan->node].ends)
            add_hole(scan, filter->nodes[scan->node].ends);
    }
    if (scan->held.len > back)
        emit(scan, scan->held.len - back, out);
}

void secret_scan_end(struct secret_scan *scan, struct buf *out)
{
    if (scan->held.len)
        emit(scan, scan->held.len, out);
    secret_forget_buf(&scan->held);
    free(scan->holes);
    *scan = (struct secret_scan){ 0 };
}

void secret_filter_apply(const struct secret_filter *filter, struct slice text,
                         struct buf *out)
{
    struct secret_scan scan = { 0 };
    secret_scan_add(&scan, filter, text, out);
    secret_scan_end(&scan, out);
}
