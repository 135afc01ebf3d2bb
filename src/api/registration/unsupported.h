/* unsupported.h - features that a version declares and this gateway lacks.
 *
 *   limits of queues that only tasks have    ─► the registration is refused: they would be
 *                                              exceeded silently
 *   prompts, agents, endpoints for webhooks ─► a warning of the version: a run that uses
 *                                              one fails with an error that names it
 *
 * Members that are null or empty declare nothing: the CLI always sends some of them. */
#pragma once

#include <jansson.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/slice.h"

struct unsupported {
    struct buf limits; /* the declared limits, for a sentence; empty: none */
    /* Names as elements of a JSON array. */
    struct buf prompts, agents, webhooks;
};

/* Notes what a task, or an element of metadata.queues, declares. */
void unsupported_note_task(struct unsupported *all, const json_t *task);
void unsupported_note_queue(struct unsupported *all, const json_t *queue);

/* Notes a list in the metadata, given as JSON. Only names and ids are read; absent: does
 * nothing. */
void unsupported_note_limits(struct unsupported *all, struct slice list);
void unsupported_note_prompts(struct unsupported *all, struct slice list);
void unsupported_note_webhooks(struct unsupported *all, struct slice list);

/* Returns the sentence that refuses the registration; NULL: it declares no limits. The
 * caller owns it. */
struct bytes *unsupported_refusal(const struct unsupported *all);

/* Returns the warnings, [{"feature":…,"names":[…],"message":…},…]; NULL if none. The caller
 * owns them. A feature is named as in the error of a call that needs it
 * (api/router/dispatch.c). */
struct bytes *unsupported_warnings(const struct unsupported *all);

void unsupported_finish(struct unsupported *all);
