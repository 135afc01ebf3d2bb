/* run_body.h - writes a run as the management API shows it.
 *
 *   item      in lists, and as a relative of another run
 *   whole     the response of retrieve
 *   result    how the run ended, with its output as a text or as a value
 *
 * Each appends to a buffer. Payload, output and metadata keep the bytes that the user
 * sent. An unset field is omitted, never null. If the buffer belongs to a rope, long
 * values are added by reference. */
#pragma once

#include "base/buf.h"
#include "runcast/run.h"

/* The environment that a list item names. */
struct run_place {
    struct slice id, slug;
    struct slice user; /* of a dev environment; absent in others */
};

void run_body_item(const struct run *run, enum vocabulary vocabulary,
                   const struct run_place *place, struct buf *out);

/* Additional data that run_body_whole shows. */
struct run_details {
    const struct run *root, *parent; /* NULL: none */
    const struct run *children;
    size_t child_count;
    /* for packets of type application/store; absent: none */
    struct slice payload_url, output_url;
    struct slice schedule; /* JSON; empty: none */
    struct slice waiting;  /* JSON; empty: the run waits for nothing */
    bool hides_limits;     /* leaves out the concurrencyKey and the limits */
};

void run_body_whole(const struct run *run, enum vocabulary vocabulary,
                    const struct run_details *details, struct buf *out);

/* Appends the result of a final run. Its output is written as a text, even if it is an
 * application/store name. */
void run_body_result(const struct run *run, struct buf *out);

/* The same with the output as a value, as retrieve shows it. url: for an output of type
 * application/store. */
void run_body_result_value(const struct run *run, struct slice url, struct buf *out);

/* Returns the metadata as an object; {} if there is none. */
struct slice run_body_metadata(const struct run *run);
