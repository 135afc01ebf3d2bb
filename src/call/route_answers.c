/* route_answers.c - the counts, and their text. */
#include "call/route_answers.h"

#include "base/mem.h"
#include "base/metrics.h"

struct route_answers {
    const struct area *const *areas;
    size_t count;
    struct http_answers **of_area; /* by place; of an area one for each route */
};

static const char name[] = "runcast_http_route_requests_total";

static size_t count_routes(const struct area *area)
{
    size_t count = 0;
    while (area->routes[count].path)
        count++;
    return count;
}

struct route_answers *route_answers_create(const struct area *const *areas, size_t count)
{
    struct route_answers *all = mem_new(struct route_answers);
    all->areas = areas;
    all->count = count;
    all->of_area = mem_new_array(struct http_answers *, count);
    for (size_t i = 0; i < count; i++)
        all->of_area[i] = mem_new_array(struct http_answers, count_routes(areas[i]));
    return all;
}

void route_answers_destroy(struct route_answers *all)
{
    if (!all)
        return;
    for (size_t i = 0; i < all->count; i++)
        free(all->of_area[i]);
    free(all->of_area);
    free(all);
}

struct http_answers *route_answers_of(const struct route_answers *all, size_t area,
                                      const struct route *route)
{
    return &all->of_area[area][route - all->areas[area]->routes];
}

static void print_answers(const char *method, const char *path,
                          const struct http_answers *answers, struct buf *out)
{
    for (int class = 0; class < HTTP_CLASSES; class ++)
        if (answers->by_class[class])
            buf_print(out, "%s{method=\"%s\",route=\"%s\",code=\"%dxx\"} %lld\n", name,
                      method, path, class + 1, (long long)answers->by_class[class]);
}

/* What was answered with the routes of the area is taken from rest. */
static void print_area(const struct area *area, const struct http_answers *answers,
                       struct http_answers *rest, struct buf *out)
{
    for (const struct route *route = area->routes; route->path; route++, answers++) {
        print_answers(http_method_name(route->method), route->path, answers, out);
        for (int class = 0; class < HTTP_CLASSES; class ++)
            rest->by_class[class] -= answers->by_class[class];
    }
}

void route_answers_print(const struct route_answers *all, struct buf *out)
{
    struct http_answers rest;
    for (int class = 0; class < HTTP_CLASSES; class ++)
        rest.by_class[class] = metrics[M_HTTP_1XX + class];
    metrics_print_head(out, name, "counter",
                       "HTTP requests answered, by route and class of the status");
    for (size_t i = 0; i < all->count; i++)
        print_area(all->areas[i], all->of_area[i], &rest, out);
    print_answers("any", "none", &rest, out);
}
