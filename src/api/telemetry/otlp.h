/* otlp.h - spans and logs as OpenTelemetry sends them, OTLP 1 in JSON.
 *
 *   {resourceSpans:[{resource, scopeSpans:[{spans:[…]}]}]} ─► otlp_next ─► one record
 *                                                          ─► otlp_read ─► what is kept
 *
 * A log becomes an event of its own below the span it was written in, as a trace shows it.
 * A record names its run by an attribute; what names none is nobody's. */
#pragma once

#include <stdint.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/json/scan.h"
#include "base/text.h"

enum {
    OTLP_RECORD_MAX =
        128 * 1024, /* bytes as sent; of a longer one the attributes are left out */
    OTLP_SPAN_LEN = 16,
    OTLP_VALUE_DEPTH = 16,     /* of an attribute's lists */
    OTLP_STEPS_MAX = 10000,    /* resources, scopes and records of a body together */
    OTLP_COUNTED_MAX = 100000, /* the same, with those that are only counted */
};

/* Where a record comes from. */
struct otlp_facts {
    struct slice run, version, partial_of; /* inside the quotes */
    int64_t attempt;
    bool partial;
};

/* A place in a body; the body stays while it is used. */
struct otlp {
    bool logs;
    unsigned steps;           /* of OTLP_COUNTED_MAX */
    bool cut;                 /* the body has more than was counted */
    struct otlp_facts shared; /* what the resource says of all its records */
    struct slice body, resource, about, scope; /* not opened yet; absent: opened */
    struct scan_members resources, scopes, records;
    struct scan_members attributes; /* of the resource, not read yet */
};

/* Of text that is valid JSON. */
void otlp_begin(struct otlp *otlp, struct slice body, bool logs);

/* Returns false at the end, and after OTLP_COUNTED_MAX steps, which sets otlp->cut. Returns true
 * without a record, which is absent then, while finding one takes another call. Each call walks
 * over the body at most once, or reads a few of a resource's attributes. */
bool otlp_next(struct otlp *otlp, struct slice *record);

/* Returns true if the record that otlp_next found lies beyond OTLP_STEPS_MAX: it may only be
 * counted. */
static inline bool otlp_is_beyond(const struct otlp *otlp)
{
    return otlp->steps > OTLP_STEPS_MAX;
}

struct trace_event {
    char span[OTLP_SPAN_LEN + 1];
    bool partial;       /* a span that has begun; a second one says how it ended */
    bool log;           /* not a span */
    int64_t started_ms; /* Unix */
    size_t number;      /* of those of its run, as they came; the keeper's (spans.h) */
    struct bytes *json; /* {spanId, parentId?, message, at, ns, level, …} */
};

/* ERR_NOT_FOUND: it names no run. ERR_INVALID: it is not a record. */
enum err otlp_read(const struct otlp *otlp, struct slice record, char run_id[ID_MAX],
                   struct trace_event *event);
