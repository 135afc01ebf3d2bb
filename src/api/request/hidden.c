/* hidden.c - finds the fields of a run that a token's skipColumns hide; empties them. */
#include "api/request/hidden.h"

#include "core/wire/shape.h"

/* Fields that runs.v1 always sends, without tags, which the long poll leaves out. */
enum { NEVER_HIDDEN = FIELDS_ALWAYS & ~(1 << FIELD_TAGS) };

uint32_t hidden_fields(const struct identity *identity)
{
    uint32_t hidden = 0;
    for (size_t i = 0; i < identity->skip_count; i++) {
        struct slice name = slice_of(identity->skip_columns[i]);
        enum field field = field_from_name(name);
        hidden |= field < FIELD_COUNT ? 1u << field : shape_column(name, VOCABULARY_B);
    }
    return hidden & FIELDS_ALL & ~(uint32_t)NEVER_HIDDEN;
}

static bool is_hidden(uint32_t hidden, enum field field)
{
    return hidden & 1u << field;
}

bool hidden_contents(uint32_t hidden)
{
    return is_hidden(hidden, FIELD_PAYLOAD) || is_hidden(hidden, FIELD_OUTPUT) ||
           is_hidden(hidden, FIELD_ERROR);
}

static void clear_texts(uint32_t hidden, struct run *run)
{
    const struct {
        enum field field;
        struct bytes **text;
    } texts[] = {
        { FIELD_PAYLOAD, &run->payload },        { FIELD_OUTPUT, &run->output },
        { FIELD_METADATA, &run->metadata },      { FIELD_ERROR, &run->error },
        { FIELD_VERSION, &run->worker_version }, { FIELD_QUEUE, &run->queue },
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (is_hidden(hidden, texts[i].field))
            bytes_clear(texts[i].text);
}

static void clear_rare(uint32_t hidden, struct run *run)
{
    struct run_rare *rare = run_rare_edit(run);
    if (is_hidden(hidden, FIELD_IDEMPOTENCY_KEY))
        bytes_clear(&rare->idempotency_shown);
    if (is_hidden(hidden, FIELD_TTL))
        bytes_clear(&rare->ttl);
    if (is_hidden(hidden, FIELD_EXPIRED_AT))
        rare->expired_at = 0;
    if (is_hidden(hidden, FIELD_DELAYED_UNTIL))
        rare->delayed_until = 0;
}

void hidden_clear(uint32_t hidden, struct run *run)
{
    if (!hidden)
        return;
    clear_texts(hidden, run);
    if (run->rare)
        clear_rare(hidden, run);
    if (is_hidden(hidden, FIELD_TAGS)) {
        tag_list_unref(run->tags);
        run->tags = NULL;
    }
    if (is_hidden(hidden, FIELD_NUMBER))
        run->number = 0;
    if (is_hidden(hidden, FIELD_QUEUED_AT))
        run->queued_at = 0;
    if (is_hidden(hidden, FIELD_STARTED_AT))
        run->started_at = 0;
    if (is_hidden(hidden, FIELD_FINISHED_AT))
        run->finished_at = 0;
    if (is_hidden(hidden, FIELD_DURATION_MS))
        run->usage_ms = 0;
    if (is_hidden(hidden, FIELD_COST))
        run->cost_cents = 0;
    if (is_hidden(hidden, FIELD_BASE_COST))
        run->base_cost_cents = 0;
    if (is_hidden(hidden, FIELD_ATTEMPT_COUNT))
        run->attempt = 0;
    if (is_hidden(hidden, FIELD_IS_TEST))
        run->is_test = false;
}
