/* otlp.h - reads OpenTelemetry's spans and logs (OTLP 1 in JSON).
 *
 *   {resourceSpans:[{resource, scopeSpans:[{spans:[…]}]}]} ─► otlp_next ─► one record
 *                                                          ─► otlp_read ─► an event
 *
 * A log becomes a separate event below the span in which it was written, as traces show it.
 * A record names its run in an attribute; a record without one is dropped. */
#pragma once

#include <stdint.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/json/scan.h"
#include "base/text.h"

enum {
    OTLP_RECORD_MAX = 128 * 1024, /* bytes as sent; a longer record loses its attributes */
    OTLP_SPAN_LEN = 16,
    OTLP_VALUE_DEPTH = 16,     /* of nested lists in an attribute */
    OTLP_STEPS_MAX = 10000,    /* resources, scopes and records per body */
    OTLP_COUNTED_MAX = 100000, /* the same, including those that are only counted */
};

/* Where a record comes from. */
struct otlp_facts {
    struct slice run, version, partial_of; /* without quotes */
    int64_t attempt;
    bool partial;
};

/* A position in a body. The body must stay valid. */
struct otlp {
    bool logs;
    unsigned steps;           /* of OTLP_COUNTED_MAX */
    bool cut;                 /* the body has more records than were counted */
    struct otlp_facts shared; /* facts of the resource, for all its records */
    /* found but not opened yet; absent: opened */
    struct slice body, resource, about, scope;
    struct scan_members resources, scopes, records;
    struct scan_members attributes; /* the resource's attributes that are not read yet */
};

/* Begins to read a body, which must be valid JSON. */
void otlp_begin(struct otlp *otlp, struct slice body, bool logs);

/* Finds the next record. Returns false at the end, and after OTLP_COUNTED_MAX steps, which
 * sets otlp->cut. If finding a record takes another call, returns true with an absent
 * record. Each call scans the body at most once, or reads a few of a resource's
 * attributes. */
bool otlp_next(struct otlp *otlp, struct slice *record);

/* Returns true if the record just found is beyond OTLP_STEPS_MAX, so that it may only be
 * counted. */
static inline bool otlp_is_beyond(const struct otlp *otlp)
{
    return otlp->steps > OTLP_STEPS_MAX;
}

struct trace_event {
    char span[OTLP_SPAN_LEN + 1];
    bool partial;       /* a span that has begun; a second event with its end follows */
    bool log;           /* not a span */
    int64_t started_ms; /* Unix */
    size_t number;      /* in order of arrival within its run; set by spans.h */
    struct bytes *json; /* {spanId, parentId?, message, at, ns, level, …} */
};

/* Converts a record to an event. Returns ERR_NOT_FOUND if it names no run, ERR_INVALID if
 * it is not a record. */
enum err otlp_read(const struct otlp *otlp, struct slice record, char run_id[ID_MAX],
                   struct trace_event *event);
