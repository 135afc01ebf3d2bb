/* version_job: which files it requests, when it retries, how it ends, what it removes. The
 * test plays the gateway. */
#include "supervisor/versions/version_job.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "tests/support/world/client_world.h"
#include "tests/support/world/unit.h"

enum { NEVER_MS = 60 * 1000 };

struct scene {
    struct client_world world;
    struct far gateway;
    char top[64];
    struct site *site;
    struct tenants *tenants;
    struct gateway_client *gateway_client;
    bool closed;
    struct version_shared shared;
    struct version_job job;
    int64_t pause_ms;
    unsigned pauses, done, dropped;
    bool ok, canceled;
    char message[512];
};

/* ---- the owner ---- */

static int64_t pause_job(void *owner)
{
    struct scene *scene = owner;
    scene->pauses++;
    return scene->pause_ms;
}

static void on_done(void *owner, const struct version_outcome *outcome)
{
    struct scene *scene = owner;
    scene->done++;
    scene->ok = outcome->ok;
    scene->canceled = outcome->canceled;
    snprintf(scene->message, sizeof(scene->message), "%s", outcome->message);
}

static void on_dropped(void *owner)
{
    ((struct scene *)owner)->dropped++;
}

#define SOURCE                                                                             \
    .unwritable = "unwritable", .full = "full", .away = "away", .gone = "gone",            \
    .refused = "refused", .pause = pause_job, .done = on_done, .dropped = on_dropped

static const struct version_source built = { .scratch = "build-", SOURCE };
static const struct version_source fetched = { .scratch = "fetch-",
                                               .is_indexed = true,
                                               SOURCE };

/* ---- the scene ---- */

static bool is_used(void *owner, struct slice deployment)
{
    (void)owner, (void)deployment;
    return true;
}

static int create(void **state)
{
    struct scene *scene = mem_new(struct scene);
    struct failure why = { 0 };
    client_world_open(&scene->world);
    struct loop *loop = scene->world.loop;
    struct gateway_client_options gateway_client = { .url = &scene->world.url,
                                                     .token = "token",
                                                     .instance = "test" };
    snprintf(scene->top, sizeof(scene->top), "/tmp/runcast-job-XXXXXX");
    assert_non_null(mkdtemp(scene->top));
    if (site_open(loop, scene->top, &scene->site, &why) ||
        tenants_open(scene->top, NULL, false, &scene->tenants, &why) ||
        gateway_client_create(loop, &gateway_client, &scene->gateway_client, &why))
        fail_msg("%s", why.text);
    struct version_sweep_options sweep = { .loop = loop,
                                           .gateway_client = scene->gateway_client,
                                           .site = scene->site,
                                           .is_used = is_used };
    scene->shared = (struct version_shared){ .loop = loop,
                                             .gateway_client = scene->gateway_client,
                                             .site = scene->site,
                                             .tenants = scene->tenants,
                                             .sweep = version_sweep_create(&sweep),
                                             .programs = "",
                                             .settings = { .image = { .packages = "" } } };
    scene->shared.settings.limits = bundle_limits_default;
    version_shared_init(&scene->shared);
    *state = scene;
    return 0;
}

static void on_closed(void *owner)
{
    ((struct scene *)owner)->closed = true;
}

static bool is_closed(void *owner)
{
    return ((struct scene *)owner)->closed;
}

static bool is_quiet(void *owner)
{
    struct scene *scene = owner;
    return site_is_idle(scene->site) && version_sweep_is_idle(scene->shared.sweep);
}

static int destroy(void **state)
{
    struct scene *scene = *state;
    char command[160];
    version_sweep_stop(scene->shared.sweep);
    client_world_until(&scene->world, is_quiet, scene);
    gateway_client_close(scene->gateway_client, on_closed, scene);
    client_world_until(&scene->world, is_closed, scene);
    version_sweep_destroy(scene->shared.sweep);
    tenants_close(scene->tenants);
    site_close(scene->site);
    if (scene->gateway.fd > 0)
        far_close(&scene->gateway);
    client_world_close(&scene->world);
    snprintf(command, sizeof(command), "rm -rf %s", scene->top);
    assert_int_equal(system(command), 0);
    free(scene);
    return 0;
}

