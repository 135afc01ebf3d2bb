/* building.h - builds what the gateway hands out, one deployment after the other.
 *
 *   dequeue, held ─► archive into a file ─► version_build ─► complete ─► dequeue …
 *                    └── every 2 s: heartbeat, with the log ──┘
 *
 * A heartbeat that is refused says that the deployment is not ours any more: it was canceled, or
 * its time is over. Then the children are killed, and nothing is told. */
#pragma once

#include "os/archive/bundle.h"
#include "supervisor/gateway_client/upward.h"
#include "supervisor/versions/image_needs.h"
#include "supervisor/versions/site.h"
#include "supervisor/versions/tenants.h"
#include "supervisor/versions/version_sweep.h"

struct building;

/* What an operator decides. */
struct building_settings {
    bool on;            /* versions are built here */
    const char *passed; /* names of this process's variables that builds get, too */
    struct image_settings image;
    bool no_scripts; /* packages install without their scripts */
    struct bundle_limits limits;
};

/* Borrowed for as long as it lives. */
struct building_options {
    struct loop *loop;
    struct upward *upward;
    struct processes *processes;
    struct site *site;
    struct tenants *tenants;
    struct version_sweep *sweep;
    const char *instance;
    const char *programs; /* host_program */
    char *const *outer;   /* the environment of this process */
    const char *cgroup;   /* the root of groups; NULL: none */
    struct building_settings settings;
};

/* NULL: its settings say that nothing is built. */
struct building *building_create(const struct building_options *options);

/* Asks no more; what is being built is given up, and the gateway has it built anew.
 * NULL is fine. */
void building_stop(struct building *building);

/* Nothing of it is left: after building_stop, in a while. NULL is. */
bool building_is_idle(const struct building *building);

/* It is idle. NULL is fine. */
void building_destroy(struct building *building);
