/* calls.c - makes the objects that a call names, and compares its response in two rounds. */
#include "tests/fuzz/calls.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json/scan.h"
#include "base/mem.h"
#include "tests/fuzz/judge.h"
#include "tests/fuzz/signing.h"
#include "tests/support/world/api_population.h"

enum { INPUT_MAX = 128 * 1024, TARGET_MAX = 6000, PIECES = 8 };

static void demand(const struct api_world *world, bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "%s: status %d: %.*s\n", what, world->status, SLICE_ARG(world->body));
    abort();
}

/* ---- objects that calls refer to ---- */

struct making {
    const char *name;
    enum api_key key;
    const char *method, *target, *body;
    const char *member; /* of the answer */
};

static const struct making makings[] = {
    { "run", API_KEY_DEV, "POST", "/api/v1/tasks/hello/trigger",
      "{\"payload\":{\"a\":1},\"options\":{\"delay\":\"1h\"}}", "id" },
    { "waiting", API_KEY_DEV, "POST", "/api/v1/tasks/hello/trigger",
      "{\"options\":{\"priority\":10000}}", "id" },
    { "leased", API_KEY_DEV, "POST", "/engine/v1/dev/dequeue", "{}",
      "dequeuedMessages.snapshot.id" },
    { "deployed waiting", API_KEY_PROD, "POST", "/api/v1/tasks/hello/trigger", "{}", "id" },
    { "deployed leased", API_KEY_WORKER, "POST", "/engine/v1/worker-actions/dequeue", "{}",
      "snapshot.id" },
    { "batch", API_KEY_DEV, "POST", "/api/v3/batches", "{\"runCount\":3}", "id" },
    { "token", API_KEY_DEV, "POST", "/api/v1/waitpoints/tokens", "{}", "id" },
    { "callback", API_KEY_DEV, "POST", "/api/v1/waitpoints/tokens", "{}", "url" },
    { "schedule", API_KEY_DEV, "POST", "/api/v1/schedules",
      "{\"task\":\"tick\",\"cron\":\"0 9 * * *\",\"deduplicationKey\":\"a\"}", "id" },
    { "bulk", API_KEY_DEV, "POST", "/api/v1/bulk-actions",
      "{\"action\":\"cancel\",\"filter\":{\"tag\":\"nobody\"}}", "id" },
    { "upload", API_KEY_DEV, "PUT", "/api/v2/packets/a%2Fb.json", "", "presignedUrl" },
    { "telemetry", API_KEY_DEV, "GET", "/api/v1/projects/" API_WORLD_REF "/envvars", "",
      "variables.TRIGGER_OTEL_EXPORTER_OTLP_ENDPOINT" },
    { "download", API_KEY_DEV, "GET", "/api/v1/packets/a/b.json", "", "presignedUrl" },
};

/* Returns the target of a URL. */
static struct slice target_of(struct slice text)
{
    if (!slice_starts(text, "http://"))
        return text;
    const char *slash = memchr(text.ptr + 7, '/', text.len - 7);
    return slash ? slice_from(text, (size_t)(slash - text.ptr)) : text;
}

static void make(struct api_world *world, const char *name, struct buf *out)
{
    struct buf made = { 0 };
    for (size_t i = 0; i < sizeof(makings) / sizeof(makings[0]); i++) {
        const struct making *m = &makings[i];
        if (strcmp(m->name, name))
            continue;
        api_world_ask(world, m->key, m->method, slice_of(m->target), (struct slice){ 0 },
                      slice_of(m->body), 0);
        demand(world, api_world_text(world, m->member, &made), name);
        buf_add(out, target_of(buf_slice(&made)));
        break;
    }
    buf_finish(&made);
}

/* Makes a run that a worker has started, and stores the id of its snapshot. */
static void make_executing(struct api_world *world, bool deployed, struct buf *out,
                           struct buf *snapshot)
{
    struct buf target = { 0 }, run = { 0 };
    if (deployed)
        api_world_register(world, API_KEY_PROD);
    make(world, deployed ? "deployed waiting" : "waiting", &run);
    buf_clear(snapshot);
    make(world, deployed ? "deployed leased" : "leased", snapshot);
    buf_print(&target, "/engine/v1/%s/runs/%.*s/snapshots/%.*s/attempts/start",
              deployed ? "worker-actions" : "dev", SLICE_ARG(buf_slice(&run)),
              SLICE_ARG(buf_slice(snapshot)));
    api_world_ask(world, deployed ? API_KEY_WORKER : API_KEY_DEV, "POST",
                  buf_slice(&target), (struct slice){ 0 }, SLICE("{}"), 0);
    buf_clear(snapshot);
    demand(world, api_world_text(world, "snapshot.id", snapshot), "start");
    buf_add(out, buf_slice(&run));
    buf_finish(&target);
    buf_finish(&run);
}

/* ---- targets ---- */

/* Escapes only bytes that a request line or a header cannot contain. So escapes in the
 * input are decoded. */
