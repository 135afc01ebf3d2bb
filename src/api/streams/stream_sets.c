/* stream_sets.c - the streams of each environment, and the encoding of chunks.
 *
 * An output stream uses the first format of the SDKs, with one chunk per event:
 *
 *      id: 1732170000000-7          its time and number: a gap shows what was discarded
 *      data: {"token":"Hello"}
 *
 * An input stream uses the second one, because tasks read it by sequence number:
 *
 *      id: 7
 *      event: batch
 *      data: {"records":[{"seq_num":7,"timestamp":…,"body":"…","headers":[]}]} */
#include "api/streams/stream_sets.h"

#include <inttypes.h>

#include "api/request/quotas.h"
#include "base/json/scan.h"
#include "base/mem.h"

enum {
    DROPPED_AT_ONCE = 64,
    FORGOTTEN_AT_ONCE = 64,
};

/* ---- the sets ---- */

struct stream_set *streams_of(struct streams *streams, struct environment *env)
{
    void **set = slots_at(&streams->sets, env->number);
    if (!*set) {
        *set = mem_new(struct stream_set);
        stream_set_init(*set, streams->budget, streams->stream_bytes,
                        loop_wall_ms(streams->loop));
        ((struct stream_set *)*set)->quota = &quotas_of(streams->quotas, env)->streams;
    }
    return *set;
}

/* Updates the memory counts of the environment, its project and the gateway. had: the
 * bytes of the set before the change. */
static void count_bytes(const struct stream_set *set, size_t had)
{
    if (set->bytes > had)
        quota_take(set->quota, set->bytes - had);
    else
        quota_release(set->quota, had - set->bytes);
}

/* Discards the oldest chunk of the set. */
static void drop_of(struct stream_set *set)
{
    size_t had = set->bytes;
    stream_set_drop(set);
    count_bytes(set, had);
}

/* A set may have a million chunks, each with its own memory. */
bool streams_forget(struct streams *streams, const struct environment *env,
                    struct timeslice *timeslice)
{
    struct stream_set *set = slots_get(&streams->sets, env->number);
    if (!set)
        return true;
    while (set->bytes) {
        if (!timeslice_left_every(timeslice, FORGOTTEN_AT_ONCE))
            return false;
        drop_of(set);
    }
    stream_set_finish(set);
    free(set);
    *slots_at(&streams->sets, env->number) = NULL;
    return true;
}

enum err streams_check_key(struct slice key, struct failure *why)
{
    bool right = key.len && key.len <= RUN_STREAM_KEY_MAX;
    for (size_t i = 0; i < key.len && right; i++)
        right = (unsigned char)key.ptr[i] >= ' ' && key.ptr[i] != 0x7f;
    return right ? OK
                 : explain(why, ERR_INVALID,
                           "The key of a stream must have 1 to %d bytes and no control "
                           "characters",
                           RUN_STREAM_KEY_MAX);
}

enum err streams_unknown(struct failure *why)
{
    return explain(why, ERR_NOT_FOUND, "Run not found");
}

/* ---- chunks ---- */

static const char *find_byte(const char *from, const char *end, char byte)
{
    const char *found = from < end ? memchr(from, byte, (size_t)(end - from)) : NULL;
    return found ? found : end;
}

/* Returns the end of the line that begins at from. Megabytes without a line break are
 * skipped fast: *feed, NULL at first, caches the next line feed, so each byte is examined
 * at most twice. */
static const char *end_of_line(const char *from, const char *end, const char **feed)
{
    if (!*feed || *feed < from)
        *feed = find_byte(from, end, '\n');
    return find_byte(from, *feed, '\r');
}

/* Adds the data as lines of an event. A line ends at a line feed, a carriage return, or
 * both, so none of them may be inside one. */
static void add_data_lines(struct buf *out, struct slice data)
{
    const char *at = data.ptr, *end = data.ptr + data.len, *feed = NULL;
    bool more = true;
    while (more) {
        const char *stop = end_of_line(at, end, &feed);
        buf_add_text(out, "data: ");
        buf_add(out, (struct slice){ at, (size_t)(stop - at) });
        buf_add_char(out, '\n');
        more = stop < end;
        at = stop + more;
        if (more && *stop == '\r' && at < end && *at == '\n')
            at++;
    }
    buf_add_char(out, '\n');
}

static void encode_output(struct buf *out, int64_t at_ms, uint64_t index, struct slice data)
{
    buf_add_text(out, "id: ");
    buf_add_number(out, at_ms);
    buf_add_char(out, '-');
    buf_add_number(out, (int64_t)index);
    buf_add_char(out, '\n');
    add_data_lines(out, data);
}

