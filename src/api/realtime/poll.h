/* poll.h - one long poll for a table of runs: its request, and its feed.
 *
 *   GET ?offset=-1                  snapshot, in pages          ─► offset, handle
 *   GET ?offset=7_7&handle=…        changes since then, at once
 *   GET ?offset=7_7&…&live=true     the same, or held until something changes
 *
 * The client keeps its position: offset is the <seen>_<base> of a feed (core/live/feed.h),
 * handle is <epoch>-<kind>-<floor>. Between two polls the server keeps nothing for a
 * subscriber. */
#pragma once

#include "api/batches/batch.h"
#include "api/request/call.h"
#include "api/request/connection_limit.h"
#include "core/live/feed.h"
#include "core/wire/view.h"

enum { POLL_BURST_MAX = 64 }; /* max frames of one visit whose joined body is shared */

/* Several changes of one turn, joined into one body. Polls that waited at the same position
 * with the same view share it. */
struct poll_burst {
    struct bytes *frames[POLL_BURST_MAX];
    size_t count;
    struct bytes *body;
};

struct long_polls {
    struct list kept_views; // kept_view::link
    uint32_t kind;          /* timer kind of polls */
    struct poll_burst bursts[VIEWS_MAX];
};

struct poll {
    struct feed feed;
    struct timer timer;       /* until the poll ends without changes */
    struct deferred deferred; /* finishes the feed, which must not happen during a visit */
    struct long_polls *polls;
    struct api_call *call; /* NULL: it has its reply */
    struct filter filter;  /* empty once the feed has it */
    char kind;             /* 'r': a run, 't': tags, 'b': a batch */
    bool live;             /* held until something changes */
    /* The client must start over: its position is of another history, or retention has removed
     * runs whose end it may have missed. */
    bool refetches;
    bool old_names;      /* header names for clients before x-trigger-electric-version */
    bool started;        /* the feed is initialized */
    struct seat seat;    /* taken while it is live */
    int64_t floor;       /* least creation time of runs, Unix ms; 0: any */
    uint64_t seen, base; /* the client's position; 0, 0: none yet */
    uint32_t skipped;    /* columns to leave out */
    uint32_t unwanted;   /* those that the query skips, not the token */
    struct rope rows;    /* of a walk, separated by commas */
    const char *bad_parameter, *bad_reason; /* of an invalid query */
    struct run_read run;
    struct batch_load batch;
};

/* Reads the request into a zeroed poll: filter, position and columns. Returns ERR_INVALID
 * with bad_parameter and bad_reason. */
enum err poll_read(struct poll *poll);

/* Adds the headers that the client needs to continue from here. */
void poll_add_headers(struct poll *poll, uint64_t seen, uint64_t base, bool complete);
