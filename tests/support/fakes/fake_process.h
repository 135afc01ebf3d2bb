/* fake_process.h - children that the test simulates: the contract of os/process/process.h
 * over a stepped loop, without a process.
 *
 *   spawn ─► fake_children_find ─► fake_process_write …, fake_process_end
 *
 * Output and exit arrive with the next turn; a paused pipe keeps its output, and its
 * process does not exit before it is resumed. The test sees signals, and decides what they
 * do; only SIGKILL ends a child by itself. */
#pragma once

#include "base/loop.h"
#include "os/process/process.h"

enum { FAKE_SIGNALS_MAX = 16 };

struct fake_children *fake_children_create(struct loop *loop);

/* Requires that all children have exited. Ignores NULL. */
void fake_children_destroy(struct fake_children *fake);

struct processes *fake_children_processes(struct fake_children *fake);

/* The next spawn is refused with this reason (NULL: no longer). */
void fake_children_refuse_next(struct fake_children *fake, const char *reason);

/* Called for each spawned child, for a simulation that reacts by itself. */
typedef void fake_spawned_fn(struct fake_children *fake, struct child *child);
void fake_children_on_spawned(struct fake_children *fake, fake_spawned_fn *fn);

/* Returns the index-th living child in the order of spawning; NULL if there are fewer. */
struct child *fake_children_find(struct fake_children *fake, size_t index);
size_t fake_children_count(const struct fake_children *fake);
size_t fake_children_spawned(const struct fake_children *fake); /* ever */

/* Copies of the options that the child was spawned with; fake_process_variable returns
 * the value of "NAME", or NULL. */
const char *fake_process_program(const struct child *child);
const char *fake_process_argument(const struct child *child, size_t index);
const char *fake_process_variable(const struct child *child, const char *name);
const struct process_options *fake_process_options(const struct child *child);
struct process *fake_process_owner(struct child *child);

/* Returns the last signals, oldest first. Negative: sent to the program alone; 0: no
 * more. */
int fake_process_signal(const struct child *child, size_t index);

void fake_process_write(struct child *child, enum process_pipe pipe, struct slice text);
void fake_process_end(struct child *child, enum process_cause cause, int status);
void fake_process_run_out_of_memory(struct child *child);
