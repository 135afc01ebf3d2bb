/* supervise_role.h - the supervise role as a command: its settings, signals and exit status. */
#pragma once

#include "server/config/config_listen.h"
#include "supervisor/supervise/supervise.h"

/* What it says when another process supervises in its folder. */
enum { SUPERVISE_ROLE_TAKEN = 3 };

/* Settings as options; texts are borrowed from the config, or its own. */
struct supervise_role {
    struct supervise_options options;
    char *url, *folder, *token_file;
    struct config_listener *figures;
};

/* Without a URL it is the gateway of this config, at the first address of listen that has a
 * port. ERR_INVALID, ERR_RULE with the reason: such a role cannot start. */
enum err supervise_role_init(struct supervise_role *role, const struct config *config,
                             struct failure *why);
void supervise_role_finish(struct supervise_role *role);

/* Supervises until a signal ends it. The exit status: 0: drained, 1: could not, 2: the settings
 * are wrong, 3: SUPERVISE_ROLE_TAKEN. */
int supervise_role_run(struct config *config);
