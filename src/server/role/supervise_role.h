/* supervise_role.h - the supervise role as a command: settings, signals, exit status. */
#pragma once

#include "server/config/config_listen.h"
#include "supervisor/supervise/supervise.h"

/* Exit status if another process supervises in the folder. */
enum { SUPERVISE_ROLE_TAKEN = 3 };

/* The settings as options; texts are borrowed from the config, or owned by this struct. */
struct supervise_role {
    struct supervise_options options;
    char *url, *folder, *token_file;
    struct config_listener *figures;
};

/* Without a URL, uses the gateway of this config, at the first address of listen that has a
 * port and neither TLS nor the PROXY protocol. ERR_INVALID, ERR_RULE with the reason: the
 * role cannot start. */
enum err supervise_role_init(struct supervise_role *role, const struct config *config,
                             struct failure *why);
void supervise_role_finish(struct supervise_role *role);

/* Supervises until a signal ends it. Returns the exit status: 0: drained; 1: failed; 2:
 * invalid settings; SUPERVISE_ROLE_TAKEN. */
int supervise_role_run(struct config *config);
