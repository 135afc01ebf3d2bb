/* run_message.h - parses the gateway's message about a dequeued run; pure.
 *
 * Its parts become paths, parts of URLs and environment variables of a process, so ids must
 * consist of letters, digits, dashes and underscores. A message without a part that a
 * process needs is rejected. */
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
    int64_t attempt; /* number of the next attempt */
    double cores, gigabytes;
    char environment[MESSAGE_ID_MAX];
    char organization[MESSAGE_ID_MAX];
    char project[MESSAGE_ID_MAX];
    char project_ref[MESSAGE_ID_MAX];  /* from the image; "": it has none */
    char version[MESSAGE_VERSION_MAX]; /* of the background worker */
    char deployment[MESSAGE_ID_MAX];   /* name of the version's directory; for a plain
                                        * registration the worker's id */
    bool has_deployment;               /* the version comes from a deployment */
    char version_hash[MESSAGE_ID_MAX]; /* SHA-256 of the archive; "": unknown */
    struct bytes *text;                /* the message as received */
};

/* Iterates over the messages in a dequeue response; start with *at = 0.
 *
 * Returns false at the end, or if the response is not an array of objects. */
bool run_message_next(struct slice answer, size_t *at, struct slice *message);

/* Returns ERR_INVALID if something is missing or malformed.
 *
 * Even then, run and snapshot are set if both could be read, otherwise "", so that the run
 * can be released. */
enum err run_message_read(struct slice text, struct run_message *message,
                          struct failure *why);

void run_message_finish(struct run_message *message);

/* Returns true for letters, digits, dashes and underscores that fit into MESSAGE_ID_MAX. */
bool message_id_is_right(struct slice id);
