/* metadata.c - applies operations to JSON text, and builds a tree only along their paths.
 *
 * The object begins as one node, a span of its text. A node on an operation's path is
 * opened: its members become separate nodes, again spans. At the end, opened nodes are
 * rewritten, and every other span is copied unchanged.
 *
 *   {"a": {"x": 1e400}, "n": 1}    increment n      opened: the root; a stays a span
 *   {"a":{"x": 1e400},"n":2}
 *
 * Spans point into the object, into the operations, or into texts made here, which the
 * editor keeps until the end. Operations that together would block the loop for too long
 * are refused: every visited member and every compared byte counts. */
#include "core/model/metadata.h"

#include <math.h>
#include <stdint.h>

#include "base/json/scan.h"
#include "base/mem.h"
#include "base/text.h"
#include "core/model/operation.h"

enum {
    WORK_MAX = 3000000, /* roughly nanoseconds: much of a turn */
    WORK_OF_VISIT = 2,
    /* For each byte of a key that is read completely, including escapes. */
    WORK_OF_KEY_BYTE = 6,
    WORK_OF_OPENING = 16, /* for each member that becomes a node */
    WORK_OF_OPERATION = 64,
};

/* ---- nodes ---- */

enum node_kind { NODE_SPAN, NODE_ARRAY, NODE_OBJECT };

struct metadata_node {
    struct slice key;  /* for a member: as spelled, without quotes */
    struct slice span; /* for NODE_SPAN; absent: no value yet */
    struct metadata_node *children;
    uint32_t count, capacity;
    enum node_kind kind;
    uint32_t hash; /* of the name that key spells */
};

/* A text that the editor has made. */
struct made_text {
    struct made_text *next;
    char text[];
};

struct editor {
    struct metadata_node root;
    struct made_text *kept;
    uint64_t left;   /* left of WORK_MAX; 0: the operations are refused */
    struct buf name; /* scratch: a key without its escapes */
};

static void spend(struct editor *editor, uint64_t work)
{
    editor->left = editor->left > work ? editor->left - work : 0;
}

static struct slice keep(struct editor *editor, struct slice text)
{
    struct made_text *kept = mem_new_flex(struct made_text, text.len + 1);
    memcpy(kept->text, text.ptr, text.len);
    kept->next = editor->kept;
    editor->kept = kept;
    return (struct slice){ kept->text, text.len };
}

static void close_node(struct metadata_node *node)
{
    for (uint32_t i = 0; i < node->count; i++)
        close_node(&node->children[i]);
    free(node->children);
    node->children = NULL;
    node->count = node->capacity = 0;
}

static void set_span(struct metadata_node *node, struct slice span)
{
    close_node(node);
    node->kind = NODE_SPAN;
    node->span = slice_trim(span);
}

static struct metadata_node *add_child(struct metadata_node *node, struct slice key,
                                       struct slice span)
{
    if (node->count == node->capacity) {
        node->capacity = node->capacity ? node->capacity * 2 : 4;
        node->children = mem_resize(node->children, node->capacity * sizeof(*node));
    }
    struct metadata_node *child = &node->children[node->count++];
    *child = (struct metadata_node){ .key = key, .span = span };
    return child;
}

static void remove_child(struct metadata_node *node, struct metadata_node *child)
{
    close_node(child);
    struct metadata_node *end = &node->children[node->count--];
    memmove(child, child + 1, (size_t)((char *)end - (char *)(child + 1)));
}

/* ---- names ---- */

/* Hashes a name: members with another hash are skipped without reading their keys. Keys
 * with equal hashes are read, and charged as work. */
static uint32_t hash_of(struct slice name)
{
    uint32_t hash = 2166136261; /* FNV-1a */
    for (size_t i = 0; i < name.len; i++)
        hash = (hash ^ (unsigned char)name.ptr[i]) * 16777619;
    return hash;
}

static uint32_t hash_of_key(struct editor *editor, struct slice key)
{
    if (!key.len || !memchr(key.ptr, '\\', key.len))
        return hash_of(key);
    buf_clear(&editor->name);
    scan_unescape(key, &editor->name);
    spend(editor, key.len * WORK_OF_KEY_BYTE);
    return hash_of(buf_slice(&editor->name));
}

static bool is_named(struct editor *editor, const struct metadata_node *member,
                     struct slice name, uint32_t hash)
{
    if (member->hash != hash)
        return false;
    spend(editor, member->key.len * WORK_OF_KEY_BYTE);
    return scan_key_is(member->key, name);
}

/* ---- opening ---- */

