/* debounce.c - marks of debounced runs, and what a push changes. */
#include "core/model/debounce.h"

#include "base/buf.h"
#include "runcast/store.h"

static const char mark_start[] = "[{\"type\":\"DEBOUNCE\",\"key\":";

struct bytes *debounce_mark(struct slice key)
{
    struct buf text = { 0 };
    buf_add_text(&text, mark_start);
    buf_add_json(&text, key);
    buf_add_text(&text, "}]");
    struct bytes *mark = buf_to_bytes(&text);
    buf_finish(&text);
    return mark;
}

bool debounce_is_mark(struct slice waits)
{
    return slice_starts(waits, mark_start);
}

struct slice debounce_mark_of(const struct run *run)
{
    struct slice waits = bytes_slice(run_rare(run)->waits);
    bool is_marked = run->status == RUN_DELAYED && debounce_is_mark(waits);
    return is_marked ? waits : (struct slice){ 0 };
}

bool debounce_allows(const struct debounce *push, const struct run *run, int64_t now_ms)
{
    return !push->max_delay_ms ||
           now_ms + push->delay_ms <= run->created_at + push->max_delay_ms;
}

/* Options that the push does not name stay as they are. */
static void replace(const struct debounce *push, const struct run *with, struct run *run,
                    unsigned *marks)
{
    *marks |= MARK_WHOLE | MARK_PAYLOAD;
    bytes_set(&run->payload, with->payload);
    if (run_rare(run)->payload_type || run_rare(with)->payload_type)
        bytes_set(&run_rare_edit(run)->payload_type, run_rare(with)->payload_type);
    if (with->metadata) {
        *marks |= MARK_METADATA;
        bytes_set(&run->metadata, with->metadata);
        bytes_set(&run->metadata_seed, with->metadata);
    }
    if (with->tags) {
        tag_list_unref(run->tags);
        run->tags = tag_list_ref(with->tags);
    }
    if (with->max_attempts)
        run->max_attempts = with->max_attempts;
    if (with->max_duration_s)
        run->max_duration_s = with->max_duration_s;
    if (push->names_machine)
        run->machine = with->machine;
}

bool debounce_push(const struct debounce *push, const struct run *with, struct run *run,
                   int64_t now_ms, unsigned *marks)
{
    int64_t until = now_ms + push->delay_ms;
    bool is_later = until > run_rare(run)->delayed_until;
    if (is_later) {
        struct run_rare *rare = run_rare_edit(run);
        rare->delayed_until = run->due_at = until;
        run->queue_position = until - rare->priority_ms;
    }
    if (push->is_trailing)
        replace(push, with, run, marks);
    if (is_later || push->is_trailing)
        run->snapshot++;
    return is_later || push->is_trailing;
}

void debounce_free_key(struct run *run)
{
    bytes_clear(&run_rare_edit(run)->waits);
}

struct slice debounce_owner_run(struct slice owner)
{
    struct slice id;
    return slice_split(&owner, '/', &id) ? id : owner;
}

bool debounce_owner_is_push(struct slice owner)
{
    return debounce_owner_run(owner).len < owner.len;
}
