/* patience.h - answers 503 to calls whose write waits for a database that does not answer.
 *
 * The write continues without its call. */
#pragma once

struct api;
struct patience;

/* Returns NULL for a store that answers every write. */
struct patience *patience_create(struct api *api);
/* Ignores NULL. */
void patience_destroy(struct patience *patience);
