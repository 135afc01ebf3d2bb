/* serve.h - the subcommand serve: this process is a gateway until it is told to stop. */
#pragma once

struct config;

/* Returns the exit status: 0: served and drained; 1: it could not; 2: the settings are wrong. */
int serve_run(struct config *config);
