/* patience.h - calls whose write a database has been sent that does not answer any more are
 * answered 503; the write goes on without them. */
#pragma once

struct api;
struct patience;

/* NULL for a store that leaves nobody without an answer. */
struct patience *patience_create(struct api *api);
/* NULL is fine. */
void patience_destroy(struct patience *patience);
