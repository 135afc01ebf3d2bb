/* build_output.h - what the children of a build write: all of it on its way to the gateway, and
 * the end of it for the reason of a failure.
 *
 *   children ─► waiting, until the next heartbeat takes it ─► gateway
 *          └──► the last lines of standard error
 *
 * What is written faster than heartbeats take it is left out, and that is said. */
#pragma once

#include "base/buf.h"
#include "os/process/tail.h"

enum { OUTPUT_PIECE_MAX = 60 * 1024 }; /* bytes of the log that one heartbeat carries */

struct build_output {
    struct buf waiting;
    uint64_t left_out; /* bytes, since the last that was taken */
    struct tail errors;
};

void build_output_init(struct build_output *output);
void build_output_finish(struct build_output *output);

void build_output_add(struct build_output *output, struct slice text);

/* What a child wrote to standard error: as build_output_add, and kept for the reason. */
void build_output_add_error(struct build_output *output, struct slice text);

/* A child begins: what others wrote is not why it fails. */
void build_output_forget_errors(struct build_output *output);

/* Takes what waits, as far as one heartbeat carries it, in UTF-8; NULL: nothing does. */
struct bytes *build_output_take(struct build_output *output);

/* Appends text in UTF-8: what is none is shown as question marks. */
void build_output_clean(struct slice text, struct buf *out);

/* The last lines, at most 50 and 4 KiB; borrowed until the next call. */
struct slice build_output_errors(struct build_output *output);