/* Returns false if it is neither object nor array. */
static bool open_node(struct editor *editor, struct metadata_node *node)
{
    if (node->kind != NODE_SPAN)
        return true;
    struct slice span = node->span, key = { 0 }, value;
    struct scan_members members = scan_members(span);
    switch (scan_type(span)) {
    case SCAN_OBJECT:
        node->kind = NODE_OBJECT;
        while (scan_next_member(&members, &key, &value))
            add_child(node, key, value)->hash = hash_of_key(editor, key);
        break;
    case SCAN_ARRAY:
        node->kind = NODE_ARRAY;
        while (scan_next_element(&members, &value))
            add_child(node, key, value);
        break;
    default: return false;
    }
    spend(editor, span.len + (uint64_t)node->count * WORK_OF_OPENING);
    return true;
}

/* Returns the last member of that name, and removes the others. */
static struct metadata_node *find_member(struct editor *editor, struct metadata_node *node,
                                         struct slice name)
{
    uint32_t matches = 0, last = 0, kept = 0, hash = hash_of(name);
    spend(editor, (uint64_t)node->count * WORK_OF_VISIT);
    for (uint32_t i = 0; i < node->count; i++) {
        if (!is_named(editor, &node->children[i], name, hash))
            continue;
        matches++;
        last = i;
    }
    if (matches < 2)
        return matches ? &node->children[last] : NULL;

    for (uint32_t i = 0; i < node->count; i++) {
        struct metadata_node *child = &node->children[i];
        if (i != last && is_named(editor, child, name, hash))
            close_node(child);
        else
            node->children[kept++] = *child;
    }
    node->count = kept;
    return &node->children[last - (matches - 1)];
}

static struct metadata_node *find_child(struct editor *editor, struct metadata_node *node,
                                        struct slice part)
{
    uint64_t index;
    if (node->kind == NODE_OBJECT)
        return find_member(editor, node, part);
    if (text_to_u64(part, &index) || index >= node->count)
        return NULL;
    return &node->children[index];
}

/* Adds a missing child. An array grows only at its end. Returns NULL if it cannot be
 * added. */
static struct metadata_node *make_child(struct editor *editor, struct metadata_node *node,
                                        struct slice part)
{
    uint64_t index;
    if (node->kind == NODE_ARRAY) {
        if (text_to_u64(part, &index) || index != node->count)
            return NULL;
        return add_child(node, (struct slice){ 0 }, (struct slice){ 0 });
    }
    struct buf spelled = { 0 };
    buf_add_json(&spelled, part);
    struct slice key = { spelled.ptr + 1, spelled.len - 2 };
    struct metadata_node *child = add_child(node, keep(editor, key), (struct slice){ 0 });
    child->hash = hash_of(part);
    buf_finish(&spelled);
    return child;
}

/* Returns the node at the end of the first `count` parts of the path, or NULL. With make,
 * adds the missing nodes. */
static struct metadata_node *
follow(struct editor *editor, const struct operation *operation, size_t count, bool make)
{
    struct metadata_node *node = &editor->root;
    for (size_t i = 0; i < count; i++) {
        if (!node->span.ptr && node->kind == NODE_SPAN)
            node->kind = NODE_OBJECT; /* added just now */
        if (!open_node(editor, node))
            return NULL;
        struct metadata_node *child = find_child(editor, node, operation->parts[i]);
        if (!child && make)
            child = make_child(editor, node, operation->parts[i]);
        if (!child)
            return NULL;
        node = child;
    }
    return node;
}

static void write_node(const struct metadata_node *node, struct buf *out)
{
    if (node->kind == NODE_SPAN) {
        buf_add(out, node->span);
        return;
    }
    buf_add_char(out, node->kind == NODE_OBJECT ? '{' : '[');
    for (uint32_t i = 0; i < node->count; i++) {
        if (i > 0)
            buf_add_char(out, ',');
        if (node->kind == NODE_OBJECT) {
            buf_add_char(out, '"');
            buf_add(out, node->children[i].key);
            buf_add_text(out, "\":");
        }
        write_node(&node->children[i], out);
    }
    buf_add_char(out, node->kind == NODE_OBJECT ? '}' : ']');
}

/* Turns the node into one span again, and returns its text. */
static struct slice span_of(struct editor *editor, struct metadata_node *node)
{
    if (node->kind != NODE_SPAN) {
        struct buf text = { 0 };
        write_node(node, &text);
        spend(editor, text.len);
        set_span(node, keep(editor, buf_slice(&text)));
        buf_finish(&text);
    }
    return node->span;
}

/* ---- the operations ---- */

static void append(struct editor *editor, struct metadata_node *node, struct slice value)
{
    bool opened = open_node(editor, node);
    if (!opened || node->kind == NODE_OBJECT) {
        struct metadata_node old = *node;
        *node =
            (struct metadata_node){ .key = old.key, .kind = NODE_ARRAY, .hash = old.hash };
        if (opened || old.span.ptr)
            *add_child(node, (struct slice){ 0 }, (struct slice){ 0 }) = old;
    }
    add_child(node, (struct slice){ 0 }, value);
}

