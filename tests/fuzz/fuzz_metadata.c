/* fuzz_metadata - operations on an object: the first line is the object, the rest the list.
 *
 * The result is JSON, an object and not too deep. Operations that the check rejects are not
 * applied, and a rejection appends nothing. */
#include <stdint.h>
#include <stdlib.h>

#include "base/json/scan.h"
#include "core/model/metadata.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice operations = { (const char *)data, size }, object;
    if (!slice_split(&operations, '\n', &object) || !operations.ptr)
        return 0;
    if (!scan_is_json(operations) || (object.len && !scan_is_json(object)))
        return 0;

    struct buf out = { 0 };
    struct failure why = { 0 };
    bool well_formed = metadata_check(operations, &why) == OK;
    bool applied = metadata_apply(object, operations, &out, &why) == OK;
    demand(well_formed || !applied);
    if (applied) {
        demand(scan_is_json(buf_slice(&out)));
        demand(scan_type(buf_slice(&out)) == SCAN_OBJECT);
    } else {
        demand(out.len == 0);
        demand(why.code == ERR_INVALID && why.text[0]);
    }
    buf_finish(&out);
    return 0;
}
