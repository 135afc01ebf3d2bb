/* view.h - how one kind of client sees runs: encoding, vocabulary, fields.
 *
 * Clients with the same view get the same bytes. An environment has at most VIEWS_MAX
 * views, and a change is encoded once for each. Some of these places are reserved for views
 * that leave no field out, so that clients that leave out various fields cannot displace
 * ordinary ones. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/quota.h"
#include "base/rope.h"
#include "base/slice.h"
#include "runcast/run.h"

/* The fields of a run in runs.v1 (runcast/protocol.h), in the order in which they are
 * written. */
enum field {
    FIELD_ID,
    FIELD_TASK,
    FIELD_STATUS,
    FIELD_CREATED_AT,
    FIELD_UPDATED_AT,
    FIELD_TAGS,
    FIELD_BATCH_ID, /* up to here: always sent */
    FIELD_PAYLOAD,
    FIELD_OUTPUT,
    FIELD_NUMBER,
    FIELD_DURATION_MS,
    FIELD_COST,
    FIELD_BASE_COST,
    FIELD_IDEMPOTENCY_KEY,
    FIELD_EXPIRED_AT,
    FIELD_TTL,
    FIELD_FINISHED_AT,
    FIELD_STARTED_AT,
    FIELD_DELAYED_UNTIL,
    FIELD_QUEUED_AT,
    FIELD_METADATA,
    FIELD_ERROR,
    FIELD_IS_TEST,
    FIELD_VERSION,
    FIELD_ATTEMPT_COUNT,
    FIELD_STREAMS, /* this and the next: in runs.v1 only on request */
    FIELD_QUEUE,
    FIELD_COUNT
};

enum {
    FIELDS_ALL = (1 << FIELD_COUNT) - 1,
    FIELDS_DEFAULT = FIELDS_ALL & ~(1 << FIELD_STREAMS | 1 << FIELD_QUEUE),
    FIELDS_ALWAYS = (1 << (FIELD_BATCH_ID + 1)) - 1,
    VIEWS_MAX = 32,        /* per environment */
    NARROW_VIEWS_MAX = 16, /* of them: those whose clients leave something out */
    PROJECT_VIEWS_MAX = 4 * VIEWS_MAX,
    /* An environment may have these, whatever the rest of its project has. */
    VIEWS_SPARED = 8,
    NARROW_VIEWS_SPARED = 4,
};

enum encoding {
    ENCODING_JSON,
    ENCODING_MSGPACK,
    ENCODING_SHAPE, /* rows of the long poll without a message around them (shape.h) */
};

struct view {
    enum encoding encoding;
    enum vocabulary vocabulary;
    uint32_t fields;     /* bit set of enum field; FIELDS_ALWAYS is part of it */
    uint32_t skipped;    /* removed by the token; never part of fields */
    uint32_t unwanted;   /* the part of skipped that only the client asked for */
    uint32_t users;      /* feeds and kept views; 0: the place is free */
    struct quota *quota; /* the project's, counts views in use; NULL: no project */
    uint64_t since;      /* changes after this one were encoded for it */
    uint8_t index;       /* index in the environment's views, and in an update's frames */
    /* Turns an encoded message into what the transport sends; one function per view. */
    struct bytes *(*wrap)(const struct rope *message, bool binary);
};

const char *field_name(enum field field);

/* Returns the field of this name ("durationMs", "payload", …), or FIELD_COUNT. */
enum field field_from_name(struct slice name);

/* Counts one more user of the view, which keeps its place until view_release. */
void view_use(struct view *view);
/* Counts one user fewer. */
void view_release(struct view *view);
