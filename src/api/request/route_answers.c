/* route_answers.c - a sample for each route and class. */
#include "api/request/route_answers.h"

#include "base/metrics.h"

static const char name[] = "runcast_http_route_requests_total";

static void print_answers(const char *method, const char *path,
                          const struct http_answers *answers, struct buf *out)
{
    for (int class = 0; class < HTTP_CLASSES; class ++)
        if (answers->by_class[class])
            buf_print(out, "%s{method=\"%s\",route=\"%s\",code=\"%dxx\"} %lld\n", name,
                      method, path, class + 1, (long long)answers->by_class[class]);
}

void route_answers_print(const struct routes *routes, struct buf *out)
{
    struct http_answers rest;
    size_t count;
    const struct routed *rows = routes_all(routes, &count);
    for (int class = 0; class < HTTP_CLASSES; class ++)
        rest.by_class[class] = metrics[M_HTTP_1XX + class];
    metrics_print_head(out, name, "counter",
                       "HTTP requests answered, by route and class of the status");
    for (size_t i = 0; i < count; i++) {
        print_answers(http_method_name(rows[i].route->method), rows[i].route->path,
                      &rows[i].answers, out);
        for (int class = 0; class < HTTP_CLASSES; class ++)
            rest.by_class[class] -= rows[i].answers.by_class[class];
    }
    print_answers("any", "none", &rest, out);
}
