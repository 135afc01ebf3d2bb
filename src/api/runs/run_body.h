/* run_body.h - a run as the management API shows it.
 *
 *   item      in lists, and as a relative of another run
 *   whole     what retrieve answers
 *   result    what it ended with, its output as a text or as a value
 *
 * Written straight into a buffer: payload, output and metadata keep the bytes that the user
 * sent. A field that is unset is left out, never null. Into the buffer of a rope they come by
 * reference when they are long. */
#pragma once

#include "base/buf.h"
#include "runcast/run.h"

/* The environment that a list item names. */
struct run_place {
    struct slice id, slug;
    struct slice user; /* of dev; absent elsewhere */
};

void run_body_item(const struct run *run, enum vocabulary vocabulary,
                   const struct run_place *place, struct buf *out);

/* What a run is shown with. */
struct run_details {
    const struct run *root, *parent; /* NULL: none */
    const struct run *children;
    size_t child_count;
    struct slice payload_url, output_url; /* of application/store; absent: none */
    struct slice schedule;                /* JSON; empty: none */
    struct slice waiting;                 /* JSON; empty: it waits for nothing */
};

void run_body_whole(const struct run *run, enum vocabulary vocabulary,
                    const struct run_details *details, struct buf *out);

/* Of a final run; its output is a text, which holds whatever its type says. */
void run_body_result(const struct run *run, struct buf *out);

/* The same with the output as the value that retrieve shows; of application/store the url. */
void run_body_result_value(const struct run *run, struct slice url, struct buf *out);

/* The metadata as an object; {} when there is none. */
struct slice run_body_metadata(const struct run *run);
