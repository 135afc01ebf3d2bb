/* routes.h - finds the route of a method and path among those of all areas.
 *
 *   rows of the areas ─► a tree of the segments of their paths, built once
 *
 *     api ── v1 ┬─ runs ┬─ GET
 *               │       └─ {run} ┬─ GET
 *               │                └─ cancel ── POST
 *               └─ packets ── {name*} ── GET, PUT
 *
 * A request goes down the tree, so the cost of a look-up does not grow with the number of
 * routes. A word is tried before a parameter, and a parameter before one that takes all
 * that follows. If no row of a node has the method, the next node that fits is tried. */
#pragma once

#include "api/request/route.h"

/* A row, and data derived from it once instead of for each request. */
struct routed {
    const struct route *route;
    const struct area *area;
    size_t place;        /* index of the area among all */
    struct slice *query; /* names of the parameters that it reads */
    size_t query_count;
    struct http_answers answers; /* its responses, counted by class */
    int64_t alone_until_ms;      /* its forwarded calls are like those of is_alone */
    struct routed *next;         /* next row of the same path, in the order of the areas */
};

struct routes;

struct routes *routes_create(const struct area *const *areas, size_t count);
/* Ignores NULL. */
void routes_destroy(struct routes *routes);

struct route_match {
    enum http_method method; /* wanted; not HEAD, which GET handles */
    size_t areas;            /* number of areas, from the first, that are searched */
    struct slice params[API_PARAMS_MAX]; /* as received; set when found */
    size_t param_count;
    struct buf *allow; /* gets the methods of rows with this path: "GET, PUT" */
};

/* Returns the row of a path; NULL: none. The path is split before it is decoded, because a
 * segment may contain an encoded slash. */
struct routed *routes_find(const struct routes *routes, struct slice path,
                           struct route_match *match);

/* Returns all rows, in the order of the areas. */
struct routed *routes_all(const struct routes *routes, size_t *count);
