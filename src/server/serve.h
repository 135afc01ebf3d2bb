/* serve.h - the subcommand serve: runs a gateway until a signal stops the process. */
#pragma once

struct config;

/* Returns the exit status: 0: served and drained; 1: failed; 2: invalid settings. */
int serve_run(struct config *config);
