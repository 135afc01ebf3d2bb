/* runner_environment.c - fills in the environment variables of a runner. */
#include "supervisor/runners/runner_environment.h"

#include <stdio.h>

#include "base/buf.h"

enum { HEARTBEAT_S = 20, POLL_S = 5, ADDRESS_MAX = 64 };

static const char default_path[] =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/* Variables for node that an operator may have set. */
static const char *const passed_on[] = { "NODE_OPTIONS", "NODE_EXTRA_CA_CERTS",
                                         "SSL_CERT_FILE" };

static struct slice outer_value(char *const *outer, const char *name)
{
    size_t len = strlen(name);
    for (; outer && *outer; outer++)
        if (strncmp(*outer, name, len) == 0 && (*outer)[len] == '=')
            return slice_of(*outer + len + 1);
    return (struct slice){ 0 };
}

static void add_machine(struct child_environment *environment,
                        const struct runner_home *home)
{
    struct slice path = outer_value(home->outer, "PATH");
    child_environment_add(environment, "PATH", path.len ? path : slice_of(default_path));
    child_environment_add(environment, "LANG", SLICE("C.UTF-8"));
    child_environment_add(environment, "HOME", slice_of(home->directory));
    child_environment_add(environment, "TMPDIR", slice_of(home->directory));
    child_environment_add(environment, "NODE_ENV", SLICE("production"));
    child_environment_add(environment, "UV_USE_IO_URING", SLICE("0"));
    for (size_t i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++) {
        struct slice value = outer_value(home->outer, passed_on[i]);
        if (value.len)
            child_environment_add(environment, passed_on[i], value);
    }
}

static void add_number(struct child_environment *environment, const char *name,
                       double number)
{
    struct buf text = { 0 };
    buf_add_json_double(&text, number);
    child_environment_add(environment, name, buf_slice(&text));
    buf_finish(&text);
}

static void add_run(struct child_environment *environment, const struct runner_home *home)
{
    const struct run_message *message = home->message;
    const char *ref = message->project_ref[0] ? message->project_ref : message->project;
    child_environment_add(environment, "TRIGGER_CONTENT_HASH",
                          slice_of(home->content_hash));
    child_environment_add(environment, "TRIGGER_PROJECT_ID", slice_of(message->project));
    child_environment_add(environment, "TRIGGER_PROJECT_REF", slice_of(ref));
    child_environment_add(environment, "TRIGGER_ENV_ID", slice_of(message->environment));
    child_environment_add(environment, "TRIGGER_DEPLOYMENT_ID", slice_of(home->token));
    child_environment_add(environment, "TRIGGER_DEPLOYMENT_FRIENDLY_ID",
                          slice_of(message->deployment));
    child_environment_add(environment, "TRIGGER_DEPLOYMENT_VERSION",
                          slice_of(message->version));
    child_environment_add(environment, "TRIGGER_RUN_ID", slice_of(message->run));
    child_environment_add(environment, "TRIGGER_SNAPSHOT_ID", slice_of(message->snapshot));
    add_number(environment, "TRIGGER_MACHINE_CPU", message->cores);
    add_number(environment, "TRIGGER_MACHINE_MEMORY", message->gigabytes);
}

void runner_environment_fill(struct child_environment *environment,
                             const struct runner_home *home)
{
    char address[ADDRESS_MAX];
    add_machine(environment, home);
    add_run(environment, home);
    child_environment_add(environment, "TRIGGER_RUNNER_ID", slice_of(home->runner));
    child_environment_add(environment, "TRIGGER_WORKLOAD_CONTROLLER_ID",
                          slice_of(home->runner));
    child_environment_add(environment, "TRIGGER_SUPERVISOR_API_PROTOCOL", SLICE("http"));
    child_environment_add(environment, "TRIGGER_SUPERVISOR_API_DOMAIN", SLICE("127.0.0.1"));
    child_environment_add_number(environment, "TRIGGER_SUPERVISOR_API_PORT", home->port);
    child_environment_add(environment, "TRIGGER_WORKER_INSTANCE_NAME",
                          slice_of(home->instance));
    child_environment_add_number(environment, "TRIGGER_DEQUEUED_AT_MS", home->now_ms);
    child_environment_add_number(environment, "TRIGGER_POD_SCHEDULED_AT_MS", home->now_ms);
    child_environment_add(environment, "OTEL_EXPORTER_OTLP_ENDPOINT",
                          slice_of(home->gateway));
    child_environment_add_number(environment, "TRIGGER_HEARTBEAT_INTERVAL_SECONDS",
                                 HEARTBEAT_S);
    child_environment_add_number(environment, "TRIGGER_SNAPSHOT_POLL_INTERVAL_SECONDS",
                                 POLL_S);
    child_environment_add(environment, "TRIGGER_SEND_RUN_DEBUG_LOGS", SLICE("false"));
    if (!home->warm)
        return;
    snprintf(address, sizeof(address), "http://127.0.0.1:%d", home->port);
    child_environment_add(environment, "TRIGGER_WARM_START_URL", slice_of(address));
}