static void add_escaped(struct buf *out, struct slice text)
{
    for (size_t i = 0; i < text.len && out->len < TARGET_MAX; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c <= ' ' || c >= 127 || c == '#')
            buf_print(out, "%%%02X", c);
        else
            buf_add_char(out, (char)c);
    }
}

struct filling {
    struct api_world *world;
    struct slice input;
    struct buf snapshot;
};

static void fill_one(struct filling *filling, struct slice name, struct buf *out)
{
    char text[32];
    snprintf(text, sizeof(text), "%.*s", SLICE_ARG(name));
    if (slice_is(name, "*"))
        add_escaped(out, filling->input);
    else if (slice_is(name, "ref"))
        buf_add_text(out, API_WORLD_REF);
    else if (slice_is(name, "id"))
        api_world_text(filling->world, "id", out);
    else if (slice_is(name, "executing"))
        make_executing(filling->world, false, out, &filling->snapshot);
    else if (slice_is(name, "deployed"))
        make_executing(filling->world, true, out, &filling->snapshot);
    else if (slice_is(name, "env"))
        buf_add_text(out, api_world_account(filling->world)->id);
    else if (signing_add(api_world_account(filling->world), name, &filling->input, out))
        return;
    else if (slice_is(name, "snapshot"))
        buf_add(out, buf_slice(&filling->snapshot));
    else
        make(filling->world, text, out);
}

static void fill(struct filling *filling, const char *pattern, struct buf *out)
{
    struct slice rest = slice_of(pattern), part, name;
    while (slice_split(&rest, '{', &part)) {
        buf_add(out, part);
        if (!rest.ptr)
            return;
        slice_split(&rest, '}', &name);
        fill_one(filling, name, out);
    }
}

/* ---- the call ---- */

static void check(const struct api_world *world)
{
    struct slice answer = buf_slice(&world->net.answer);
    struct slice head = { answer.ptr, answer.len - world->body.len };
    demand(world, world->status != 500, "a fault of ours");
    if (world->status >= 200 && world->body.len && head.len &&
        memmem(head.ptr, head.len, "application/json", 16))
        demand(world, scan_is_json(world->body), "not JSON");
}

/* A call with an input. */
struct calling {
    const struct fuzz_call *call;
    struct slice input;
    size_t piece;
};

/* Makes the call, whose cost is measured, and returns its status. */
static int make_call(struct api_world *world, const struct calling *calling)
{
    const struct fuzz_call *call = calling->call;
    struct buf target = { 0 }, headers = { 0 };
    struct filling filling = { .world = world, .input = calling->input };
    const char *more = call->headers ? call->headers : "";
    bool in_head = strstr(call->target, "{*}") || strstr(more, "{*}");
    fill(&filling, more, &headers);
    fill(&filling, call->target, &target);
    judge_resume();
    api_world_ask(world, call->key, call->method, buf_slice(&target), buf_slice(&headers),
                  in_head ? SLICE("") : filling.input, calling->piece);
    check(world);
    int status = world->status;
    if (call->then && status >= 200 && status < 300) {
        buf_clear(&target);
        fill(&filling, call->then, &target);
        api_world_ask(world, call->key, "GET", buf_slice(&target), (struct slice){ 0 },
                      SLICE(""), 0);
        check(world);
        demand(world, world->status == 200, "what was taken is not found");
    }
    judge_pause();
    buf_finish(&filling.snapshot);
    buf_finish(&target);
    buf_finish(&headers);
    return status;
}

/* Filling a world takes a hundred times the CPU of most calls, so each call gets a copy. */
static int run_judged(const struct calling *calling)
{
    static struct api_world filled;
    int status;
    if (!filled.api) {
        api_world_open(&filled);
        api_population_add(&filled);
    }
    if (judge_in_copy(&status)) {
        demand(&filled, uv_loop_fork(&filled.net.world.uv) == 0, "the loop is not copied");
        judge_leave(make_call(&filled, calling));
    }
    return status;
}

static int run_alone(const struct calling *calling)
{
    struct api_world world;
    api_world_open(&world);
    int status = make_call(&world, calling);
    api_world_close(&world);
    return status;
}

static int run(const struct fuzz_call *call, struct slice input, size_t piece)
{
    struct calling calling = { .call = call, .input = input, .piece = piece };
    judge_pause();
    int status = judge_measures() ? run_judged(&calling) : run_alone(&calling);
    judge_resume();
    return status;
}

int fuzz_call(const struct fuzz_call *calls, const uint8_t *data, size_t size)
{
    size_t count = 0;
    while (calls[count].method)
        count++;
    if (size < 2 || size > INPUT_MAX)
        return 0;
    const struct fuzz_call *call = &calls[data[0] % count];
    struct slice input = { (const char *)data + 2, size - 2 };
    int status = run(call, input, 0);
    if (data[1] && run(call, input, input.len / PIECES + data[1]) != status)
        abort();
    return 0;
}
