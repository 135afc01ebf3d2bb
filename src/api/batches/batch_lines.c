/* batch_lines.c - splits a stream of items into lines and reads each line as an item. */
#include "api/batches/batch_lines.h"

#include "api/packets/packet_name.h"
#include "api/triggers/trigger_call.h"
#include "base/mem.h"

enum { KEPT_LINE = 65536 }; /* bytes of buffer kept between two lines */

static void end_line(struct batch_lines *lines)
{
    open_batches_give(lines->open, lines->env, lines->line_cost);
    lines->line_cost = lines->line_len = 0;
    if (lines->line.text.capacity + lines->line.payload.capacity > KEPT_LINE) {
        envelope_finish(&lines->line);
        lines->line = (struct envelope){ 0 };
    }
    envelope_clear(&lines->line);
}

void batch_lines_finish(struct batch_lines *lines)
{
    size_t bytes = lines->line_cost;
    for (size_t i = 0; i < BATCH_RUNS_MAX; i++) {
        if (!lines->items[i])
            continue;
        bytes += lines->items[i]->cost;
        batch_item_destroy(lines->items[i]);
        lines->items[i] = NULL;
    }
    if (bytes)
        open_batches_give(lines->open, lines->env, bytes);
    lines->line_cost = 0;
    envelope_finish(&lines->line);
    lines->line = (struct envelope){ 0 };
}

/* ---- memory ---- */

enum err batch_lines_no_quota(struct api_call *call)
{
    api_add_header(call, "x-should-retry", SLICE("true"));
    return explain(&call->why, ERR_STORE,
                   "The batches that are being streamed use all memory of this environment "
                   "or its project; try again, or stream fewer batches at once");
}

/* Reserves memory for a line's text and for the text of its payload. */
static enum err take_room(struct batch_lines *lines, size_t len)
{
    if (!open_batches_take(lines->open, lines->env, 2 * len))
        return batch_lines_no_quota(lines->call);
    lines->line_cost += 2 * len;
    return OK;
}

static size_t cost_of(const struct batch_item *item)
{
    const struct run *run = &item->trigger.run;
    size_t cost = sizeof(*item) + run_packet_bytes(run) + bytes_slice(run->task).len;
    const struct run_rare *rare = run_rare(run);
    if (run->rare)
        cost += sizeof(*rare) + bytes_slice(rare->idempotency_key).len +
                bytes_slice(rare->idempotency_shown).len;
    for (uint32_t i = 0; run->tags && i < run->tags->count; i++)
        cost += sizeof(struct bytes) + run->tags->names[i]->len;
    return cost;
}

/* ---- an item ---- */

static enum err say_which(struct batch_lines *lines, uint32_t index)
{
    struct failure *why = &lines->call->why;
    struct failure inner = *why;
    return explain(why, ERR_RULE, "Invalid item at index %u: %.250s", index, inner.text);
}

static enum err read_index(struct batch_lines *lines, uint32_t *index)
{
    uint64_t number;
    if (text_to_u64(envelope_get(&lines->line, "index"), &number))
        return explain(&lines->call->why, ERR_RULE,
                       "Invalid item at index %zu: Expected \"index\", a whole number, in "
                       "line %zu",
                       lines->number - 1, lines->number);
    if (number >= BATCH_RUNS_MAX)
        return explain(&lines->call->why, ERR_RULE,
                       "Item index %llu exceeds batch runCount %d",
                       (unsigned long long)number, BATCH_RUNS_MAX);
    *index = (uint32_t)number;
    return OK;
}

/* Reads the task, even of an item that is too large. */
static enum err read_task(struct batch_lines *lines, uint32_t index, struct buf *task)
{
    struct api_call *call = lines->call;
    if (!scan_string(envelope_get(&lines->line, "task"), task) || !task->len)
        return explain(&call->why, ERR_RULE,
                       "Invalid item at index %u: Expected string at \"task\"", index);
    if (task->len > TRIGGER_TASK_MAX)
        return explain(
            &call->why, ERR_RULE,
            "Invalid item at index %u: The id of the task must have 1 to %d bytes", index,
            TRIGGER_TASK_MAX);
    if (lines->may_write)
        return OK;
    return api_check_scope(call, "batchTrigger", "tasks", buf_slice(task));
}

static const char *const item_members[] = { "index", "task", "payload", "options", NULL };

