/* restore.c - what the store has of an environment comes back to those who keep it, at start. */
#include "api/router/restore.h"

#include "accounts/variables.h"
#include "api/bulk/bulk.h"
#include "api/deployments/deployments.h"
#include "api/request/queue_settings.h"
#include "api/schedules/schedules.h"
#include "api/workers/promotion.h"
#include "api/workers/registration.h"

static enum err restore_queue(struct environment *env, const struct document *document,
                              struct failure *why)
{
    struct queue_settings settings;
    enum err err = queue_settings_read(bytes_slice(document->body), &settings, why);
    if (err)
        return err;
    settings.version = document->version;
    queues_configure(&env->queues, bytes_slice(document->name), &settings);
    return OK;
}

enum err api_restore(struct api *api, const struct document *document, struct failure *why)
{
    struct environment *env = engine_environment(api_engine(api), document->env);
    if (!env || !document->body)
        return OK;
    switch (document->kind) {
    case DOC_WORKER: return registration_restore_document(env, document, why);
    case DOC_CURRENT: return promotion_restore(env, document, why);
    case DOC_DEPLOYMENT:
    case DOC_BUILD_VARIABLES:
        return deployments_restore(api_deployments(api), env, document, why);
    case DOC_QUEUE: return restore_queue(env, document, why);
    case DOC_VARIABLE: return variables_restore(api_accounts(api), document, why);
    case DOC_SCHEDULE: return schedules_restore(api_schedules(api), document, why);
    case DOC_BULK: return bulks_restore(api_bulks(api), env, document, why);
    default: return OK;
    }
}
