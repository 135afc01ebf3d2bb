/* cluster_envs.h - the environments of a simulated cluster. */
#pragma once

/* The accounts, and one environment with runs. */
enum { REPL_ACCOUNTS, REPL_RUNS, REPL_ENVS };
