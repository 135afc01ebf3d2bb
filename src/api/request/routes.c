/* routes.c - builds the tree of paths, and finds the route of a request in it. */
#include "api/request/routes.h"

#include <assert.h>

#include "api/request/type.h"
#include "base/mem.h"

/* In the order in which they are tried. */
enum segment_kind { SEGMENT_WORD, SEGMENT_PARAMETER, SEGMENT_REST };

/* A node of the tree: a segment that paths may have after the parent's. */
struct node {
    enum segment_kind kind;
    struct slice word;     /* of SEGMENT_WORD */
    struct node *sibling;  /* of the same kind, or of one that is tried later */
    struct node *children; /* the first */
    struct routed *rows;   /* rows of the paths that end here; the first */
};

struct routes {
    struct node root;
    struct routed *rows;
    size_t count;
};

/* ---- making the tree ---- */

static enum segment_kind kind_of(struct slice segment)
{
    if (!slice_starts(segment, "{"))
        return SEGMENT_WORD;
    return segment.ptr[segment.len - 2] == '*' ? SEGMENT_REST : SEGMENT_PARAMETER;
}

static struct node *child_for(struct node *node, struct slice segment)
{
    enum segment_kind kind = kind_of(segment);
    struct node **at = &node->children;
    for (; *at && (*at)->kind <= kind; at = &(*at)->sibling)
        if ((*at)->kind == kind &&
            (kind != SEGMENT_WORD || slice_equal((*at)->word, segment)))
            return *at;
    struct node *child = mem_new(struct node);
    *child = (struct node){ .kind = kind, .word = segment, .sibling = *at };
    return *at = child;
}

static void add_row(struct node *node, struct routed *row)
{
    struct slice path = slice_of(row->route->path), segment;
    size_t params = 0;
    while (slice_split(&path, '/', &segment)) {
        node = child_for(node, segment);
        params += node->kind != SEGMENT_WORD;
        assert(node->kind != SEGMENT_REST || !path.ptr);
    }
    assert(params <= API_PARAMS_MAX);
    (void)params;
    struct routed **at = &node->rows;
    while (*at)
        at = &(*at)->next;
    *at = row;
}

static void read_query(struct routed *row)
{
    struct type_field field;
    struct slice type;
    const char *at = row->route->query;
    while (at && type_skip_field(&at, &field, &type))
        row->query_count++;
    row->query = mem_new_array(struct slice, row->query_count);
    at = row->route->query;
    for (size_t i = 0; i < row->query_count; i++) {
        type_skip_field(&at, &field, &type);
        row->query[i] = field.name;
    }
}

struct routes *routes_create(const struct area *const *areas, size_t count)
{
    struct routes *routes = mem_new(struct routes);
    for (size_t i = 0; i < count; i++)
        for (const struct route *route = areas[i]->routes; route->path; route++)
            routes->count++;
    routes->rows = mem_new_array(struct routed, routes->count);
    struct routed *row = routes->rows;
    for (size_t i = 0; i < count; i++)
        for (const struct route *route = areas[i]->routes; route->path; route++, row++) {
            row->route = route;
            row->area = areas[i];
            row->place = i;
            read_query(row);
            add_row(&routes->root, row);
        }
    return routes;
}

static void destroy_below(struct node *node)
{
    for (struct node *child = node->children, *next; child; child = next) {
        next = child->sibling;
        destroy_below(child);
        free(child);
    }
}

void routes_destroy(struct routes *routes)
{
    if (!routes)
        return;
    destroy_below(&routes->root);
    for (size_t i = 0; i < routes->count; i++)
        free(routes->rows[i].query);
    free(routes->rows);
    free(routes);
}

/* ---- look-up ---- */

static struct routed *row_of(const struct node *node, struct route_match *match)
{
    for (struct routed *row = node->rows; row; row = row->next) {
        if (row->place >= match->areas)
            continue;
        if (row->route->method == match->method)
            return row;
        if (match->allow->len)
            buf_add_text(match->allow, ", ");
        buf_add_text(match->allow, http_method_name(row->route->method));
    }
    return NULL;
}

static bool fits(const struct node *node, struct slice segment, struct slice path)
{
    switch (node->kind) {
    case SEGMENT_WORD: return slice_equal(node->word, segment);
    case SEGMENT_PARAMETER: return segment.len > 0;
    case SEGMENT_REST: return path.len > 0;
    }
    return false;
}

/* path: the rest of it; its ptr is NULL after the last segment. Recurses as deep as the
 * tree, which no client determines. */
static struct routed *find_below(const struct node *node, struct slice path,
                                 struct route_match *match)
{
    struct slice rest = path, segment;
    size_t count = match->param_count;
    if (!slice_split(&rest, '/', &segment))
        return row_of(node, match);
    for (const struct node *child = node->children; child; child = child->sibling) {
        if (!fits(child, segment, path))
            continue;
        bool takes_all = child->kind == SEGMENT_REST;
        if (child->kind != SEGMENT_WORD)
            match->params[match->param_count++] = takes_all ? path : segment;
        struct routed *row =
            find_below(child, takes_all ? (struct slice){ 0 } : rest, match);
        if (row)
            return row;
        match->param_count = count;
    }
    return NULL;
}

struct routed *routes_find(const struct routes *routes, struct slice path,
                           struct route_match *match)
{
    match->param_count = 0;
    return find_below(&routes->root, path, match);
}

struct routed *routes_all(const struct routes *routes, size_t *count)
{
    *count = routes->count;
    return routes->rows;
}
