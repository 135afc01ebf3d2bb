/* fuzz_wire - messages of clients: each is valid, or rejected with a clear sentence.
 *
 * Nothing leaks. */
#include <assert.h>
#include <stdint.h>

#include "base/json/scan.h"
#include "core/wire/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_accepted(struct wire_message *message)
{
    static const struct run run = { .id = "run_x", .created_at = 1700000000000 };
    struct facts facts = facts_of(&run);
    assert(!message->has_fields || (message->fields & FIELDS_ALWAYS) == FIELDS_ALWAYS);
    assert(!(message->fields & ~(uint32_t)FIELDS_ALL));
    assert(message->op != WIRE_SUB || message->has_id);
    assert(message->from_base <= message->from_seq);
    assert(message->filter.created_from >= 0);
    filter_matches(&message->filter, &facts);
}

static void check_refused(const struct wire_message *message, const char *code,
                          const struct failure *why)
{
    struct buf out = { 0 };
    wire_error(ENCODING_JSON, message->has_id ? message->id : -1, code, why->text, &out);
    assert(scan_is_json(buf_slice(&out)));
    buf_finish(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wire_message message;
    struct failure why;
    const char *code = NULL;
    struct slice text = { (const char *)data, size };
    if (wire_read(text, 1700000000000, &message, &code, &why))
        check_refused(&message, code, &why);
    else
        check_accepted(&message);
    wire_message_finish(&message);
    return 0;
}
