/* version_sweep.h - removes versions from this machine that the gateway no longer stores.
 *
 *   a version was made, or some minutes ─► list names ─► each: does the gateway have it?
 *           ▲                              (pool)             └─ no ─► remove (pool) ─┐
 *           └────────────────────── all were checked ◄───────────────────────────────┘
 *
 * Only the gateway knows which versions runs and rollbacks may need. A version that a
 * process here is executing stays until the next round. If a version was removed too early,
 * it is fetched again. */
#pragma once

#include "base/loop.h"
#include "supervisor/gateway_client/gateway_client.h"
#include "supervisor/versions/site.h"

struct version_sweep;

struct version_sweep_options {
    struct loop *loop;
    struct gateway_client *gateway_client;
    const struct site *site;
    /* returns true if a process here executes it */
    bool (*is_used)(void *owner, struct slice deployment);
    void *owner;
};

struct version_sweep *version_sweep_create(const struct version_sweep_options *options);

/* Starts a round soon. Call it after making a version, because older ones may no longer be
 * needed. */
void version_sweep_soon(struct version_sweep *sweep);

void version_sweep_stop(struct version_sweep *sweep);

/* Returns true, some time after version_sweep_stop, once no work or call is in progress. */
bool version_sweep_is_idle(const struct version_sweep *sweep);

/* Requires version_sweep_is_idle. Ignores NULL. */
void version_sweep_destroy(struct version_sweep *sweep);
