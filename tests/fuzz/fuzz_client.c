/* fuzz_client - bytes of a server as an answer or frames, whole and cut; or text as a URL.
 *
 * Whole and cut bytes must give the same result. The last two bits of the first byte choose
 * a response, a response to HEAD, frames or a URL; all its bits give the size of the pieces
 * in the second round. In a third round every byte comes alone. */
#include <stdlib.h>

#include "net/client/answer.h"
#include "net/client/url.h"
#include "net/http/ws_input.h"
#include "tests/fuzz/judge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 16 * 1024, AN_ANSWER = 0, ANSWER_TO_HEAD = 1, FRAMES = 2, A_URL = 3 };

/* the results of this round and of the one before */
static struct buf said, before;

typedef void read_fn(struct slice bytes, size_t piece, int kind);

/* ---- responses ---- */

static void on_piece(struct answer *answer, struct slice piece)
{
    (void)answer;
    buf_add(&said, piece);
}

static void say_head(const struct answer *answer)
{
    buf_print(&said, "%d %d %d ", answer->status, answer->keeps_alive, answer->until_end);
    for (size_t i = 0; i < answer->header_count; i++) {
        buf_add(&said, answer->headers[i].name);
        buf_add_char(&said, '=');
        buf_add(&said, answer->headers[i].value);
        buf_add_char(&said, ' ');
    }
    if (answer->status < 100 || answer_header(answer, "no such name").ptr)
        abort();
}

/* Returns false when nothing more is read. */
static bool take_answer(struct answer *answer, struct slice part)
{
    enum answer_event event;
    do {
        event = answer_feed(answer, &part);
        if (event == ANSWER_HEAD)
            say_head(answer);
    } while (event == ANSWER_HEAD);
    return event == ANSWER_MORE;
}

static void read_answer(struct slice bytes, size_t piece, int kind)
{
    struct answer answer = { 0 };
    bool more = true;
    answer_begin(&answer);
    answer.on_piece = on_piece;
    answer.is_for_head = kind == ANSWER_TO_HEAD;
    while (bytes.len && more) {
        struct slice part = { bytes.ptr, piece < bytes.len ? piece : bytes.len };
        bytes = slice_from(bytes, part.len);
        more = take_answer(&answer, part);
    }
    enum answer_event event = answer_end(&answer);
    buf_print(&said, "|%d %s", (int)event, answer.fault ? answer.fault : "-");
    answer_finish(&answer);
}

/* ---- frames ---- */

static void say_event(struct ws_input *input, enum ws_event event)
{
    int code = 0;
    buf_print(&said, "%d(", (int)event);
    if (event == WS_MESSAGE)
        buf_add(&said, buf_slice(&input->message));
    if (event == WS_PING || event == WS_PONG)
        buf_add(&said, (struct slice){ (const char *)input->control, input->control_len });
    if (event == WS_CLOSE)
        ws_input_close_code(input, &code);
    buf_print(&said, ")%d %d", code, input->code);
}

static void read_frames(struct slice bytes, size_t piece, int kind)
{
    struct ws_input *input = ws_input_create();
    (void)kind;
    input->from_server = input->takes_binary = true;
    input->message_max = 1000;
    input->fragments_max = 8;
    while (bytes.len && !input->code) {
        struct slice part = { bytes.ptr, piece < bytes.len ? piece : bytes.len };
        bytes = slice_from(bytes, part.len);
        while (part.len && !input->code) {
            enum ws_event event = ws_input_next(input, &part);
            if (event != WS_MORE)
                say_event(input, event);
        }
    }
    ws_input_destroy(input);
}

/* ---- URLs ---- */

/* A valid URL can be written, and reads back as the same. */
static void read_url(struct slice text)
{
    static const char *const schemes[] = { "http://", "https://", "ws://", "wss://" };
    struct url url = { 0 }, again = { 0 };
    struct failure why;
    struct buf out = { 0 };
    if (url_read(text, &url, &why))
        return;
    buf_add_text(&out, schemes[url.scheme]);
    url_add_authority(&out, &url);
    buf_add_text(&out, url.prefix);
    if (url_read(buf_slice(&out), &again, &why) || url.port != again.port ||
        strcmp(url.host, again.host) != 0 || strcmp(url.prefix, again.prefix) != 0 ||
        url.is_ip != again.is_ip || url.is_ip6 != again.is_ip6)
        abort();
    buf_finish(&out);
}

static void compare(struct slice bytes, size_t piece, int kind, read_fn *read)
{
    const size_t pieces[] = { INPUT_MAX, piece + 1, 1 };
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        judge_rest();
        buf_clear(&said);
        read(bytes, pieces[i], kind);
        if (i && !slice_equal(buf_slice(&said), buf_slice(&before)))
            abort();
        buf_clear(&before);
        buf_add(&before, buf_slice(&said));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > INPUT_MAX)
        return 0;
    struct slice bytes = { (const char *)data + 1, size - 1 };
    int kind = data[0] & 3;
    if (kind == A_URL)
        read_url(bytes);
    else
        compare(bytes, data[0] >> 2, kind, kind == FRAMES ? read_frames : read_answer);
    buf_finish(&said);
    buf_finish(&before);
    return 0;
}
