/* declaration.h - what a worker says of its tasks and queues, cut out of a body while it
 * comes.
 *
 *   {"metadata":{"contentHash":"h","tasks":[{"id":"a","payloadSchema":{…}},…],
 *                "sourceFiles":[…]}}
 *       └─► "h"      [{"id":"a"},…]
 *
 * Sources are megabytes, and what is used of a task a few hundred bytes: here the rest is left
 * out, so nobody walks over it in one turn. The schema of a payload is kept for people to read
 * while it is small, and so are those of a version together. */
#pragma once

#include "base/json/scan.h"

enum declaration_part {
    DECLARED_HASH,
    DECLARED_SDK,
    DECLARED_CLI,
    DECLARED_TASKS,
    DECLARED_QUEUES,
    /* Only names and ids of the elements of these are kept. */
    DECLARED_LIMITS,
    DECLARED_PROMPTS,
    DECLARED_WEBHOOKS,
    DECLARED_SUBSCRIBERS,
    DECLARED_PARTS
};

enum {
    DECLARATION_KEY_MAX = 128,
    SCHEMA_MAX = 8 * 1024,     /* bytes of one payloadSchema; a longer one is left out */
    SCHEMAS_MAX = 1024 * 1024, /* of all of a version, in the order of its tasks */
};

struct declaration {
    struct scan scan;
    size_t most;                      /* bytes of one task or queue, or of the hash */
    struct buf parts[DECLARED_PARTS]; /* JSON without white space; empty: there is none */
    bool has_metadata;                /* an object */

    /* Where reading is. */
    unsigned depth;
    bool is_object[5]; /* what is open at depths 1 to 4 */
    unsigned skipping; /* the depth of the member that is left out; 0: none is */
    bool in_string, after_backslash, in_key, wants_key;
    char key[DECLARATION_KEY_MAX]; /* as it came; of a longer one the beginning */
    size_t key_len;
    struct buf *out; /* the part that is being read; NULL: none */
    size_t index;    /* of its element */
    size_t begin;    /* of that in out */

    bool in_schema;      /* in the payloadSchema of a task, which is copied */
    size_t schema_begin; /* of that in out */
    size_t schema;       /* bytes of it in the element, when it is over */
    size_t schemas;      /* of all elements before */
};

/* A task or queue of more than `most` bytes, its schema and what is left out not counted, is
 * refused. */
void declaration_init(struct declaration *declaration, size_t most);

/* ERR_INVALID: it is no JSON, or something is too long; why says what. */
enum err declaration_feed(struct declaration *declaration, struct slice piece,
                          struct failure *why);

/* All of it has come. ERR_INVALID: it is no object with an object metadata in it. */
enum err declaration_end(struct declaration *declaration, struct failure *why);

/* A value of the metadata: absent when it is not there, the last one if it repeats. */
struct slice declaration_part(const struct declaration *declaration,
                              enum declaration_part part);

/* "tasks", "queues", "contentHash". */
const char *declaration_name(enum declaration_part part);

void declaration_finish(struct declaration *declaration);
