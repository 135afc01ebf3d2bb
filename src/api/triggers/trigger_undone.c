/* trigger_undone.c - options of the published schema that runcast does not support.
 *
 * They have no effect: SDKs send them unasked, and they are members of the old engine. The
 * types of all of them are checked. src/api/router/README.md lists them. */
#include "api/triggers/trigger_reading.h"
#include "base/json/scan.h"

bool trigger_asks_nothing(struct slice value)
{
    enum scan_type type = scan_type(value);
    struct slice text = slice_trim(value);
    if (type == SCAN_ARRAY || type == SCAN_OBJECT)
        return !scan_members(value).rest.len;
    return type == SCAN_NULL || (type == SCAN_STRING && text.len == 2);
}

static enum err skip_text(struct trigger_reading *r, struct slice value)
{
    struct slice text;
    return trigger_asks_nothing(value) ? OK : reading_text(r, value, SIZE_MAX, &text);
}

/* Metadata is always an object, so only one type is valid. */
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

const struct option trigger_undone[] = {
    { "parentAttempt", skip_text, false },
    { "dependentAttempt", skip_text, true },
    { "parentBatch", skip_text, true },
    { "dependentBatch", skip_text, true },
    { "bulkActionId", skip_text, true },
    { "metadataType", read_metadata_type, false },
    { 0 },
};
