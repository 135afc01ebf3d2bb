/* deployment_show.h - deployments as clients see them. */
#pragma once

#include "api/deployments/deployment_commands.h"
#include "api/request/call.h"
#include "core/fleet/fleet.h"

/* {id, contentHash, shortCode, version, imageTag, …}: the answer of initialize. */
void show_initialized(const struct deployment *deployment, bool existing,
                      const json_t *canceled, struct buf *out);

/* The whole of one; worker: with the worker that it has. */
void show_deployment(const struct deployment *deployment, bool worker, struct buf *out);

/* One of a list, whose words are fewer: what is being installed is being built there. */
void show_item(const struct deployment *deployment, struct buf *out);

/* Why it is no version, for people, in lines: "Version V failed: …". */
void show_failure(const struct deployment_row *row, struct buf *out);

/* {id, version, shortCode}. */
void show_promoted(const struct deployment *deployment, struct buf *out);

/* The worker that it has; NULL: none. */
const struct worker *show_worker_of(const struct deployment *deployment);

/* The word that a list has for a status. */
const char *show_item_status(enum deployment_status status);
