/* run_message.h - a run that was dequeued, as the gateway's message names it; pure.
 *
 * What is in it becomes paths, parts of URLs and the environment of a process: an id is
 * letters, digits, dash and underscore here, and what has none of the parts that a process
 * needs is refused. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/slice.h"

enum { MESSAGE_ID_MAX = 96, MESSAGE_VERSION_MAX = 64 };

struct run_message {
    char run[MESSAGE_ID_MAX];
    char snapshot[MESSAGE_ID_MAX];
    int64_t attempt; /* the next one */
    double cores, gigabytes;
    char environment[MESSAGE_ID_MAX];
    char organization[MESSAGE_ID_MAX];
    char project[MESSAGE_ID_MAX];
    char project_ref[MESSAGE_ID_MAX];  /* of the image; "": it names none */
    char version[MESSAGE_VERSION_MAX]; /* of the worker */
    char deployment[MESSAGE_ID_MAX]; /* its version's directory; of a plain registration the
                                           worker's id */
    bool has_deployment;             /* the version was deployed */
    char version_hash[MESSAGE_ID_MAX]; /* of the archive; "": unknown */
    struct bytes *text;                /* the message as it came */
};

/* The messages of an answer, in order: at begins with 0. False at the end, or when the answer
 * is no array of objects. */
bool run_message_next(struct slice answer, size_t *at, struct slice *message);

/* ERR_INVALID: something is missing or not well-formed; run and snapshot are filled in if they
 * could be read, so that it can be given back, else "". */
enum err run_message_read(struct slice text, struct run_message *message,
                          struct failure *why);

void run_message_finish(struct run_message *message);

/* Letters, digits, dash and underscore, at least one, and room for a terminating zero. */
bool message_id_is_right(struct slice id);
