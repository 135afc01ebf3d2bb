/* fake_data.h - the content of a store, in memory: runs, documents, claims, counters.
 *
 * The rules of store.h without time: each call takes effect at once and fills in the
 * request's results and status. A commit is checked completely before any of it is
 * written. */
#pragma once

#include "runcast/store.h"

struct fake_data;

struct fake_data *fake_data_create(void);
void fake_data_destroy(struct fake_data *data);

void fake_data_commit(struct fake_data *data, struct store_commit *req);
void fake_data_purge(struct fake_data *data, struct store_purge *req);

/* Returns the status of the read. */
enum store_status fake_data_read(struct fake_data *data, struct store_read *read);

/* Reports to store->on_stored, if it is set, the bytes stored since the last call. */
void fake_data_tell_stored(struct fake_data *data, const struct store *store);

struct store_position fake_data_position(struct fake_data *data, uint32_t env);

/* NULL when the id is unknown. */
const struct run *fake_data_run(struct fake_data *data, uint32_t env, struct slice id);
size_t fake_data_count(struct fake_data *data, uint32_t env);