static void remove_equal(struct editor *editor, struct metadata_node *node,
                         struct slice value)
{
    if (!open_node(editor, node) || node->kind != NODE_ARRAY)
        return;
    uint32_t left = 0;
    for (uint32_t i = 0; i < node->count; i++) {
        struct slice element = span_of(editor, &node->children[i]);
        bool equal = scan_equal_within(element, value, &editor->left);
        if (!editor->left)
            return; /* the whole list is refused: the array need not be correct */
        if (!equal)
            node->children[left++] = node->children[i];
    }
    node->count = left;
}

/* Adds integers exactly if the sum fits, and all other numbers as JavaScript does. */
static void increment(struct editor *editor, struct metadata_node *node, struct slice value)
{
    struct slice old = SLICE("0");
    if (node->kind == NODE_SPAN && scan_type(node->span) == SCAN_NUMBER)
        old = node->span;
    struct buf text = { 0 };
    int64_t a, b, sum;
    double x = 0, y = 0;
    bool exact = text_to_i64(old, &a) == OK && text_to_i64(value, &b) == OK &&
                 !__builtin_add_overflow(a, b, &sum);
    if (exact)
        buf_add_number(&text, sum);
    else if (scan_number(old, &x) && scan_number(value, &y) && isfinite(x + y))
        buf_add_json_double(&text, x + y);
    else
        buf_add(&text, old);
    spend(editor, WORK_OF_OPERATION + old.len + value.len);
    set_span(node, keep(editor, buf_slice(&text)));
    buf_finish(&text);
}

static void drop(struct editor *editor, const struct operation *operation)
{
    size_t last = operation->part_count - 1;
    struct metadata_node *parent = follow(editor, operation, last, false);
    if (!parent || !open_node(editor, parent))
        return;
    struct metadata_node *child = find_child(editor, parent, operation->parts[last]);
    if (!child)
        return;
    spend(editor, parent->count);
    remove_child(parent, child);
}

static void apply(struct editor *editor, const struct operation *operation)
{
    if (operation->type == OPERATION_UPDATE) {
        set_span(&editor->root, operation->value);
        return;
    }
    if (operation->type == OPERATION_DELETE) {
        drop(editor, operation);
        return;
    }
    bool make = operation->type != OPERATION_REMOVE;
    struct metadata_node *node = follow(editor, operation, operation->part_count, make);
    if (!node)
        return;
    switch (operation->type) {
    case OPERATION_SET: set_span(node, operation->value); break;
    case OPERATION_APPEND: append(editor, node, operation->value); break;
    case OPERATION_REMOVE: remove_equal(editor, node, operation->value); break;
    default: increment(editor, node, operation->value);
    }
}

/* Reads every operation, and applies it if there is an editor. */
static enum err walk_operations(struct editor *editor, struct slice operations,
                                struct failure *why)
{
    if (scan_type(operations) != SCAN_ARRAY)
        return explain(why, ERR_INVALID, "operations must be an array");
    struct operation operation = { 0 };
    struct scan_members elements = scan_members(operations);
    struct slice element;
    const char *problem = NULL;
    size_t index = 0;
    for (; scan_next_element(&elements, &element); index++) {
        if (editor)
            spend(editor, WORK_OF_OPERATION + element.len * 2);
        problem = operation_read(&operation, element);
        if (!problem && index == METADATA_OPERATIONS_MAX)
            problem = "at most 1000 operations are allowed";
        if (!problem && editor)
            apply(editor, &operation);
        if (!problem && editor && !editor->left)
            problem = "takes too long on metadata of this size";
        if (problem)
            break;
    }
    operation_finish(&operation);
    if (problem)
        return explain(why, ERR_INVALID, "operations[%zu]: %s", index, problem);
    return OK;
}

enum err metadata_apply(struct slice object, struct slice operations, struct buf *out,
                        struct failure *why)
{
    struct editor editor = { .left = WORK_MAX };
    bool is_object = scan_type(object) == SCAN_OBJECT;
    set_span(&editor.root, is_object ? object : SLICE("{}"));
    enum err err = walk_operations(&editor, operations, why);
    if (!err)
        write_node(&editor.root, out);
    close_node(&editor.root);
    buf_finish(&editor.name);
    while (editor.kept) {
        struct made_text *kept = editor.kept;
        editor.kept = kept->next;
        free(kept);
    }
    return err;
}

enum err metadata_check(struct slice operations, struct failure *why)
{
    return walk_operations(NULL, operations, why);
}
