/* api_scene.c - makes calls to the test's world, and asserts about the last response. */
#include "tests/support/world/api_scene.h"

#include <stdio.h>

#include "base/json/scan.h"

enum { CALLS_MAX = 1000 };

struct api_world scene;

static struct {
    const char *headers;
    enum api_key key;
} next;

static const struct project *project(void)
{
    return accounts_project(scene.accounts, SLICE(API_WORLD_REF));
}

int scene_open(void **state)
{
    (void)state;
    next.headers = "";
    next.key = API_KEY_DEV;
    api_world_open(&scene);
    return 0;
}

int scene_close(void **state)
{
    (void)state;
    assert_int_equal(project()->bodies.used, 0);
    assert_int_equal(project()->shared.answers.used, 0);
    assert_int_equal(project()->shared.batches.used, 0);
    api_world_close(&scene);
    return 0;
}

size_t scene_batch_bytes(void)
{
    return project()->shared.batches.used;
}

/* ---- calls ---- */

void with_headers(const char *headers)
{
    next.headers = headers;
}

void with_key(enum api_key key)
{
    next.key = key;
}

__attribute__((format(printf, 3, 0))) static void ask(const char *method, const char *body,
                                                      const char *pattern, va_list values)
{
    struct buf target = { 0 };
    char text[1024];
    vsnprintf(text, sizeof(text), pattern, values);
    buf_add_text(&target, text);
    api_world_ask(&scene, next.key, method, buf_slice(&target), slice_of(next.headers),
                  slice_of(body), 0);
    next.headers = "";
    next.key = API_KEY_DEV;
    buf_finish(&target);
}

void post(const char *body, const char *target, ...)
{
    va_list values;
    va_start(values, target);
    ask("POST", body, target, values);
    va_end(values);
}

void get(const char *target, ...)
{
    va_list values;
    va_start(values, target);
    ask("GET", "", target, values);
    va_end(values);
}

/* ---- answers ---- */

void assert_answered(int status)
{
    if (scene.status == status)
        return;
    fail_msg("%d instead of %d: %.*s", scene.status, status, SLICE_ARG(scene.body));
}

static struct slice element(struct slice array, struct slice place)
{
    struct scan_members elements = scan_members(array);
    struct slice value = { 0 };
    uint64_t index;
    assert_int_equal(text_to_u64(place, &index), OK);
    for (uint64_t i = 0; i <= index; i++)
        if (!scan_next_element(&elements, &value))
            return (struct slice){ 0 };
    return value;
}

static struct slice value_at(const char *path)
{
    struct slice value = scene.body, rest = slice_of(path), part;
    assert_true(scan_is_json(value));
    while (value.ptr && slice_split(&rest, '.', &part)) {
        char name[64];
        snprintf(name, sizeof(name), "%.*s", SLICE_ARG(part));
        value = scan_type(value) == SCAN_ARRAY ? element(value, part)
                                               : scan_member(value, name);
    }
    return value;
}

void assert_says(const char *path, const char *expected)
{
    struct slice value = value_at(path);
    struct buf text = { 0 };
    if (!value.ptr || !expected) {
        if (value.ptr || expected)
            fail_msg("%s in %.*s", path, SLICE_ARG(scene.body));
        return;
    }
    if (scan_type(value) != SCAN_STRING)
        buf_add(&text, slice_trim(value));
    else
        scan_string(value, &text);
    bool same = slice_is(buf_slice(&text), expected);
    buf_finish(&text);
    if (!same)
        fail_msg("%s is not %s: %.*s", path, expected, SLICE_ARG(scene.body));
}

void assert_holds(const char *text)
{
    if (!scene.body.len || !memmem(scene.body.ptr, scene.body.len, text, strlen(text)))
        fail_msg("%s is not in %.*s", text, SLICE_ARG(scene.body));
}

void keep(const char *path, char *out, size_t size)
{
    struct buf text = { 0 };
    if (!scan_string(value_at(path), &text) || text.len >= size)
        fail_msg("%s in %.*s", path, SLICE_ARG(scene.body));
    snprintf(out, size, "%.*s", SLICE_ARG(buf_slice(&text)));
    buf_finish(&text);
}

/* ---- a run that executes ---- */

void start_run(char id[ID_MAX])
{
    char snapshot[ID_MAX + 32];
    post("{\"options\":{\"priority\":10000}}", "/api/v1/tasks/hello/trigger");
    assert_answered(200);
    keep("id", id, ID_MAX);
    post("{}", "/engine/v1/dev/dequeue");
    keep("dequeuedMessages.0.snapshot.id", snapshot, sizeof(snapshot));
    post("{}", "/engine/v1/dev/runs/%s/snapshots/%s/attempts/start", id, snapshot);
    assert_answered(200);
}

void await_execution(const char *run, const char *status)
{
    char now[ID_MAX] = "";
    for (int i = 0; i < CALLS_MAX && strcmp(now, status) != 0; i++) {
        get("/engine/v1/dev/runs/%s/snapshots/latest", run);
        assert_answered(200);
        keep("execution.snapshot.executionStatus", now, sizeof(now));
    }
    assert_says("execution.snapshot.executionStatus", status);
}

void assert_execution(const char *run, const char *status)
{
    get("/engine/v1/dev/runs/%s/snapshots/latest", run);
    assert_answered(200);
    assert_says("execution.snapshot.executionStatus", status);
}
