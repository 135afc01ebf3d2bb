/* fill.h - makes runs for the other measurements, as fast as the server takes them.
 *
 * Runs come in batches, because their reply names every id. They are spread evenly over
 * tasks and tags: run i is of task bench-<i mod tasks> and has the tag <prefix>-<i mod
 * tags>. The prefix is drawn, so that one measurement never meets the runs of another. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "http_client.h"
#include "options.h"
#include "report.h"

enum {
    FILL_ID_SIZE = 48,
    FILL_TAG_SIZE = 40,
    FILL_BATCH = 500, /* items, and below a megabyte: what one batch may hold */
};

struct fill_id {
    char text[FILL_ID_SIZE];
};

struct fill {
    const struct options *options;
    struct report *report;
    size_t tags, tasks;
    size_t payload_bytes;
    const char *delay; /* "": queued at once */
    char prefix[16];

    size_t count; /* of runs that exist */
    struct fill_id *ids;
    struct fill_id *batches; /* of FILL_BATCH runs each, in order */
};

/* One tag, one task, payloads of 16 bytes, delayed by a day: so nobody starts them. */
void fill_init(struct fill *fill, const struct options *options, struct report *report);
void fill_finish(struct fill *fill);

/* Makes runs until there are count of them. */
void fill_to(struct fill *fill, size_t count);

/* Writes the JSON of one batch item with metadata {"n":n}, or without any if n is 0. */
void fill_add_item(const struct fill *fill, size_t number, int64_t n, struct buf *out);

/* Writes a JSON string of so many bytes, or a little less: unit over and over. */
void fill_add_text(struct buf *out, const char *unit, size_t bytes);

/* The same of a letter. */
void fill_add_payload(struct buf *out, size_t bytes);

/* The tag of run number, as text. */
void fill_tag(const struct fill *fill, size_t number, char out[FILL_TAG_SIZE]);

size_t fill_batch_count(const struct fill *fill);
