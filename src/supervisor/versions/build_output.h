/* build_output.h - the output of a build's children, for the gateway and for error
 * messages.
 *
 *   children ─► waiting, until the next heartbeat takes it ─► gateway
 *          └──► the last lines of standard error
 *
 * Output that arrives faster than heartbeats take it is dropped; the log then says how
 * much. */
#pragma once

#include "base/buf.h"
#include "os/process/tail.h"

enum { OUTPUT_PIECE_MAX = 60 * 1024 }; /* bytes of the log per heartbeat */

struct build_output {
    struct buf waiting;
    uint64_t left_out; /* bytes dropped since the last piece was taken */
    struct tail errors;
};

void build_output_init(struct build_output *output);
void build_output_finish(struct build_output *output);

void build_output_add(struct build_output *output, struct slice text);

/* Adds a child's standard error: like build_output_add, but also kept for the error
 * message. */
void build_output_add_error(struct build_output *output, struct slice text);

/* Call it when a child begins, because earlier children's lines do not explain its
 * failure. */
void build_output_forget_errors(struct build_output *output);

/* Takes the next piece for a heartbeat, in UTF-8. Returns NULL if there is none. */
struct bytes *build_output_take(struct build_output *output);

/* Appends text as UTF-8; invalid bytes become question marks. */
void build_output_clean(struct slice text, struct buf *out);

/* Returns the last lines, at most 50 and 4 KiB; borrowed until the next call. */
struct slice build_output_errors(struct build_output *output);
