/* fill.h - creates runs for other measurements, as fast as the server accepts them.
 *
 * Runs are created in batches, because the response contains every id. They are spread
 * evenly over tasks and tags: run i has task bench-<i mod tasks> and tag <prefix>-<i mod
 * tags>. The prefix is random, so that one measurement never sees the runs of another. */
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
    FILL_BATCH = 500, /* items, and below a megabyte: the maximum of one batch */
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

/* One tag, one task, payloads of 16 bytes, and a delay of a day so that no worker starts
 * them. */
void fill_init(struct fill *fill, const struct options *options, struct report *report);
void fill_finish(struct fill *fill);

/* Creates runs until there are `count` of them. */
void fill_to(struct fill *fill, size_t count);

/* Writes the JSON of one batch item with metadata {"n":n}; without metadata if n is 0. */
void fill_add_item(const struct fill *fill, size_t number, int64_t n, struct buf *out);

/* Writes a JSON string of this many bytes or slightly less: unit, repeated. */
void fill_add_text(struct buf *out, const char *unit, size_t bytes);

/* The same with a letter. */
void fill_add_payload(struct buf *out, size_t bytes);

/* Writes the tag of run number. */
void fill_tag(const struct fill *fill, size_t number, char out[FILL_TAG_SIZE]);

size_t fill_batch_count(const struct fill *fill);
