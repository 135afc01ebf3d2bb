/* store_contract.h - the behavior that store.h requires of a driver; each driver's test
 * runs it. */
#pragma once

#include "runcast/store.h"
#include "tests/support/world/unit.h"

/* The cmocka state that a driver's setup creates. */
struct store_world {
    struct store *store;
    void (*turn)(struct store_world *world);   /* lets responses arrive */
    void (*reopen)(struct store_world *world); /* the process dies and starts again */
};

/* Runs every case with a fresh world; returns the number of failures. */
int store_contract_run(const char *driver, CMFixtureFunction setup,
                       CMFixtureFunction teardown);

/* ---- helpers, also for the drivers' own tests ---- */

/* Two environments, and the time at which the first run was created. */
enum { ENV_A = 7, ENV_B = 8 };
#define FIRST_RUN_MS INT64_C(1700000000000)

/* Writes the id of the n-th run; ids and their times grow with n. */
void make_run_id(int n, char id[ID_MAX]);

/* A change that creates the n-th run, QUEUED, with a payload. */
struct change new_run(uint32_t env, int n, const char *task);

/* A change of the run as last committed, of which it takes ownership. */
struct change next_version(struct change *before, unsigned marks);

struct change new_document(uint32_t env, enum document_kind kind, const char *name,
                           const char *body);

/* Commits and waits for the result; the changes stay the caller's. */
enum store_status commit(struct store_world *world, struct change *changes, size_t count,
                         struct claim *claims, size_t claim_count);

/* One change without claims, finished afterwards. */
enum store_status commit_one(struct store_world *world, struct change change);

/* On STORE_MISSING, run is unchanged. */
enum store_status load_run(struct store_world *world, uint32_t env, const char *id,
                           struct run *run);

size_t count_runs(struct store_world *world, uint32_t env);

struct bytes *text_bytes(const char *text);
