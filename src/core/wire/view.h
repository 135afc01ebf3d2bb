/* view.h - how one kind of client sees runs: encoding, vocabulary, fields.
 *
 * Clients with the same view get the same bytes. At most VIEWS_MAX live in an environment;
 * a change is encoded once for each. Part of the places is for views that leave no field
 * out, so that clients who each leave out others cannot keep ordinary clients away. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/room.h"
#include "base/rope.h"
#include "base/slice.h"
#include "runcast/run.h"

/* The fields of a run in runs.v1 (runcast/protocol.h), in the order in which it is written. */
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
    FIELD_STREAMS, /* this and the next in runs.v1 only when they are asked for */
    FIELD_QUEUE,
    FIELD_COUNT
};

enum {
    FIELDS_ALL = (1 << FIELD_COUNT) - 1,
    FIELDS_DEFAULT = FIELDS_ALL & ~(1 << FIELD_STREAMS | 1 << FIELD_QUEUE),
    FIELDS_ALWAYS = (1 << (FIELD_BATCH_ID + 1)) - 1,
    VIEWS_MAX = 32,        /* per environment */
    NARROW_VIEWS_MAX = 16, /* of them: those whose clients left something out */
    PROJECT_VIEWS_MAX = 4 * VIEWS_MAX,
    /* An environment may have these, however many the others of its project have. */
    VIEWS_SPARED = 8,
    NARROW_VIEWS_SPARED = 4,
};

enum encoding {
    ENCODING_JSON,
    ENCODING_MSGPACK,
    ENCODING_SHAPE, /* rows of the long poll, without a message around them: shape.h */
};

struct view {
    enum encoding encoding;
    enum vocabulary vocabulary;
    uint32_t fields;   /* bit set of enum field; FIELDS_ALWAYS is part of it */
    uint32_t skipped;  /* removed by the token; never part of fields */
    uint32_t unwanted; /* of skipped: only the client's own wish */
    uint32_t users;    /* feeds; 0: the place is free */
    struct room *room; /* of the project, counts views in use; NULL: no project */
    uint64_t since;    /* changes after this one were encoded for it */
    uint8_t index;     /* in the environment's views and in an update's frames */
    /* Makes of an encoded message what the transport sends; the same for all of a view. */
    struct bytes *(*wrap)(const struct rope *message, bool binary);
};

const char *field_name(enum field field);

/* FIELD_COUNT: no such field. "durationMs", "payload", … */
enum field field_from_name(struct slice name);

/* Counts one more user of the view. Until view_release its place is taken. */
void view_use(struct view *view);
/* It is used once less. */
void view_release(struct view *view);
