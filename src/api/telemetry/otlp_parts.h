/* otlp_parts.h - divides an OTLP body into parts while it arrives, so that a long one needs
 * little memory.
 *
 *   {resourceLogs:[{resource, scopeLogs:[{scope, logRecords:[a, b, c, d]}]}]}
 *     ─► {resourceLogs:[{resource, scopeLogs:[{scope, logRecords:[a, b]}]}]}
 *     ─► {resourceLogs:[{resource, scopeLogs:[{scope, logRecords:[c, d]}]}]}
 *
 * A part ends after a record. Only brackets and strings are looked at: whether a part is
 * JSON is the caller's to check.
 *
 * A resource or scope that follows its records is only in the last part, so the records of
 * earlier parts are read without its attributes. OpenTelemetry's exporters write it first,
 * in the order of the fields' numbers, and waiting for it would need memory for the whole
 * body. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

enum {
    OTLP_PARTS_DEPTH = 6,        /* brackets around a record */
    OTLP_PART_BYTES = 512 << 10, /* of records, after which a part ends */
    OTLP_ITEM_MAX = 4 << 20,     /* bytes of a record */
    OTLP_AROUND_MAX = 512 << 10, /* bytes of everything around records */
};

struct otlp_parts {
    struct buf text;   /* the part that is being collected */
    struct buf around; /* the same without its records */
    size_t whole;      /* length of text up to the end of the last whole record */
    size_t skipped;    /* records that were too long */
    unsigned depth;    /* of brackets */
    char open[OTLP_PARTS_DEPTH];
    bool in_string, after_backslash;
    bool too_long;    /* text that is not a record, between two records */
    bool skips;       /* the rest of a record that was too long */
    bool drops_comma; /* the next comma has no record before it */
};

void otlp_parts_finish(struct otlp_parts *parts);

/* Takes bytes of the body, up to the end of a part, and removes them from the piece.
 *
 * Returns true if a part has ended: otlp_parts_cut returns it. */
bool otlp_parts_take(struct otlp_parts *parts, struct slice *piece);

/* Returns the part, which is a whole JSON text if the body is. The caller finishes it. */
struct buf otlp_parts_cut(struct otlp_parts *parts);

/* Returns the rest of a complete body, in the same way. */
struct buf otlp_parts_end(struct otlp_parts *parts);

/* Returns ERR_TOO_LARGE with why if the text around or between the records is too long. */
enum err otlp_parts_check(const struct otlp_parts *parts, struct failure *why);

/* Returns the bytes of memory that it takes. */
size_t otlp_parts_size(const struct otlp_parts *parts);
