/* reader.c - a feed whose socket is an array. */
#include "tests/support/world/reader.h"

#include <stdio.h>

#include "base/json/scan.h"
#include "base/mem.h"
#include "tests/support/world/unit.h"

/* ---- the connection ---- */

static void keep(struct reader *reader, struct bytes *frame)
{
    if (reader->count == reader->capacity) {
        reader->capacity = reader->capacity ? reader->capacity * 2 : 16;
        reader->frames =
            mem_resize(reader->frames, reader->capacity * sizeof(struct bytes *));
    }
    reader->frames[reader->count++] = bytes_ref(frame);
}

static bool send_frames(struct feed *feed, struct bytes *const *frames, size_t count)
{
    struct reader *reader = container_of(feed, struct reader, feed);
    assert_false(reader->stalled);
    for (size_t i = 0; i < count; i++)
        keep(reader, frames[i]);
    reader->room -= reader->room == SIZE_MAX ? 0
                    : reader->room > count   ? count
                                             : reader->room;
    reader->stalled = !reader->room;
    return !reader->stalled;
}

static bool is_busy(struct feed *feed)
{
    struct reader *reader = container_of(feed, struct reader, feed);
    return reader->stalled || reader->lost;
}

static void on_lost(struct feed *feed)
{
    container_of(feed, struct reader, feed)->lost = true;
}

static void begins_again(struct feed *feed)
{
    container_of(feed, struct reader, feed)->again++;
}

static const struct feed_ops ops = {
    .send = send_frames, .busy = is_busy, .lost = on_lost, .begins_again = begins_again
};

static struct bytes *as_it_is(const struct rope *message, bool binary)
{
    (void)binary;
    return rope_join((struct slice){ 0 }, message, (struct slice){ 0 });
}

struct view view_of(enum encoding encoding, uint32_t fields)
{
    return (struct view){ .encoding = encoding,
                          .fields = fields | FIELDS_ALWAYS,
                          .wrap = as_it_is };
}

/* ---- created, destroyed ---- */

struct reader *reader_create_with(struct world *world, const struct view *wish)
{
    struct reader *reader = mem_new(struct reader);
    struct view *view = environment_view(world->env, wish);
    assert_non_null(view);
    reader->world = world;
    reader->room = SIZE_MAX;
    feed_init(&reader->feed, &ops, world->env, view);
    list_append(&world->readers, &reader->link);
    return reader;
}

struct reader *reader_create(struct world *world)
{
    struct view wish = view_of(ENCODING_JSON, FIELDS_ALL);
    return reader_create_with(world, &wish);
}

void reader_destroy(struct reader *reader)
{
    feed_finish(&reader->feed);
    forget_frames(reader);
    list_remove(&reader->link);
    free(reader->frames);
    free(reader);
}

/* ---- subscriptions ---- */

/* Comma-separated; their number. */
static size_t split_names(struct slice text, struct slice names[8])
{
    size_t count = 0;
    while (count < 8 && slice_split(&text, ',', &names[count]))
        count++;
    return count;
}

struct filter filter_about(const char *about)
{
    struct slice rest = slice_of(about), part = { 0 }, run = { 0 }, tags[8], tasks[8];
    struct run_filter wanted = { .is_test = -1, .tags = tags, .tasks = tasks };

    slice_split(&rest, ' ', &part);
    if (slice_starts(part, "run:"))
        run = slice_from(part, 4);
    else if (slice_starts(part, "batch:"))
        wanted.batch = slice_from(part, 6);
    else if (slice_starts(part, "tag:"))
        wanted.tag_count = split_names(slice_from(part, 4), tags);
    if (slice_starts(rest, "task:"))
        wanted.task_count = split_names(slice_from(rest, 5), tasks);
    wanted.every_tag = wanted.tag_count > 0;
    return filter_create(run, &wanted);
}

struct subscription *follow(struct reader *reader, int64_t id, const char *about,
                            uint64_t seq, uint64_t base)
{
    struct filter filter = filter_about(about);
    return feed_subscribe(&reader->feed, id, &filter, seq, base);
}

void unlisten(struct reader *reader, int64_t id)
{
    struct subscription *sub = feed_find(&reader->feed, id);
    assert_non_null(sub);
    feed_unsubscribe(&reader->feed, sub);
}

struct reader *subscribe(struct world *world, const char *about)
{
    struct reader *reader = reader_create(world);
    struct subscription *sub = follow(reader, 1, about, 0, 0);
    world_settle(world);
    assert_null(sub->own);
    forget_frames(reader);
    return reader;
}

/* ---- the socket ---- */

void stall(struct reader *reader)
{
    reader->stalled = true;
}

void drain_some(struct reader *reader, size_t frames)
{
    reader->stalled = false;
    reader->room = frames;
    feed_drained(&reader->feed);
    world_settle(reader->world);
}

void drain(struct reader *reader)
{
    drain_some(reader, SIZE_MAX);
}

/* ---- received frames ---- */

static void show_row(struct slice row, struct buf *out)
{
    struct scan_members elements = scan_members(row);
    struct slice id, version, fields, whole;
    scan_next_element(&elements, &id);
    scan_next_element(&elements, &version);
    scan_next_element(&elements, &fields);
    scan_string(id, out);
    buf_print(out, " v%.*s", SLICE_ARG(version));
    if (scan_next_element(&elements, &whole))
        buf_add_text(out, " whole");
}

void show_frame(const struct bytes *frame, struct buf *out)
{
    struct slice message = bytes_slice(frame), row;
    struct scan_members rows = scan_members(scan_member(message, "rows"));
    struct slice id = scan_member(message, "id");
    unsigned count = 0;

    assert_true(scan_is_json(message));
    if (id.len)
        buf_print(out, "rows %.*s: ", SLICE_ARG(id));
    for (; scan_next_element(&rows, &row); count++) {
        if (count)
            buf_add_text(out, ", ");
        show_row(row, out);
    }
    if (!count)
        buf_add_text(out, "nothing");
    if (scan_member(message, "more").len)
        buf_add_text(out, ", more");
}

static void print_frames(const struct reader *reader)
{
    struct buf shown = { 0 };
    print_error("the frames are:\n");
    for (size_t i = 0; i < reader->count; i++) {
        buf_clear(&shown);
        show_frame(reader->frames[i], &shown);
        print_error("    \"%.*s\"\n", SLICE_ARG(buf_slice(&shown)));
    }
    buf_finish(&shown);
}

void assert_frames_are(struct reader *reader, const char *const *expected, const char *file,
                       int line)
{
    struct buf shown = { 0 };
    bool same = true;
    size_t count = 0;

    for (; expected[count] && count < reader->count && same; count++) {
        buf_clear(&shown);
        show_frame(reader->frames[count], &shown);
        same = slice_is(buf_slice(&shown), expected[count]);
    }
    buf_finish(&shown);
    same = same && !expected[count] && count == reader->count;
    if (!same)
        print_frames(reader);
    _assert_true(same, "the frames are those expected", file, line);
    forget_frames(reader);
}

void forget_frames(struct reader *reader)
{
    for (size_t i = 0; i < reader->count; i++)
        bytes_unref(reader->frames[i]);
    reader->count = 0;
}
