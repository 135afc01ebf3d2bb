/* intake.c - pieces through the validator into one buffer. */
#include "api/intake.h"

#include "base/mem.h"
#include "base/scan.h"

struct intake {
    struct scan scan;
    struct buf text;
};

void intake_free(struct intake *intake)
{
    if (!intake)
        return;
    buf_finish(&intake->text);
    free(intake);
}

static struct intake *take_out(struct api_call *call)
{
    struct intake *intake = call->state;
    call->state = NULL;
    call->on_gone = NULL;
    return intake;
}

/* The peer left in the middle of its body. */
static void on_gone(struct api_call *call)
{
    intake_free(take_out(call));
    api_reply_empty(call, 499);
}

enum err intake_take(struct api_call *call, struct slice piece)
{
    struct intake *intake = call->state;
    if (!intake) {
        intake = call->state = mem_new(struct intake);
        call->on_gone = on_gone;
        scan_init(&intake->scan);
    }
    if (scan_feed(&intake->scan, piece)) {
        explain(&call->why, ERR_INVALID, "Invalid JSON at byte %zu", intake->scan.offset);
        intake_free(take_out(call));
        return ERR_INVALID;
    }
    buf_add(&intake->text, piece);
    return OK;
}

enum err intake_end(struct api_call *call, struct intake **intake, struct slice *object)
{
    struct intake *taken = take_out(call);
    const char *wrong = NULL;

    if (!taken)
        return explain(&call->why, ERR_INVALID, "Request body is empty");
    if (scan_finish(&taken->scan))
        wrong = "Invalid JSON: the body ends too early";
    else if (scan_type(buf_slice(&taken->text)) != SCAN_OBJECT)
        wrong = "Validation error: the body must be a JSON object";
    if (wrong) {
        intake_free(taken);
        return explain(&call->why, ERR_INVALID, "%s", wrong);
    }
    *intake = taken;
    *object = buf_slice(&taken->text);
    return OK;
}

enum err intake_drop(struct api_call *call, struct slice piece)
{
    (void)call;
    (void)piece;
    return OK;
}
