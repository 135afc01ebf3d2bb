/* serve.h - the subcommand serve: runs a gateway until the process is told to stop. */
#pragma once

struct config;

/* Returns the exit status: 0: served and drained; 1: failed; 2: invalid settings. */
int serve_run(struct config *config);
