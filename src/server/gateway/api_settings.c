/* api_settings.c - copies settings for the API. */
#include "server/gateway/api_settings.h"

#include <string.h>

#include "server/gateway/connection_shares.h"

void api_settings_copy(const struct config *config, struct api_options *options)
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
