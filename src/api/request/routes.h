/* routes.h - the routes of all areas, found by method and path.
 *
 *   rows of the areas ─► a tree of the segments of their paths, made once
 *
 *     api ── v1 ┬─ runs ┬─ GET
 *               │       └─ {run} ┬─ GET
 *               │                └─ cancel ── POST
 *               └─ packets ── {name*} ── GET, PUT
 *
 * A request goes down the tree, so what a look-up costs does not grow with the routes. A word
 * comes before a parameter, and a parameter before one that takes all that follows; where the
 * method is not among the rows of a place, the next place that fits is asked. */
#pragma once

#include "api/request/route.h"

/* A row, and what is derived from it once, so that no request has to. */
struct routed {
    const struct route *route;
    const struct area *area;
    size_t place;        /* of the area among all */
    struct slice *query; /* names of the parameters that are read */
    size_t query_count;
    struct http_answers answers; /* how often it was answered how */
    struct routed *next;         /* row of the same path, in the order of the areas */
};

struct routes;

struct routes *routes_create(const struct area *const *areas, size_t count);
/* NULL is fine. */
void routes_destroy(struct routes *routes);

struct route_match {
    enum http_method method;             /* wanted; not HEAD, which GET answers */
    size_t areas;                        /* so many of the first areas are looked at */
    struct slice params[API_PARAMS_MAX]; /* as they came: of one that is found */
    size_t param_count;
    struct buf *allow; /* gets the methods of rows that fit but for their own: "GET, PUT" */
};

/* The row that a path has, which is split first and decoded after: a segment may hold an
 * encoded slash. NULL: none. */
struct routed *routes_find(const struct routes *routes, struct slice path,
                           struct route_match *match);

/* All rows, in the order of the areas. */
struct routed *routes_all(const struct routes *routes, size_t *count);
