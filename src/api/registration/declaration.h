/* declaration.h - cuts a worker's tasks and queues out of a body while it arrives.
 *
 *   {"metadata":{"contentHash":"h","tasks":[{"id":"a","payloadSchema":{…}},…],
 *                "sourceFiles":[…]}}
 *       └─► "h"      [{"id":"a"},…]
 *
 * Sources are megabytes, but the members of a task that are used are a few hundred bytes.
 * Everything else is left out here, so no turn must walk over it. A payload's schema is
 * kept for people to read, as long as it and all schemas of the version together are
 * small. */
#pragma once

#include "base/json/scan.h"

enum declaration_part {
    DECLARED_HASH,
    DECLARED_SDK,
    DECLARED_CLI,
    DECLARED_TASKS,
    DECLARED_QUEUES,
    DECLARED_LIMITS,
    /* Only names and ids of the elements of these are read. */
    DECLARED_PROMPTS,
    DECLARED_WEBHOOKS,
    DECLARED_SUBSCRIBERS,
    DECLARED_PARTS
};

enum {
    DECLARATION_KEY_MAX = 128,
    SCHEMA_MAX = 8 * 1024,     /* bytes of one payloadSchema; longer ones are left out */
    SCHEMAS_MAX = 1024 * 1024, /* of all of a version, in the order of its tasks */
};

struct declaration {
    struct scan scan;
    size_t most;                      /* bytes of one task or queue, or of the hash */
    struct buf parts[DECLARED_PARTS]; /* JSON without white space; empty: absent */
    bool has_metadata;                /* which is an object */

    /* The position in the body. */
    unsigned depth;
    bool is_object[5]; /* what is open at depths 1 to 4 */
    unsigned skipping; /* depth of the member that is left out; 0: none */
    bool in_string, after_backslash, in_key, wants_key;
    char key[DECLARATION_KEY_MAX]; /* as received; only the beginning of a longer one */
    size_t key_len;
    struct buf *out; /* the current part; NULL: none */
    size_t index;    /* of its current element */
    size_t begin;    /* where that begins in out */

    bool in_schema;      /* in the payloadSchema of a task, while it is copied */
    size_t schema_begin; /* where that begins in out */
    size_t schema;       /* its bytes in the element, once it has ended */
    size_t schemas;      /* bytes of the schemas of all earlier elements */
};

/* Begins a body. most: bytes of a task or queue, without its schema and omitted members.
 * Larger ones are refused. */
void declaration_init(struct declaration *declaration, size_t most);

/* Takes a piece. Returns ERR_INVALID with the reason if it is not JSON, or something is too
 * long. */
enum err declaration_feed(struct declaration *declaration, struct slice piece,
                          struct failure *why);

/* Ends the body. Returns ERR_INVALID unless it is an object with a metadata object in
 * it. */
enum err declaration_end(struct declaration *declaration, struct failure *why);

/* Returns a value from the metadata: absent if missing, the last one if it repeats. */
struct slice declaration_part(const struct declaration *declaration,
                              enum declaration_part part);

/* Returns the member's name, like "tasks", "queues" or "contentHash". */
const char *declaration_name(enum declaration_part part);

void declaration_finish(struct declaration *declaration);
