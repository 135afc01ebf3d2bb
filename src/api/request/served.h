/* served.h - the environments that a worker's token serves. */
#pragma once

#include "api/request/call.h"

/* Returns the next environment that the token serves; NULL at the end. Start with last
 * NULL. */
struct account *served_next(const struct api *api, const struct identity *identity,
                            const struct account *last);

/* Returns the one of them that has the run in memory; NULL: none. */
struct account *served_with_run(const struct api *api, const struct identity *identity,
                                struct slice run_id);

struct environment *served_runs(const struct api *api, const struct account *account);
