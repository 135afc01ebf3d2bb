/* scrape.c - looks at what is not counted, then writes everything, in stints.
 *
 *   each environment ─► open descriptors ─► text: the tables, routes, environments, process
 *
 * What it costs grows with the environments and not with the runs; no turn is long. Between
 * two turns an environment may come or go: that one is in the next answer. */
#include "api/ops/scrape.h"

#include "api/ops/environment_metrics.h"
#include "api/ops/process_metrics.h"
#include "api/request/parts.h"
#include "api/request/route_answers.h"
#include "base/descriptors.h"
#include "base/mem.h"
#include "base/metrics.h"

struct scrape {
    struct api_call *call;
    struct deferred deferred;
    struct environment_metrics environments;
    struct descriptors descriptors;
    size_t part; /* of the text, to be written next */
    struct buf text;
};

/* False: all of the text is written. */
static bool print_part(struct scrape *scrape)
{
    const struct api *api = scrape->call->api;
    size_t part = scrape->part++;
    switch (part) {
    case 0: metrics_print(&scrape->text); return true;
    case 1: route_answers_print(api->routes, &scrape->text); return true;
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

static bool is_through(struct scrape *scrape, struct stint *stint)
{
    if (!environment_metrics_look(&scrape->environments, stint) ||
        !descriptors_count_some(&scrape->descriptors, stint))
        return false;
    while (stint_goes_on(stint))
        if (!print_part(scrape))
            return true;
    return false;
}

static void go_on(struct deferred *deferred)
{
    struct scrape *scrape = container_of(deferred, struct scrape, deferred);
    struct loop *loop = engine_loop(api_engine(scrape->call->api));
    struct stint stint = loop_stint(loop);
    if (is_through(scrape, &stint))
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