static void begin_again(struct scene *scene)
{
    scene->done = 0;
    scene->job.order = (struct build_job){ .deployment = "deployment_a",
                                           .version = "20260102.3",
                                           .archive_bytes = 1024,
                                           .deadline_ms = NEVER_MS };
    version_job_begin(&scene->job);
    assert_int_equal(scene->done, 0);
}

static void begin(struct scene *scene, const struct version_source *source)
{
    version_job_init(&scene->job, &scene->shared, source, scene);
    begin_again(scene);
}

static bool is_done(void *owner)
{
    return ((struct scene *)owner)->done > 0;
}

static bool is_dropped(void *owner)
{
    return ((struct scene *)owner)->dropped > 0;
}

static bool has_paused(void *owner)
{
    return ((struct scene *)owner)->pauses > 0;
}

static void await_end(struct scene *scene, const char *message)
{
    client_world_until(&scene->world, is_done, scene);
    assert_int_equal(scene->done, 1);
    assert_false(scene->ok);
    assert_string_equal(scene->message, message);
}

/* Waits for the next request for that file of the deployment, on the same connection. */
static void await_request(struct scene *scene, const char *file)
{
    char line[96];
    if (!scene->gateway.fd)
        far_accept(&scene->world, &scene->gateway);
    snprintf(line, sizeof(line),
             "GET /engine/v1/worker-actions/deployments/deployment_a/%s ", file);
    far_await(&scene->world, &scene->gateway, line);
    far_await(&scene->world, &scene->gateway, "\r\n\r\n");
    buf_clear(&scene->gateway.got);
}

static void answer(struct scene *scene, const char *status, const char *body)
{
    char text[160];
    snprintf(text, sizeof(text), "HTTP/1.1 %s\r\ncontent-length: %zu\r\n\r\n%s", status,
             strlen(body), body);
    far_say(&scene->world, &scene->gateway, text);
}

static char *path_of(const struct scene *scene, const char *name)
{
    struct buf path = { 0 };
    buf_print(&path, "%s/%s", scene->top, name);
    char *text = mem_text(buf_slice(&path));
    buf_finish(&path);
    return text;
}

static bool has(const struct scene *scene, const char *name)
{
    char *path = path_of(scene, name);
    bool found = access(path, F_OK) == 0;
    free(path);
    return found;
}

static void make_folder(const struct scene *scene, const char *name)
{
    char *path = path_of(scene, name);
    assert_int_equal(mkdir(path, 0700), 0);
    free(path);
}

/* Asserts that no file of the job is left on the disk. */
static void finish(struct scene *scene)
{
    version_job_finish(&scene->job);
    assert_int_equal(scene->job.state, VERSION_JOB_IDLE);
    assert_false(has(scene, "versions/deployment_a.tar.gz.new"));
    assert_false(has(scene, "runners/build-deployment_a"));
    assert_false(has(scene, "runners/fetch-deployment_a"));
}

/* ---- tests ---- */

static void failed_request_is_repeated_after_the_pause(void **state)
{
    struct scene *scene = *state;
    scene->pause_ms = 1;
    begin(scene, &built);
    await_request(scene, "archive");
    answer(scene, "503 Busy", "");
    await_request(scene, "archive");
    assert_int_equal(scene->pauses, 1);
    answer(scene, "404 Not Found", "");
    await_end(scene, "gone");
    assert_int_equal(scene->pauses, 1); /* 404 is final */
    assert_int_equal(scene->job.state, VERSION_JOB_ARCHIVE);
    finish(scene);
}

static void failed_request_is_final_when_the_owner_gives_up(void **state)
{
    struct scene *scene = *state;
    scene->pause_ms = -1;
    begin(scene, &fetched);
    await_request(scene, "archive");
    answer(scene, "503 Busy", "");
    await_end(scene, "refused");
    finish(scene);
}

static void gateway_that_closes_the_connection_counts_as_unreachable(void **state)
{
    struct scene *scene = *state;
    scene->pause_ms = -1;
    begin(scene, &fetched);
    await_request(scene, "archive");
    answer(scene, "200 OK", "no archive");
    await_request(scene, "index");
    far_close(&scene->gateway);
    scene->gateway.fd = 0;
    await_request(scene, "index"); /* a GET may be sent twice */
    far_close(&scene->gateway);
    scene->gateway.fd = 0;
    await_end(scene, "away");
    assert_int_equal(scene->job.state, VERSION_JOB_INDEX);
    finish(scene);
}

