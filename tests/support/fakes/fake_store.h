/* fake_store.h - a driver of store.h in memory, for unit tests and simulation.
 *
 * Keeps every rule of store.h (versions, claims, seq per environment, callbacks later and
 * in order) over the stepped loop, without a disk. Faults are set by countdown; a crash
 * forgets unacknowledged changes and keeps the rest. */
#pragma once

#include "base/loop.h"
#include "runcast/store.h"
#include "tests/support/fakes/fault.h"

struct fake_store;

/* Results arrive delay_ms later (0: next turn). */
struct fake_store *fake_store_create(struct loop *loop);
void fake_store_destroy(struct fake_store *fake);

/* Returns true if every request has its result. */
bool fake_store_idle(const struct fake_store *fake);

/* Returns the store for the engine. */
struct store *fake_store_store(struct fake_store *fake);

/* Makes commits fail with STORE_FAILED (or the status of fake_store_fail_with) and write
 * nothing. */
struct fault *fake_store_fault(struct fake_store *fake);
void fake_store_fail_with(struct fake_store *fake, enum store_status status);
/* Makes loads fail with STORE_FAILED. */
struct fault *fake_store_load_fault(struct fake_store *fake);

/* Returns how many reads so far had store_load::is_for_memory or store_walk::is_for_memory. */
unsigned fake_store_reads_for_memory(const struct fake_store *fake);
void fake_store_set_delay(struct fake_store *fake, int64_t commit_ms, int64_t read_ms);

/* The process dies: requests in flight are forgotten without a result. By a coin toss of
 * the seed, some of them are written nevertheless. The data stays. */
void fake_store_crash(struct fake_store *fake, uint64_t seed);

/* Returns a run stored in the environment; NULL if the id is unknown. For assertions. */
const struct run *fake_store_run(struct fake_store *fake, uint32_t env, const char *id);
size_t fake_store_count(struct fake_store *fake, uint32_t env);
