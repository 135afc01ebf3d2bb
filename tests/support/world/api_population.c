/* api_population.c - creates batches, schedules, waitpoints and variables by calls. */
#include "tests/support/world/api_population.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    BATCHES = 4,
    BATCH_RUNS = 500,
    TAGS = 50,
    RUN_TAGS = 10,
    SCHEDULES = 200,
    WAITPOINTS = 100,
    VARIABLES = 50,
};

static void ask(struct api_world *world, const char *target, const struct buf *body)
{
    api_world_ask(world, API_KEY_DEV, "POST", slice_of(target),
                  SLICE("Content-Type: application/x-ndjson\r\n"), buf_slice(body), 0);
    if (world->status >= 200 && world->status < 300)
        return;
    fprintf(stderr, "api_population: %s: %d: %.*s\n", target, world->status,
            SLICE_ARG(world->body));
    abort();
}

static void add_item(struct buf *out, int index)
{
    buf_print(out, "{\"index\":%d,\"task\":\"hello\",\"payload\":\"{}\",\"options\":{",
              index);
    buf_add_text(out, "\"payloadType\":\"application/json\",\"tags\":[");
    for (int i = 0; i < RUN_TAGS; i++)
        buf_print(out, "%s\"t%d\"", i ? "," : "", (index + i * i) % TAGS);
    buf_print(out, "]%s}}\n", index % 2 ? ",\"delay\":\"1h\"" : "");
}

static void add_batch(struct api_world *world)
{
    struct buf body = { 0 }, target = { 0 };
    buf_print(&body, "{\"runCount\":%d}", BATCH_RUNS);
    ask(world, "/api/v3/batches", &body);
    buf_add_text(&target, "/api/v3/batches/");
    api_world_text(world, "id", &target);
    buf_add(&target, (struct slice){ "/items", sizeof("/items") });
    buf_clear(&body);
    for (int i = 0; i < BATCH_RUNS; i++)
        add_item(&body, i);
    ask(world, target.ptr, &body);
    buf_finish(&target);
    buf_finish(&body);
}

void api_population_add(struct api_world *world)
{
    struct buf body = { 0 };
    for (int i = 0; i < BATCHES; i++)
        add_batch(world);
    for (int i = 0; i < SCHEDULES; i++) {
        buf_clear(&body);
        buf_print(
            &body,
            "{\"task\":\"tick\",\"cron\":\"%d %d * * *\",\"deduplicationKey\":\"s%d\"}",
            i % 60, i % 24, i);
        ask(world, "/api/v1/schedules", &body);
    }
    for (int i = 0; i < WAITPOINTS; i++) {
        buf_clear(&body);
        buf_print(&body, "{\"tags\":[\"t%d\"]}", i % TAGS);
        ask(world, "/api/v1/waitpoints/tokens", &body);
    }
    for (int i = 0; i < VARIABLES; i++) {
        buf_clear(&body);
        buf_print(&body, "{\"name\":\"N%d\",\"value\":\"v%d\"}", i, i);
        ask(world, "/api/v1/projects/" API_WORLD_REF "/envvars/dev", &body);
    }
    buf_finish(&body);
}
