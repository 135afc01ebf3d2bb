/* scrape.c - builds one response of /metrics over several turns of the loop.
 *
 *   each environment ─► open descriptors ─► text: the tables, routes, environments, process
 *
 * The cost grows with the number of environments, not of runs, and no turn is long. An
 * environment that appears or disappears between two turns shows in the next response. */
#include "api/ops/scrape.h"

#include "api/ops/descriptors.h"
#include "api/ops/environment_metrics.h"
#include "api/ops/process_metrics.h"
#include "api/request/parts.h"
#include "api/request/routes.h"
#include "base/mem.h"
#include "base/metrics.h"

struct scrape {
    struct api_call *call;
    struct deferred deferred;
    struct environment_metrics environments;
    struct descriptors descriptors;
    size_t part; /* the part of the text to write next */
    struct buf text;
};

/* ---- routes ---- */

static const char answers_name[] = "runcast_http_route_requests_total";

static void print_answers(const char *method, const char *path,
                          const struct http_answers *answers, struct buf *out)
{
    for (int class = 0; class < HTTP_CLASSES; class ++)
        if (answers->by_class[class])
            buf_print(out, "%s{method=\"%s\",route=\"%s\",code=\"%dxx\"} %lld\n",
                      answers_name, method, path, class + 1,
                      (long long)answers->by_class[class]);
}

/* Prints a sample for each route and status class that was answered. An exchange gets the
 * counts of its route along with the route (exchange::answers), and http counts. Responses
 * without a route are all responses minus those of routes; their route is "none". */
static void print_route_answers(const struct routes *routes, struct buf *out)
{
    struct http_answers rest;
    size_t count;
    const struct routed *rows = routes_all(routes, &count);
    for (int class = 0; class < HTTP_CLASSES; class ++)
        rest.by_class[class] = metrics[M_HTTP_1XX + class];
    metrics_print_head(out, answers_name, "counter",
                       "HTTP requests answered, by route and class of the status");
    for (size_t i = 0; i < count; i++) {
        print_answers(http_method_name(rows[i].route->method), rows[i].route->path,
                      &rows[i].answers, out);
        for (int class = 0; class < HTTP_CLASSES; class ++)
            rest.by_class[class] -= rows[i].answers.by_class[class];
    }
    print_answers("any", "none", &rest, out);
}

/* ---- one response ---- */

/* Prints the next part. Returns false if all of the text was written before. */
static bool print_part(struct scrape *scrape)
{
    const struct api *api = scrape->call->api;
    size_t part = scrape->part++;
    switch (part) {
    case 0: metrics_print(&scrape->text); return true;
    case 1: print_route_answers(api->routes, &scrape->text); return true;
    case 2:
        process_metrics_print(api, scrape->descriptors.count, &scrape->text);
        return true;
    default:
        return environment_metrics_print(&scrape->environments, part - 3, &scrape->text);
    }
}

static void reply(struct scrape *scrape)
{
    api_reply_text(scrape->call, 200, "text/plain; version=0.0.4; charset=utf-8",
                   buf_slice(&scrape->text));
    buf_finish(&scrape->text);
    free(scrape);
}

static bool is_through(struct scrape *scrape, struct timeslice *timeslice)
{
    if (!environment_metrics_look(&scrape->environments, timeslice) ||
        !descriptors_count_some(&scrape->descriptors, timeslice))
        return false;
    while (timeslice_left(timeslice))
        if (!print_part(scrape))
            return true;
    return false;
}

static void go_on(struct deferred *deferred)
{
    struct scrape *scrape = container_of(deferred, struct scrape, deferred);
    struct loop *loop = engine_loop(api_engine(scrape->call->api));
    struct timeslice timeslice = loop_timeslice(loop);
    if (is_through(scrape, &timeslice))
        reply(scrape);
    else
        loop_defer(loop, deferred);
}

void scrape_begin(struct api_call *call)
{
    struct scrape *scrape = mem_new(struct scrape);
    scrape->call = call;
    scrape->environments.api = call->api;
    scrape->deferred.fn = go_on;
    list_init(&scrape->deferred.link);
    descriptors_begin(&scrape->descriptors);
    call->busy = true;
    loop_defer(engine_loop(api_engine(call->api)), &scrape->deferred);
}
