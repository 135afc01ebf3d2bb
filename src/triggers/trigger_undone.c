/* trigger_undone.c - options of the published schema that runcast does not do.
 *
 *   refused          what the caller would miss: debounce, gates, concurrency, and a
 *                    deployment that is to be waited for
 *   without effect   what SDKs send by themselves: members of the old engine, and whatever
 *                    is null or empty
 *
 * Both are judged by type. README.md lists them. */
#include "triggers/trigger_reading.h"
#include "json/scan.h"

enum { DEPLOYMENT_MAX = 128 }; /* characters of an externalDeploymentId */

bool trigger_asks_nothing(struct slice value)
{
    enum scan_type type = scan_type(value);
    struct slice text = slice_trim(value);
    if (type == SCAN_ARRAY || type == SCAN_OBJECT)
        return !scan_members(value).rest.len;
    return type == SCAN_NULL || (type == SCAN_STRING && text.len == 2);
}

static enum err refuse(struct trigger_reading *r, struct slice value)
{
    if (trigger_asks_nothing(value))
        return OK;
    return reading_mistake(r, "runcast does not do this");
}

static enum err skip_text(struct trigger_reading *r, struct slice value)
{
    struct slice text;
    return trigger_asks_nothing(value) ? OK : reading_text(r, value, SIZE_MAX, &text);
}

/* Metadata is an object, so there is one way to send it. */
static enum err read_metadata_type(struct trigger_reading *r, struct slice value)
{
    struct slice text;
    enum err err = reading_text(r, value, SIZE_MAX, &text);
    if (err)
        return err;
    return !text.len || slice_is(text, "application/json")
               ? OK
               : reading_mistake(r, "Expected application/json, the only type of metadata");
}

static enum err keep_deployment(struct trigger_reading *r, struct slice value)
{
    r->deployment = value;
    return OK;
}

/* The SDK sends it by itself in some hosts' builds, also beside a version, which governs
 * then. In dev nothing is deployed. Elsewhere the run would be another deployment's. */
enum err reading_check_deployment(struct trigger_reading *r)
{
    struct slice text;
    r->name = "externalDeploymentId";
    if (!r->deployment.ptr || trigger_asks_nothing(r->deployment))
        return OK;
    enum err err = reading_text(r, r->deployment, SIZE_MAX, &text);
    if (err)
        return err;
    if (text_utf16_length(slice_trim(text)) > DEPLOYMENT_MAX)
        return reading_mistake(r, "String must contain at most 128 character(s)");
    if (!slice_trim(text).len || r->place->is_dev || r->item->run.worker_version)
        return OK;
    return explain(r->why, ERR_INVALID,
                   "Validation error: runcast does not know deployments by ids of yours at "
                   "\"options.externalDeploymentId\"; \"lockToVersion\" names a version");
}

const struct option trigger_undone[] = {
    { "debounce", refuse, false },
    { "gates", refuse, false },
    { "concurrency", refuse, false },
    { "externalDeploymentId", keep_deployment, false },
    { "parentAttempt", skip_text, false },
    { "dependentAttempt", skip_text, true },
    { "parentBatch", skip_text, true },
    { "dependentBatch", skip_text, true },
    { "bulkActionId", skip_text, true },
    { "metadataType", read_metadata_type, false },
    { 0 },
};