/* Encodes a record of an input. Its body is a JSON text inside a string. The SDK parses
 * a string in the body once more, so a string is encoded twice and other data once. */
static void encode_input(struct buf *out, int64_t at_ms, uint64_t index, struct slice data)
{
    struct buf body = { 0 };
    char id[ID_MAX];
    text_make_id("inp", at_ms, id);
    buf_add_text(&body, "{\"data\":");
    if (data.ptr[0] == '"')
        buf_add_json(&body, data);
    else
        buf_add(&body, data);
    buf_print(&body, ",\"id\":\"%s\"}", id);
    buf_print(out,
              "id: %" PRIu64 "\nevent: batch\n"
              "data: {\"records\":[{\"seq_num\":%" PRIu64 ",\"timestamp\":%" PRId64
              ",\"body\":",
              index, index, at_ms);
    buf_add_json(out, buf_slice(&body));
    buf_add_text(out, ",\"headers\":[]}]}\n\n");
    buf_finish(&body);
}

/* Decodes the data of a record that encode_input encoded. */
static bool decode_input(struct slice frame, struct buf *data)
{
    const char *json = memchr(frame.ptr, '{', frame.len);
    struct slice event = slice_trim(slice_from(frame, (size_t)(json - frame.ptr)));
    struct scan_members records = scan_members(scan_member(event, "records"));
    struct slice record, value;
    struct buf body = { 0 };
    bool is_record = scan_next_element(&records, &record) &&
                     scan_string(scan_member(record, "body"), &body);
    if (is_record) {
        value = scan_member(buf_slice(&body), "data");
        if (scan_type(value) == SCAN_STRING)
            scan_string(value, data);
        else
            buf_add(data, value);
    }
    buf_finish(&body);
    return is_record;
}

bool streams_find_input(struct streams *streams, struct environment *env, struct slice run,
                        struct slice key, int64_t from, int64_t known_ms, struct buf *data)
{
    const struct stream *stream =
        stream_find(streams_of(streams, env), STREAM_INPUT, run, key);
    if (!stream)
        return false;
    uint64_t place = known_ms < stream->created_ms ? 0 : (uint64_t)from;
    struct bytes *frame = stream_read(stream, &place);
    return frame && decode_input(bytes_slice(frame), data);
}

/* Returns the set that must discard chunks when the quota of a project or the gateway is
 * full. */
static struct stream_set *find_largest(const struct streams *streams,
                                       const struct quota *full)
{
    struct stream_set *largest = NULL;
    uint32_t at = 0;
    for (struct stream_set *set; (set = slots_next(&streams->sets, &at));)
        if (quota_is_inside(set->quota, full) &&
            (!largest || quota_gives_before(set->quota, largest->quota, full)))
            largest = set;
    return largest;
}

/* Discards chunks of the largest set until the quota is within its limit. The largest set
 * is searched once for several chunks: one long chunk may displace thousands of short ones,
 * and there may be thousands of environments. */
static void trim(struct streams *streams, const struct quota *quota)
{
    while (quota->used > quota->limit) {
        struct stream_set *largest = find_largest(streams, quota);
        for (int i = 0; i < DROPPED_AT_ONCE && quota->used > quota->limit; i++)
            drop_of(largest);
    }
}

/* Trims the project, then the gateway. The branches of a project together have
 * no limit below the project's. */
static void trim_around(struct streams *streams, const struct stream_set *set)
{
    const struct quota *all = &streams->quotas->streams;
    trim(streams, quota_below(set->quota, all));
    trim(streams, all);
}

void streams_append(struct streams *streams, struct stream_set *set, struct stream *stream,
                    enum stream_kind kind, struct slice data)
{
    static struct buf scratch;
    size_t had = set->bytes;
    int64_t at_ms = stream_time(stream, loop_wall_ms(streams->loop));
    buf_clear(&scratch);
    if (kind == STREAM_OUTPUT)
        encode_output(&scratch, at_ms, stream->next, data);
    else
        encode_input(&scratch, at_ms, stream->next, data);
    stream_append(set, stream, buf_to_bytes(&scratch), at_ms);
    count_bytes(set, had);
    trim_around(streams, set);
    if (scratch.capacity > 64 << 10)
        buf_finish(&scratch);
    if (list_empty(&stream->waiting))
        return;
    list_move_all(&streams->ready, &stream->waiting);
    loop_wake(streams->loop, &streams->flusher);
}
