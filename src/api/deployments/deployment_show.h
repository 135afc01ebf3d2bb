/* deployment_show.h - writes deployments as clients see them. */
#pragma once

#include "api/deployments/deployment_commands.h"
#include "api/request/call.h"
#include "core/fleet/fleet.h"

/* Appends the response of initialize: {id, contentHash, shortCode, version, imageTag,
 * …}. */
void show_initialized(const struct deployment *deployment, bool existing,
                      const json_t *canceled, struct buf *out);

/* Appends all of a deployment; worker: include its worker. */
void show_deployment(const struct deployment *deployment, bool worker, struct buf *out);

/* Appends an element of a list, which has fewer statuses: INSTALLING is BUILDING there. */
void show_item(const struct deployment *deployment, struct buf *out);

/* Appends why it did not become a version, in lines for people: "Version V failed: …". */
void show_failure(const struct deployment_row *row, struct buf *out);

/* Appends {id, version, shortCode}. */
void show_promoted(const struct deployment *deployment, struct buf *out);

/* Returns the worker that it has registered; NULL: none. */
const struct worker *show_worker_of(const struct deployment *deployment);

/* Returns the word for a status in lists. */
const char *show_item_status(enum deployment_status status);
