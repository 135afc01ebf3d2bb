/* options.c - settings whose meaning for the API and the engine is more than their value. */
#include "server/gateway/options.h"

#include <string.h>
#include <uv.h>

#include "server/gateway/connection_shares.h"

/* How many runs execute at once for a developer: two for each core, as while one run reads
 * or writes, another one computes. */
uint32_t gateway_dev_concurrency(const struct config *config)
{
    int64_t limit = config->dev_concurrency;
    return limit ? (uint32_t)limit : 2 * uv_available_parallelism();
}

void gateway_set_options(const struct config *config, struct api_options *options)
{
    options->public_url = config->public_url;
    options->allow_origin = config->allow_origin;
    options->data = config->data;
    options->metrics_token = config->metrics_token;
    options->dashboard = strcmp(config->dashboard, "off") != 0;
    options->dashboard_is_admins = !strcmp(config->dashboard, "admin");
    options->subscriptions_max = config->subscriptions;
    options->batch_memory = config->batch_memory;
    options->schedules_max = config->schedules;
    options->branches_max = config->branches;
    options->user_projects = config->user_projects;
    options->user_organizations = config->user_organizations;
    options->stream_memory = config->stream_memory;
    options->trace_rows = config->run_log_rows;
    options->trace_bytes = config->run_log_bytes;
    options->trace_share = config->log_share;
    options->project_trace_share = config->project_log_share;
    options->stream_bytes = config->stream_bytes;
    options->storage_quota = config->storage_quota;
    options->dequeue_wait_ms = config->dequeue_wait_ms;
    options->drain_timeout_ms = config->drain_timeout_ms;
    options->deploy_bundle = config->deploy_bundle;
    options->deploy_hold_ms = config->deploy_hold_ms;
    options->deploy_timeout_ms = config->deploy_timeout_ms;
    options->keep_versions = config->keep_versions;
    options->executes = config->execute && config->builders;
    options->rate_limit = config->rate_limit;
    connection_shares_set(config, options);
}
