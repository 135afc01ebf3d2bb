/* fuzz_otlp - JSON as telemetry: accepted or rejected; all kept parts are JSON, too. */
#include <assert.h>
#include <stdint.h>

#include "api/telemetry/otlp.h"
#include "base/json/members.h"
#include "tests/fuzz/judge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(struct slice text, bool logs)
{
    struct otlp otlp;
    struct slice record;
    char run_id[ID_MAX];
    otlp_begin(&otlp, text, logs);
    while (otlp_next(&otlp, &record)) {
        struct trace_event event;
        judge_rest(); /* otel.c checks for time left here, too */
        if (!record.ptr || otlp_is_beyond(&otlp))
            continue;
        assert(record.ptr >= text.ptr && record.ptr + record.len <= text.ptr + text.len);
        if (otlp_read(&otlp, record, run_id, &event))
            continue;
        struct slice json = bytes_slice(event.json);
        assert(scan_is_json(json) && scan_type(json) == SCAN_OBJECT);
        struct bytes *span = members_text(json, "spanId");
        assert(span && span->len == OTLP_SPAN_LEN && !strcmp(span->data, event.span));
        assert(scan_type(scan_member(json, "properties")) == SCAN_OBJECT);
        assert(members_is_true(json, "isPartial") == event.partial);
        bytes_unref(span);
        bytes_unref(event.json);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = { (const char *)data, size };
    if (!scan_is_json(text))
        return 0;
    read_all(text, false);
    read_all(text, true);
    return 0;
}
