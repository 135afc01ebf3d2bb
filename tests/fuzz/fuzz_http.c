/* fuzz_http - any bytes as HTTP/1.1: whole and cut, they must get the same response.
 *
 * The first byte of the input is the size of the pieces in the second round. In a third
 * round every byte comes alone. */
#include <stdlib.h>

#include "base/mem.h"
#include "net/http/http_reply.h"
#include "tests/support/world/net_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct later {
    struct deferred deferred;
    struct exchange *x;
};

static struct net_fuzz fuzz;

static void say(struct exchange *x)
{
    struct buf out = { 0 };
    buf_print(&out, "%d ", (int)x->method);
    buf_add(&out, x->path);
    buf_add_char(&out, '?');
    buf_add(&out, x->query);
    buf_add_char(&out, ' ');
    buf_add(&out, x->body);
    for (size_t i = 0; i < x->header_count; i++) {
        buf_add(&out, x->headers[i].name);
        buf_add_char(&out, '=');
        buf_add(&out, x->headers[i].value);
    }
    http_reply(x, 200, (struct slice){ 0 }, buf_slice(&out));
    buf_finish(&out);
}

static void on_later(struct deferred *deferred)
{
    struct later *later = container_of(deferred, struct later, deferred);
    say(later->x);
    free(later);
}

static void on_head(void *owner, struct exchange *x)
{
    (void)owner;
    x->stream_body = slice_starts(x->path, "/s");
    x->body_limit = x->stream_body ? 1 << 20 : 100;
    if (slice_starts(x->path, "/e"))
        http_reply_refusal(x, (struct http_fault){ 401, "early" }, (struct slice){ 0 });
}

static void on_body(void *owner, struct exchange *x, struct slice piece)
{
    (void)owner;
    if (memchr(piece.ptr, '!', piece.len))
        http_reply_refusal(x, (struct http_fault){ 422, "in the middle" },
                           (struct slice){ 0 });
}

static void on_request(void *owner, struct exchange *x)
{
    (void)owner;
    if (!slice_starts(x->path, "/l")) {
        say(x);
        return;
    }
    struct later *later = mem_new(struct later);
    later->x = x;
    later->deferred.fn = on_later;
    loop_defer(fuzz.world.loop, &later->deferred);
}

static void on_gone(void *owner, struct exchange *x)
{
    (void)owner;
    if (!slice_starts(x->path, "/l"))
        http_reply(x, 500, (struct slice){ 0 }, SLICE("gone"));
}

static void run(struct slice bytes, size_t piece)
{
    net_fuzz_begin(&fuzz);
    net_fuzz_feed(&fuzz, bytes, piece);
    net_fuzz_end(&fuzz);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf whole = { 0 };
    if (!fuzz.world.server)
        net_fuzz_open(&fuzz, (struct server_options){
                                 .handler = { .on_head = on_head,
                                              .on_body = on_body,
                                              .on_request = on_request,
                                              .on_gone = on_gone },
                                 .target_max = 100,
                                 .head_bytes_max = 300,
                                 .headers_max = 10,
                             });
    if (size < 2 || size > 4096)
        return 0;
    struct slice bytes = { (const char *)data + 1, size - 1 };
    run(bytes, 0);
    buf_add(&whole, buf_slice(&fuzz.answer));
    run(bytes, data[0] ? data[0] : 1);
    if (!slice_equal(buf_slice(&whole), buf_slice(&fuzz.answer)))
        abort();
    run(bytes, 1);
    if (!slice_equal(buf_slice(&whole), buf_slice(&fuzz.answer)))
        abort();
    buf_finish(&whole);
    return 0;
}