static void archive_that_cannot_be_written_is_not_requested(void **state)
{
    struct scene *scene = *state;
    make_folder(scene, "versions/deployment_a.tar.gz.new");
    begin(scene, &built);
    await_end(scene, "unwritable");
    assert_true(far_is_alone(&scene->world));
    version_job_finish(&scene->job);
}

static void version_to_be_built_requests_only_the_archive(void **state)
{
    struct scene *scene = *state;
    make_folder(scene, "versions/deployment_a");
    begin(scene, &built);
    await_request(scene, "archive");
    answer(scene, "200 OK", "no archive");
    await_end(scene, "the archive differs from the upload: its hash is wrong");
    assert_int_equal(scene->job.state, VERSION_JOB_MAKING);
    assert_true(has(scene, "versions/deployment_a"));
    finish(scene);
}

static void version_of_another_machine_requests_its_index(void **state)
{
    struct scene *scene = *state;
    make_folder(scene, "versions/deployment_a");
    begin(scene, &fetched);
    await_request(scene, "archive");
    answer(scene, "200 OK", "no archive");
    await_request(scene, "index");
    assert_true(has(scene, "versions/deployment_a"));
    answer(scene, "200 OK", "{}");
    await_end(scene, "the archive differs from the upload: its hash is wrong");
    assert_int_equal(scene->job.state, VERSION_JOB_MAKING);
    assert_false(has(scene, "versions/deployment_a"));
    finish(scene);
}

static void cancel_ends_a_waiting_job_at_once(void **state)
{
    struct scene *scene = *state;
    scene->pause_ms = NEVER_MS;
    begin(scene, &built);
    await_request(scene, "archive");
    answer(scene, "503 Busy", "");
    client_world_until(&scene->world, has_paused, scene);
    version_job_cancel(&scene->job);
    assert_int_equal(scene->done, 1);
    assert_true(scene->canceled);
    finish(scene);
}

static void cancel_ends_the_request_in_flight(void **state)
{
    struct scene *scene = *state;
    scene->pause_ms = 1;
    begin(scene, &fetched);
    await_request(scene, "archive");
    version_job_cancel(&scene->job);
    version_job_cancel(&scene->job);
    client_world_until(&scene->world, is_done, scene);
    assert_int_equal(scene->done, 1);
    assert_true(scene->canceled);
    assert_int_equal(scene->pauses, 0);
    finish(scene);
}

static void canceled_job_can_make_another_version(void **state)
{
    struct scene *scene = *state;
    begin(scene, &built);
    version_job_cancel(&scene->job);
    assert_int_equal(scene->done, 1);
    finish(scene);
    assert_false(scene->job.canceled);
    begin_again(scene);
    await_request(scene, "archive");
    answer(scene, "404 Not Found", "");
    await_end(scene, "gone");
    finish(scene);
}

static void dropped_version_is_removed_from_its_place(void **state)
{
    struct scene *scene = *state;
    begin(scene, &built);
    version_job_cancel(&scene->job);
    make_folder(scene, "versions/deployment_a");
    version_job_drop(&scene->job);
    assert_int_equal(scene->job.state, VERSION_JOB_DROPPING);
    client_world_until(&scene->world, is_dropped, scene);
    assert_false(has(scene, "versions/deployment_a"));
    finish(scene);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, create, destroy)
    const struct CMUnitTest tests[] = {
        TEST(failed_request_is_repeated_after_the_pause),
        TEST(failed_request_is_final_when_the_owner_gives_up),
        TEST(gateway_that_closes_the_connection_counts_as_unreachable),
        TEST(archive_that_cannot_be_written_is_not_requested),
        TEST(version_to_be_built_requests_only_the_archive),
        TEST(version_of_another_machine_requests_its_index),
        TEST(cancel_ends_a_waiting_job_at_once),
        TEST(cancel_ends_the_request_in_flight),
        TEST(canceled_job_can_make_another_version),
        TEST(dropped_version_is_removed_from_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
