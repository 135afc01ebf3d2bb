/* version_sweep.h - removes the versions from this machine that the gateway keeps no more.
 *
 *   a version was made, or some minutes ─► names listed ─► of each: does the gateway keep it?
 *           ▲                              (pool)             └─ no ─► removed (pool) ─┐
 *           └─────────────────── all were asked for ◄─────────────────────────────────┘
 *
 * Only the gateway knows which ones runs and rollbacks may need. A version with a process here
 * stays until the next round. One that went too early is no loss: it is made anew. */
#pragma once

#include "base/loop.h"
#include "supervisor/gateway_client/upward.h"
#include "supervisor/versions/site.h"

struct version_sweep;

struct version_sweep_options {
    struct loop *loop;
    struct upward *upward;
    const struct site *site;
    bool (*is_used)(void *owner, struct slice deployment); /* a process here is of it */
    void *owner;
};

struct version_sweep *version_sweep_create(const struct version_sweep_options *options);

/* A version was made: older ones may go. */
void version_sweep_soon(struct version_sweep *sweep);

void version_sweep_stop(struct version_sweep *sweep);

/* After version_sweep_stop: nothing of it is under way. */
bool version_sweep_is_idle(const struct version_sweep *sweep);

/* It is idle. NULL is fine. */
void version_sweep_destroy(struct version_sweep *sweep);