static enum err read_options(struct batch_lines *lines, struct slice task,
                             struct batch_item *item)
{
    struct api_call *call = lines->call;
    struct trigger_parent parent = { 0 }; /* ignored: the batch names the parent */
    struct trigger_place place = trigger_call_place(call);
    struct trigger_source source = {
        .task = task,
        .payload = envelope_get(&lines->line, "payload"),
        .payload_text = envelope_payload_text(&lines->line),
        .text_is_json = envelope_payload_is_json(&lines->line),
        .options = envelope_get(&lines->line, "options"),
        .is_item = true,
        .ignored = &call->ignored,
    };
    envelope_report_others(&lines->line, "items[].", item_members, source.ignored, NULL);
    enum err err =
        trigger_options_read(&source, &place, &item->trigger, &parent, &call->why);
    if (!err)
        err = packet_check_named(call, &item->trigger.run);
    bytes_unref(parent.run_id);
    return err ? say_which(lines, item->index) : OK;
}

static enum err keep(struct batch_lines *lines, struct batch_item *item)
{
    size_t cost = cost_of(item);
    if (!open_batches_take(lines->open, lines->env, cost))
        return batch_lines_no_quota(lines->call);
    item->cost = cost;
    lines->items[item->index] = item;
    lines->count++;
    if (item->index > lines->highest)
        lines->highest = item->index;
    return OK;
}

static enum err read_item(struct batch_lines *lines, bool too_large)
{
    struct buf task = { 0 };
    uint32_t index = 0;
    enum err err = read_index(lines, &index);
    if (err)
        return err;
    if (lines->items[index]) {
        lines->repeated++;
        return OK;
    }
    struct batch_item *item = mem_new(struct batch_item);
    item->index = index;
    item->too_large = too_large;
    item->trigger.run.batch_index = index;
    err = read_task(lines, index, &task);
    if (!err && too_large)
        item->trigger.run.task = bytes_create(buf_slice(&task));
    else if (!err)
        err = read_options(lines, buf_slice(&task), item);
    if (!err)
        err = keep(lines, item);
    if (err)
        batch_item_destroy(item);
    buf_finish(&task);
    return err;
}

/* ---- lines ---- */

static enum err read_line(struct batch_lines *lines)
{
    struct api_call *call = lines->call;
    bool too_large = lines->line_len > BATCH_LINE_MAX;
    struct failure why = { 0 };
    enum err err = OK;

    if (!too_large && !slice_trim(buf_slice(&lines->line.text)).len)
        return OK;
    if (!too_large && envelope_close(&lines->line, &why))
        return explain(&call->why, ERR_INVALID, "Invalid JSON at line %zu: %s",
                       lines->number, why.text);
    err = read_item(lines, too_large);
    if (err && too_large && err != ERR_FORBIDDEN)
        explain(&call->why, ERR_TOO_LARGE,
                "Line %zu is larger than %d bytes and does not begin with index and task",
                lines->number, BATCH_LINE_MAX);
    return err && too_large && err != ERR_FORBIDDEN ? ERR_TOO_LARGE : err;
}

/* Takes a part of one line. Discards the rest of a line that is too long: index and task
 * come first. */
static enum err take_part(struct batch_lines *lines, struct slice part)
{
    lines->line_len += part.len;
    if (lines->line_len > BATCH_LINE_MAX || !part.len)
        return OK;
    enum err err = take_room(lines, part.len);
    if (err)
        return err;
    if (envelope_feed(&lines->line, part))
        return explain(&lines->call->why, ERR_INVALID,
                       "Invalid JSON at line %zu: wrong at byte %zu", lines->number,
                       lines->line.scan.offset);
    return OK;
}

enum err batch_lines_take(struct batch_lines *lines, struct slice piece)
{
    while (piece.len) {
        const char *end = memchr(piece.ptr, '\n', piece.len);
        size_t len = end ? (size_t)(end - piece.ptr) : piece.len;
        enum err err = take_part(lines, (struct slice){ piece.ptr, len });
        if (err || !end)
            return err;
        err = read_line(lines);
        end_line(lines);
        lines->number++;
        if (err)
            return err;
        piece = slice_from(piece, len + 1);
    }
    return OK;
}

enum err batch_lines_end(struct batch_lines *lines)
{
    enum err err = lines->line_len ? read_line(lines) : OK;
    end_line(lines);
    return err;
}
