/* run_codec.h - a run as values of a frame: id, tags, columns, packets.
 *
 * Columns are a map of their numbers (base/contract/run_columns.h) to values, and so are
 * packets and their types. Values that are not set are left out. */
#pragma once

#include "core/replication/frames.h"
#include "core/replication/pack.h"

enum { RUN_CODEC_VALUES = 4 };

/* Appends the run, with the packets that its marks name. */
void run_pack(const struct repl_run *run, msgpack_packer *packer);

/* Takes a run, of which env, seq and marks have been read. Sets in->failed if a value is one
 * that no run has. Returns false if it had columns or packets that are unknown here, which
 * were left out. The caller finishes the run in any case. */
bool run_take(struct cursor *in, struct repl_run *run);
