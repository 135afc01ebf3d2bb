/* runner_environment: the environment variables of a run's process, and no others. */
#include "supervisor/runners/runner_environment.h"

#include <stdlib.h>

#include "tests/support/world/unit.h"

static const struct run_message message = {
    .run = "run_a",
    .snapshot = "snapshot_1",
    .cores = 0.5,
    .gigabytes = 0.5,
    .environment = "env_1",
    .organization = "org_1",
    .project = "project_1",
    .project_ref = "proj_ref",
    .version = "20260101.1",
    .deployment = "deployment_1",
};

static char *const outer[] = { "PATH=/opt/bin:/bin",
                               "RUNCAST_WORKER_TOKEN=tr_wgt_x",
                               "NODE_OPTIONS=--use-openssl-ca",
                               "NODE_OPTIONS_MORE=1",
                               "HOME=/root",
                               NULL };

static struct runner_home home_of(bool warm)
{
    return (struct runner_home){ .message = &message,
                                 .token = "token",
                                 .runner = "runner-a",
                                 .instance = "rack",
                                 .content_hash = "hash",
                                 .directory = "/scratch",
                                 .gateway = "http://127.0.0.1:3030",
                                 .port = 4000,
                                 .now_ms = 1700000000000,
                                 .warm = warm,
                                 .outer = outer };
}

/* In sorted order. */
static const char *const expected[] = {
    "HOME=/scratch",
    "LANG=C.UTF-8",
    "NODE_ENV=production",
    "NODE_OPTIONS=--use-openssl-ca",
    "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:3030",
    "PATH=/opt/bin:/bin",
    "TMPDIR=/scratch",
    "TRIGGER_CONTENT_HASH=hash",
    "TRIGGER_DEPLOYMENT_FRIENDLY_ID=deployment_1",
    "TRIGGER_DEPLOYMENT_ID=token",
    "TRIGGER_DEPLOYMENT_VERSION=20260101.1",
    "TRIGGER_DEQUEUED_AT_MS=1700000000000",
    "TRIGGER_ENV_ID=env_1",
    "TRIGGER_HEARTBEAT_INTERVAL_SECONDS=20",
    "TRIGGER_MACHINE_CPU=0.5",
    "TRIGGER_MACHINE_MEMORY=0.5",
    "TRIGGER_POD_SCHEDULED_AT_MS=1700000000000",
    "TRIGGER_PROJECT_ID=project_1",
    "TRIGGER_PROJECT_REF=proj_ref",
    "TRIGGER_RUNNER_ID=runner-a",
    "TRIGGER_RUN_ID=run_a",
    "TRIGGER_SEND_RUN_DEBUG_LOGS=false",
    "TRIGGER_SNAPSHOT_ID=snapshot_1",
    "TRIGGER_SNAPSHOT_POLL_INTERVAL_SECONDS=5",
    "TRIGGER_SUPERVISOR_API_DOMAIN=127.0.0.1",
    "TRIGGER_SUPERVISOR_API_PORT=4000",
    "TRIGGER_SUPERVISOR_API_PROTOCOL=http",
    "TRIGGER_WARM_START_URL=http://127.0.0.1:4000",
    "TRIGGER_WORKER_INSTANCE_NAME=rack",
    "TRIGGER_WORKLOAD_CONTROLLER_ID=runner-a",
    "UV_USE_IO_URING=0",
};

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void runner_has_exactly_these_variables(void **state)
{
    struct child_environment environment = { 0 };
    struct runner_home home = home_of(true);
    size_t count = sizeof(expected) / sizeof(expected[0]);
    (void)state;
    runner_environment_fill(&environment, &home);
    qsort(environment.entries, environment.count, sizeof(char *), by_text);
    for (size_t i = 0; i < environment.count && i < count; i++)
        assert_string_equal(environment.entries[i], expected[i]);
    assert_int_equal(environment.count, count);
    assert_null(child_environment_list(&environment)[count]);
    child_environment_finish(&environment);
}

static void only_a_reusable_runner_gets_the_address_for_more_runs(void **state)
{
    struct child_environment environment = { 0 };
    struct runner_home home = home_of(false);
    (void)state;
    runner_environment_fill(&environment, &home);
    assert_int_equal(environment.count, sizeof(expected) / sizeof(expected[0]) - 1);
    for (size_t i = 0; i < environment.count; i++)
        assert_false(slice_starts(slice_of(environment.entries[i]), "TRIGGER_WARM"));
    child_environment_finish(&environment);
    assert_null(child_environment_list(&environment)[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runner_has_exactly_these_variables),
        cmocka_unit_test(only_a_reusable_runner_gets_the_address_for_more_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
