/* poll.h - one long poll of a table of runs: what it asks for, and its feed.
 *
 *   GET ?offset=-1                  snapshot, in pages          ─► offset, handle
 *   GET ?offset=7_7&handle=…        what changed since, at once
 *   GET ?offset=7_7&…&live=true     the same, or held until something does
 *
 * The position is the client's: offset is <seen>_<base> of a feed, handle is
 * <epoch>-<kind>-<floor>. Between two polls the server keeps nothing of a subscriber. */
#pragma once

#include "api/batches/batch.h"
#include "api/request/call.h"
#include "api/request/connection_limit.h"
#include "core/live/feed.h"
#include "core/wire/view.h"

enum { POLL_BURST_MAX = 64 }; /* frames of one visit whose body is shared */

/* Several changes of one turn: those who waited at the same place with the same view share
 * their body too. */
struct poll_burst {
    struct bytes *frames[POLL_BURST_MAX];
    size_t count;
    struct bytes *body;
};

struct long_polls {
    struct list echoes; // echo::link
    uint32_t kind;      /* of their timers */
    struct poll_burst bursts[VIEWS_MAX];
};

struct poll {
    struct feed feed;
    struct timer timer;       /* until it is answered idle */
    struct deferred deferred; /* finishes the feed, which cannot be done inside a visit */
    struct long_polls *polls;
    struct api_call *call; /* NULL: answered */
    struct filter filter;  /* until the feed has it */
    char kind;             /* 'r', 't' or 'b' */
    bool live;             /* waits for a change */
    bool purged;           /* retention has removed what the client may have missed */
    bool old_names;        /* of headers: clients before x-trigger-electric-version */
    bool started;          /* the feed is there */
    struct seat seat;      /* while it is live */
    int64_t floor;         /* creation, Unix ms; 0: none */
    uint64_t seen, base;   /* the client's position; 0, 0: from scratch */
    uint32_t skipped;      /* columns */
    uint32_t unwanted;     /* of them: by the query, not by the token */
    struct rope rows;      /* of a walk, separated by commas */
    const char *bad_parameter, *bad_reason; /* of a query that cannot be read */
    struct run_read run;
    struct batch_load batch;
};

/* Reads the request into a zeroed poll: filter, position, columns. ERR_INVALID. */
enum err poll_read(struct poll *poll);

/* The headers that the client needs to go on from here. */
void poll_add_headers(struct poll *poll, uint64_t seen, uint64_t base, bool complete);
